#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""decode.py CAPTURE [NAME...]: takes every RoCEv2 packet of a pcap file apart as the InfiniBand
Architecture Specification lays it out (volume 1, chapter 9; annex A17) and computes its ICRC. Fails
on the first packet that is wrong, and when none of a NAME (an opcode or a NAK below, with rc., uc. or
ud. ahead) was seen. Shares nothing with softhca; zlib's CRC-32 is the polynomial of the ICRC."""
import ipaddress
import struct
import sys
import zlib

SERVICES = {0: "rc", 1: "uc", 3: "ud"}
OPCODES = [  # by the lower five bits: name, extended headers, payload
    ("SEND_FIRST", "", "full"), ("SEND_MIDDLE", "", "full"), ("SEND_LAST", "", "some"),
    ("SEND_LAST_IMM", "i", "some"), ("SEND_ONLY", "", "any"), ("SEND_ONLY_IMM", "i", "any"),
    ("WRITE_FIRST", "r", "full"), ("WRITE_MIDDLE", "", "full"), ("WRITE_LAST", "", "some"),
    ("WRITE_LAST_IMM", "i", "some"), ("WRITE_ONLY", "r", "any"), ("WRITE_ONLY_IMM", "ri", "any"),
    ("READ_REQUEST", "r", "none"), ("READ_FIRST", "a", "full"), ("READ_MIDDLE", "", "full"),
    ("READ_LAST", "a", "some"), ("READ_ONLY", "a", "any"), ("ACK", "a", "none"),
    ("ATOMIC_ACK", "ao", "none"), ("CMP_SWAP", "c", "none"), ("FETCH_ADD", "c", "none"),
    ("RESERVED", "", "none"), ("SEND_LAST_INV", "k", "some"), ("SEND_ONLY_INV", "k", "any")]
HEADERS = {"i": 4, "k": 4, "r": 16, "a": 4, "o": 8, "c": 28, "d": 8}
NAKS = ["NAK_SEQUENCE", "NAK_INVALID_REQUEST", "NAK_REMOTE_ACCESS", "NAK_REMOTE_OPERATION"]
MTUS = (256, 512, 1024, 2048, 4096)


class Wrong(Exception):
    pass


def need(what, true):
    if not true:
        raise Wrong(what)


def packets(path):
    """Frames of an Ethernet capture, in the classic format."""
    with open(path, "rb") as f:
        data = f.read()
    magic, = struct.unpack_from("<I", data)
    need("pcap", magic in (0xa1b2c3d4, 0xa1b23c4d))
    need("Ethernet", struct.unpack_from("<I", data, 20)[0] == 1)
    at = 24
    while at + 16 <= len(data):
        n, real = struct.unpack_from("<II", data, at + 8)
        need("whole packets", n == real)
        yield data[at + 16:at + 16 + n]
        at += 16 + n


def invariant(ip, udp, bth):
    """Headers as the ICRC sees them: what routers may change is all ones (A17.3.3)."""
    ip, udp, bth = bytearray(ip), bytearray(udp), bytearray(bth)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xff       # type of service, TTL, checksum
    else:
        ip[0] |= 0x0f                                # traffic class, flow label
        ip[1] = ip[2] = ip[3] = ip[7] = 0xff         # and hop limit
    udp[6] = udp[7] = 0xff                           # checksum
    bth[4] = 0xff                                    # resv8a, which has FECN and BECN
    return b"\xff" * 8 + bytes(ip + udp + bth)       # in place of the LRH


def ip_checksum(ip):
    s = sum(struct.unpack("!10H", ip))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s == 0xffff


def split(frame):
    """IP header, UDP header and UDP payload of a RoCEv2 frame, or None."""
    kind, = struct.unpack_from("!H", frame, 12)
    if kind == 0x0800:
        n = (frame[14] & 15) * 4
        total = struct.unpack_from("!H", frame, 16)[0]
        ip, rest, protocol = frame[14:14 + n], frame[14 + n:14 + total], frame[23]
    elif kind == 0x86dd:
        ip, protocol = frame[14:54], frame[20]
        rest = frame[54:54 + struct.unpack_from("!H", frame, 18)[0]]
    else:
        return None
    if protocol != 17 or struct.unpack_from("!H", rest, 2)[0] != 4791:
        return None
    return ip, rest[:8], rest[8:]


