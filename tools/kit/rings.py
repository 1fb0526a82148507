# SPDX-License-Identifier: BSD-3-Clause
"""What libgdr_kit_capture.so wrote (capture.c): commands, and the first entry of each opcode in queues and completion
queues. Entries are given in hex, with x for what is another number each time."""
import prm

WQE_OPCODES = {0x00: "NOP", 0x08: "RDMA_WRITE", 0x09: "RDMA_WRITE_IMM", 0x0a: "SEND", 0x10: "RDMA_READ", 0x11: "ATOMIC_CS",
               0x12: "ATOMIC_FA", 0x14: "ATOMIC_MASKED_CS", 0x15: "ATOMIC_MASKED_FA", 0x23: "DUMP"}
CQE_OPCODES = {0x0: "REQ", 0x1: "RESP_WR_IMM", 0x2: "RESP_SEND", 0xd: "REQ_ERR", 0xe: "RESP_ERR"}


class Capture:
    """A file of captured lines; what it cannot read it leaves out."""

    def __init__(self, text):
        self.commands = []  # (kind, errno, in, out)
        self.umems = {}     # id: bytes
        self.rings = {}     # id: {offset: 64 bytes}
        self.uars, self.eqns = [], []
        for line in text.splitlines():
            try:
                self._line(line.split())
            except (ValueError, IndexError):
                continue

    def _line(self, word):
        if word[0] == "cmd":
            sent, got = bytes.fromhex(word[3]), bytes.fromhex(word[4])
            if min(len(sent), len(got)) >= 16:  # no mailbox is shorter: this line was cut
                self.commands.append((word[1], int(word[2]), sent, got))
        elif word[0] == "umem":
            self.umems[int(word[1])] = (int(word[2], 0), int(word[3]))
        elif word[0] == "ring":
            self.rings.setdefault(int(word[1]), {})[int(word[2], 0)] = bytes.fromhex(word[3])
        elif word[0] in ("uar", "eqn"):
            (self.uars if word[0] == "uar" else self.eqns).append(int(word[1]))

    def queues(self, command, prefix, log_size):
        """(lines of the umem, offset, entries) of each queue that the command made."""
        for _, err, sent, _ in self.commands:
            if err or prm.opcode(sent) != command:
                continue
            lines = self.rings.get(prm.get(sent, *prm.FIELDS[prefix + "UMEM_ID"]), {})
            offset = prm.get(sent, *prm.FIELDS[prefix + "UMEM_OFFSET"])
            yield lines, offset, 1 << prm.get(sent, *log_size)


def at(base, name):
    offset, width = prm.FIELDS[name]
    return base + offset, width


def hexes(entry, hidden):
    """Hex by words of 4 bytes; hidden: (first, behind) bytes that differ each time."""
    text = list(entry.hex())
    for first, behind in hidden:
        text[2 * first:2 * behind] = "x" * len(text[2 * first:2 * behind])
    text = "".join(text)
    return " ".join(text[i:i + 8] for i in range(0, len(text), 8))


def wqe_hidden(opcode, size):
    """Index and number of the queue; then addresses, keys, and what is moved: in the segments behind the first."""
    hidden = [(1, 3), (4, 7)]
    if opcode in ("RDMA_WRITE", "RDMA_READ", "RDMA_WRITE_IMM") or opcode.startswith("ATOMIC"):
        hidden.append((16, 28))  # remote address and key
    if size > 32:
        hidden.append((36, size) if opcode.startswith("RDMA") else (32, size))
    return hidden


def wqes(capture):
    """{opcode: entry in hex}, the first of each, in the order in which they were posted to their queue."""
    found = {}
    for lines, offset, blocks in capture.queues("CREATE_QP", "CREATE_QP_", at(prm.QPC, "QPC_LOG_SQ_SIZE")):
        block = 0
        while block < blocks:
            head = lines.get(offset + 64 * block)
            if not head or int.from_bytes(head[1:3], "big") != block & 0xffff or not head[7] & 0x3f:
                break
            size = (head[7] & 0x3f) * 16
            entry = b"".join(lines.get(offset + 64 * (block + i), bytes(64)) for i in range((size + 63) // 64))[:size]
            name = WQE_OPCODES.get(head[3], f"0x{head[3]:02x}")
            key = f"{name}.{size}" + (".inline" if name == "RDMA_WRITE" and size > 32 and entry[32] & 0x80 else "")
            found.setdefault(key, hexes(entry, wqe_hidden(name, size)))
            block += (size + 63) // 64
    return found


def cqes(capture):
    """{opcode.opcode of the queue entry: entry in hex}, the first of each."""
    found = {}
    for lines, offset, entries in capture.queues("CREATE_CQ", "CREATE_CQ_", at(0x80, "CQC_LOG_CQ_SIZE")):
        for i in range(entries):
            entry = lines.get(offset + 64 * i)
            if not entry or entry[63] >> 4 == 0xf:
                continue
            kind = CQE_OPCODES.get(entry[63] >> 4, f"0x{entry[63] >> 4:x}")
            key = f"{kind}.{WQE_OPCODES.get(entry[56], hex(entry[56]))}"
            # Time stamp, number of the queue, index, signature, owner; of errors vendor and syndrome are at 54 and 55.
            hidden = [(0, 54) if kind.endswith("ERR") else (48, 56), (57, 63)]
            entry = entry[:63] + bytes([entry[63] & 0xfe])
            found.setdefault(key, hexes(entry, hidden))
    return found


def commands(capture):
    """{command.field: value} of what was sent, of the first of each command; what came back first."""
    found, counts = {}, {}
    for _, err, sent, got in capture.commands:
        name = prm.opcode(sent)
        prefix = "cap." if name == "QUERY_HCA_CAP" else f"command.{name}.out."
        counts[name] = counts.get(name, 0) + 1
        status = prm.get(got, *prm.FIELDS["OUT_STATUS"])
        if err or status:
            syndrome = prm.get(got, *prm.FIELDS["OUT_SYNDROME"])
            text = f"errno {err}, status 0x{status or 0:02x}, syndrome 0x{syndrome or 0:08x}"
            found.setdefault(f"command.{name}.refused", text)
            continue
        if counts[name] == 1:
            for field, value in prm.fields(sent, prm.shape(name, sent)[0]).items():
                found[f"command.{name}.{field}"] = hex(value)
        for field, value in prm.fields(got, prm.shape(name, sent)[1]).items():
            found.setdefault(prefix + field, hex(value))
    found.update({f"command.{name}.times": str(n) for name, n in counts.items() if name != "QUERY_Q_COUNTER"})
    return found
