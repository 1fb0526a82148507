# SPDX-License-Identifier: BSD-3-Clause
"""Takes personal details out of what is sent away: names of hosts and users, folders, MAC and IP addresses, GIDs, GUIDs,
serial numbers of GPUs. Each is replaced by a word and a number, the same in all files, so that equal ones stay equal.
What the machine is known to have goes, also out of bytes; what only looks like an address goes, too."""
import getpass
import glob
import os
import re
import socket
import struct

import collect

MAC = r"(?<![\w:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:])"
IP6 = r"(?<![\w:.])(?=[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:)(?:[0-9a-fA-F]{0,4}:){2,7}" \
      r"(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]{0,4})(?![\w:]|\.\d)"  # not a PCI address
IP4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
GUID = r"(?<![\w:])(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}(?![\w:])"
UUID = r"(?<!\w)[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?!\w)"
PLAIN = r"(?<!\w)(?:[0-9a-fA-F]{12}|[0-9a-fA-F]{16})(?!\w)"  # MACs and GUIDs as mlxfwmanager prints them
PATTERNS = [("uuid", UUID), ("mac", MAC), ("guid", GUID), ("ip6", IP6), ("ip4", IP4), ("id", PLAIN)]
COMMON = {"localhost", "softhca", "root", "user", "::", "::1", "127.0.0.1", "0.0.0.0", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"}
TIME = re.compile(r"\d{2}:\d{2}:\d{2}")  # not an address


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def machine():
    """[(kind, text)] of this machine, as far as a user can see it."""
    found = [("host", socket.gethostname()), ("host", socket.gethostname().split(".")[0]), ("host", os.uname().nodename)]
    try:
        found += [("user", getpass.getuser()), ("folder", os.path.expanduser("~"))]
    except (KeyError, OSError):
        pass
    found += [("mac", read(p)) for p in glob.glob("/sys/class/net/*/address")]
    for device in collect.folder("/sys/class/infiniband"):
        base = f"/sys/class/infiniband/{device}"
        found.append(("host", re.sub(r"^MT\d+ .*|[ :].*", "", read(f"{base}/node_desc"))))
        found += [("guid", read(f"{base}/{name}")) for name in ("node_guid", "sys_image_guid")]
        found += [("ip6", read(f"{base}/ports/{port}/gids/{i}")) for port in (1, 2) for i in range(256)]
    for line in read("/proc/net/if_inet6").splitlines():
        found.append(("ip6", socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))))
    found += [("ip4", ip) for ip in re.findall(IP4, read("/proc/net/fib_trie")) if not ip.endswith((".0", ".255"))]
    found += [("ip4", ip) for ip in re.findall(IP4, read("/etc/hosts"))]
    return found + [("ip6", "::ffff:" + ip) for kind, ip in found if kind == "ip4"]


class Scrub:
    def __init__(self, found=None, folders=()):
        self.words, self.bytes = {}, {}
        self.count = {}
        for folder in folders:  # (what it is called, path): longest first, they may lie in each other
            self.words[folder[1]] = folder[0]
        for kind, text in machine() if found is None else found:
            if text and text.lower() not in COMMON and len(text) > 1 and text != "/" and set(text) - set("0:.-"):
                self.word(kind, text)

    def word(self, kind, text):
        """What stands for a text."""
        key = text.lower() if kind in ("mac", "ip6", "guid", "uuid") else text
        if key not in self.words:
            number = self.count[kind] = self.count.get(kind, 0) + 1
            self.words[key] = f"<{kind}-{number}>"
            self.binary(kind, key, number)
        return self.words[key]

    def binary(self, kind, text, number):
        """The bytes of an address and what stands for them; those of four bytes only as part of longer ones."""
        try:
            if kind == "mac":
                raw = bytes.fromhex(re.sub("[:-]", "", text))
                self.bytes[raw] = b"\x02\x00\x00\x00" + struct.pack(">H", number)
                eui = bytes([raw[0] ^ 2]) + raw[1:3] + b"\xff\xfe" + raw[3:]
                self.bytes[eui] = b"\x02\x00\x00\xff\xfe\x00" + struct.pack(">H", number)
            elif kind == "guid":
                self.bytes[bytes.fromhex(text.replace(":", ""))] = b"\x02\x01\x00\x00\x00\x00" + struct.pack(">H", number)
            elif kind == "ip4":
                mapped = bytes(10) + b"\xff\xff"
                self.bytes[mapped + socket.inet_aton(text)] = mapped + b"\xc6\x33" + struct.pack(">H", number)
            elif kind == "ip6":
                self.bytes[socket.inet_pton(socket.AF_INET6, text)] = b"\xfd" + bytes(13) + struct.pack(">H", number)
        except (ValueError, OSError):
            pass

    def blob(self, data):
        for raw, other in sorted(self.bytes.items(), key=lambda item: -len(item[0])):
            data = data.replace(raw, other)
        return data

    def text(self, text):
        for word, other in sorted(self.words.items(), key=lambda item: -len(item[0])):
            if "/" in word:
                text = text.replace(word, other)
            else:
                text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", lambda _, o=other: o, text, flags=re.I)
        for kind, pattern in PATTERNS:
            text = re.sub(pattern, lambda m, k=kind: self.found(k, m.group()), text)
        return text

    def found(self, kind, text):
        if text.lower() in COMMON or TIME.fullmatch(text) or not set(text) - set("0:.-"):
            return text
        return self.word(kind, text)

    def capture(self, text, mask):
        """Lines of capture.c: bytes in hex. mask: takes the peer's address out of a command's mailbox."""
        lines = []
        for line in text.splitlines():
            word = line.split()
            if word and word[0] in ("cmd", "ring"):
                for i in range(3, len(word)):
                    data = bytes.fromhex(word[i])
                    word[i] = self.blob(mask(data) if word[0] == "cmd" and i == 3 else data).hex()
            lines.append(" ".join(word))
        return "\n".join(lines) + "\n"