def check_addresses(ip, udp, n):
    if ip[0] >> 4 == 4:
        need("IPv4 without options", len(ip) == 20)
        need("IPv4 checksum", ip_checksum(ip))
        need("not a fragment", struct.unpack_from("!H", ip, 6)[0] & 0x3fff == 0)
        need("DF set", ip[6] & 0x40)
    need("UDP length", struct.unpack_from("!H", udp, 4)[0] == n + 8)


def check_payload(kind, n, seen):
    if kind == "none":
        need("no payload", n == 0)
    elif kind == "full":
        need("a path MTU of payload", n in MTUS)
    elif kind == "some":
        need("payload", 0 < n <= 4096)
    else:
        need("payload of at most 4096", n <= 4096)


def check_packet(ip, udp, data):
    """The name of a packet that is right."""
    check_addresses(ip, udp, len(data))
    need("BTH and ICRC", len(data) >= 16)
    bth = data[:12]
    service, code = SERVICES.get(bth[0] >> 5), bth[0] & 31
    need("opcode 0x%02x" % bth[0], service and code < len(OPCODES) and code != 21)
    name, headers, payload = OPCODES[code]
    need("opcode of this service", service == "rc" or code <= 11 and service == "uc" or
         service == "ud" and code in (4, 5))
    if service == "ud":
        headers = "d" + headers
    pad = bth[1] >> 4 & 3
    need("transport version 0", bth[1] & 15 == 0)
    need("migration state migrated", bth[1] & 0x40)
    need("default partition", bth[2:4] == b"\xff\xff")
    need("reserved fields 0", bth[4] & 0x3f == 0 and bth[8] & 0x7f == 0)
    need("QPN", struct.unpack_from("!I", bth, 4)[0] & 0xffffff > 1)
    at = 12
    for h in headers:
        if h == "a":
            syndrome = data[at]
            need("syndrome", syndrome & 0x80 == 0)
            if syndrome >> 5 == 1:
                name = "NAK_RNR"
            elif syndrome >> 5 == 3:
                need("NAK code", syndrome & 31 < len(NAKS))
                name = NAKS[syndrome & 31]
            else:
                need("AETH kind", syndrome >> 5 == 0)
        if h == "d":
            need("DETH reserved", data[at + 4] == 0)
        at += HEADERS[h]
    n = len(data) - at - pad - 4
    need("room for its headers", n >= 0)
    need("length a multiple of four", len(data) % 4 == 0)
    need("pad of zeros", not any(data[-4 - pad:-4]))
    check_payload(payload, n, name)
    if name.startswith("WRITE_ONLY"):
        need("DMA length", struct.unpack_from("!I", data, 24)[0] == n)
    crc, = struct.unpack("<I", data[-4:])
    want = zlib.crc32(invariant(ip, udp, bth) + data[12:-4])
    need("ICRC 0x%08x, not 0x%08x" % (want, crc), crc == want)
    return service + "." + name


def main():
    seen = {}
    n = 0
    for n, frame in enumerate(packets(sys.argv[1]), 1):
        parts = split(frame)
        if not parts:
            continue
        try:
            name = check_packet(*parts)
        except Wrong as e:
            v6 = parts[0][0] >> 4 == 6
            source = parts[0][8:24] if v6 else parts[0][12:16]
            print("packet %d from %s: wrong: %s\n%s" %
                  (n, ipaddress.ip_address(source), e, parts[2][:64].hex(" ")))
            return 1
        seen[name] = seen.get(name, 0) + 1
    missing = [w for w in sys.argv[2:] if w not in seen]
    for name in sorted(seen):
        print("%6d %s" % (seen[name], name))
    if missing:
        print("not seen:", *missing)
    return 1 if missing or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
