# SPDX-License-Identifier: BSD-3-Clause
"""Mailboxes by the names that gdr has for their fields: runtime/nic/prm.h, installed beside these files."""
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
OPCODES = {}  # number: name
FIELDS = {}   # name without PRM_: (offset, width) in bits
BASES = {}    # name of a structure: offset in bits

# Which structures a command's mailbox has: (prefix of the fields, offset in bits); in, out.
QPC, ADS = 0xc0, 0xc0 + 0xc0
SHAPES = {
    "CREATE_CQ": ([("CREATE_CQ_", 0), ("CQC_", 0x80)], [("CREATE_CQ_OUT_", 0)]),
    "CREATE_QP": ([("CREATE_QP_", 0), ("QPC_", QPC)], [("CREATE_QP_OUT_", 0)]),
    "RST2INIT_QP": ([("MODIFY_QP_", 0), ("QPC_", QPC), ("ADS_", ADS)], []),
    "INIT2RTR_QP": ([("MODIFY_QP_", 0), ("QPC_", QPC), ("ADS_", ADS)], [("MODIFY_QP_OUT_", 0)]),
    "RTR2RTS_QP": ([("MODIFY_QP_", 0), ("QPC_", QPC), ("ADS_", ADS)], []),
    "2RST_QP": ([("MODIFY_QP_", 0)], []),
    "QUERY_QP": ([("MODIFY_QP_", 0)], [("QUERY_QP_OUT_", 0), ("QPC_", QPC)]),
    "QUERY_LAG": ([], [("QUERY_LAG_OUT_", 0)]),
    "CREATE_MKEY": ([("MKC_", 0x80)], [("CREATE_MKEY_OUT_", 0)]),
}
GROUPS = {0: "GENERAL_", 3: "ATOMIC_", 4: "ROCE_", 0x20: "GENERAL_2_"}  # QUERY_HCA_CAP, op_mod >> 1

# What differs from run to run, or says who somebody is.
NUMBERS = re.compile(r"(UMEM_ID|UAR_PAGE|_PD|EQN|CQN_SND|CQN_RCV|CQN|QPN|PSN|RMAC_\w+|SRC_ADDR_INDEX|UDP_SPORT|RLID|"
                     r"OUT_INDEX|COUNTER_SET)$")


def load():
    """Before anything else here is used."""
    path = next(p for p in (HERE / "prm.h", HERE.parent.parent / "runtime/nic/prm.h") if p.exists())
    text = path.read_text()
    for name, number in re.findall(r"PRM_OP_(\w+) = (0x[0-9a-f]+)", text):
        OPCODES[int(number, 0)] = name
    for name, offset, width in re.findall(r"^#define PRM_(\w+)\s+(0x[0-9a-f]+), (\d+)", text, re.M):
        FIELDS[name] = (int(offset, 0), int(width))


def get(box, offset, width):
    """A field of a mailbox; None: it ends before."""
    if (offset + width + 7) // 8 > len(box):
        return None
    word = int.from_bytes(box[:(offset + width + 7) // 8], "big") >> -(offset + width) % 8
    return word & (1 << width) - 1


def fields(box, shapes):
    """{name: value} of all structures, without what is another number each time."""
    found = {}
    for prefix, base in shapes:
        for name, (offset, width) in FIELDS.items():
            inner = name[len(prefix):]
            if not name.startswith(prefix) or inner.startswith("OUT_") or NUMBERS.search(name):
                continue
            if prefix == "GENERAL_" and name.startswith("GENERAL_2_"):
                continue
            value = get(box, base + offset, width)
            if value is not None:
                found[name] = value
    return found


def opcode(box):
    number = get(box, 0, 16)
    return OPCODES.get(number, f"0x{number:03x}" if number is not None else "none")


def shape(name, sent):
    """The structures of a command's two mailboxes."""
    if name == "QUERY_HCA_CAP":
        group = GROUPS.get(get(sent, *FIELDS["IN_OP_MOD"]) >> 1)
        return [], [(group, 0x80)] if group else []
    return SHAPES.get(name, ([], []))


def mask_path(sent):
    """A command's mailbox without the address of the peer, whoever that is."""
    if opcode(sent) not in ("INIT2RTR_QP", "RTR2RTS_QP", "RST2INIT_QP") or len(sent) < 0x110:
        return sent
    path = ADS // 8
    box = bytearray(sent)
    box[path + 16:path + 32] = bytes(16)                   # rgid
    box[path + 0x26:path + 0x2c] = bytes(6)                # rmac_47_32, rmac_31_0
    return bytes(box)
