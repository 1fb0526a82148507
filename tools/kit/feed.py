# SPDX-License-Identifier: BSD-3-Clause
"""feed.py CAPTURE: sends the commands of a capture to the RDMA device that is here, by libmlx5, and prints what comes
back as a capture, a line for each. Numbers that the captured device gave (memory, doorbell pages, queues) become those of this
one; keys of registered memory those of regions that hold what the command names. Meant to be started on softhca. Commands that
are not known here are left out, and said to be."""
import ctypes
import mmap
import os
import sys

import prm
import rings

NORESERVE = 0x4000
STRICT, RELAXED = 0xf, 1 << 20 | 7  # of a region: ibv_access_flags
PORT, PD_OBJECT = 1, 6  # MLX5DV_OBJ_PD is bit 6, and the seventh pair of pointers


class Context(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint32), ("comp_mask", ctypes.c_uint64)]


class Umem(ctypes.Structure):
    _fields_ = [("umem_id", ctypes.c_uint32)]


class Uar(ctypes.Structure):
    _fields_ = [("reg_addr", ctypes.c_void_p), ("base_addr", ctypes.c_void_p), ("page_id", ctypes.c_uint32)]


class Pd(ctypes.Structure):
    _fields_ = [("pdn", ctypes.c_uint32), ("comp_mask", ctypes.c_uint64)]


class Mr(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("pd", ctypes.c_void_p), ("addr", ctypes.c_void_p), ("length", ctypes.c_size_t),
                ("handle", ctypes.c_uint32), ("lkey", ctypes.c_uint32), ("rkey", ctypes.c_uint32)]


class Device:
    """libmlx5's calls, as far as they are needed."""

    def __init__(self):
        verbs = self.verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
        mlx5 = self.mlx5 = ctypes.CDLL("libmlx5.so.1", use_errno=True)
        for f in (verbs.ibv_get_device_list, mlx5.mlx5dv_open_device, verbs.ibv_alloc_pd, mlx5.mlx5dv_devx_umem_reg,
                  mlx5.mlx5dv_devx_alloc_uar, mlx5.mlx5dv_devx_obj_create, verbs.ibv_reg_mr_iova2):
            f.restype = ctypes.c_void_p
        verbs.ibv_reg_mr_iova2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint]
        mlx5.mlx5dv_devx_umem_reg.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32]
        devices = verbs.ibv_get_device_list(None)
        first = ctypes.cast(devices, ctypes.POINTER(ctypes.c_void_p))[0] if devices else None
        if not first:
            sys.exit("feed.py: no RDMA device found")
        self.context = ctypes.c_void_p(mlx5.mlx5dv_open_device(ctypes.c_void_p(first), ctypes.byref(Context(1, 0))))
        if not self.context:
            sys.exit("feed.py: the device cannot be opened with DEVX")
        self.kept, self.pd = [], self.verbs.ibv_alloc_pd(self.context)

    def umem(self, size):
        memory = mmap.mmap(-1, max(size, mmap.PAGESIZE))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        umem = self.mlx5.mlx5dv_devx_umem_reg(self.context, address, size, 7)
        self.kept.append(memory)
        return ctypes.cast(umem, ctypes.POINTER(Umem))[0].umem_id if umem else None

    def uar(self):
        uar = self.mlx5.mlx5dv_devx_alloc_uar(self.context, 0)
        return ctypes.cast(uar, ctypes.POINTER(Uar))[0].page_id if uar else None

    def eqn(self):
        number = ctypes.c_uint32()
        self.mlx5.mlx5dv_devx_query_eqn(self.context, 0, ctypes.byref(number))
        return number.value

    def pdn(self):
        pd, pairs = Pd(), (ctypes.c_void_p * 14)()
        pairs[2 * PD_OBJECT] = self.pd
        pairs[2 * PD_OBJECT + 1] = ctypes.addressof(pd)
        self.mlx5.mlx5dv_init_obj(ctypes.byref(pairs), ctypes.c_uint64(1 << PD_OBJECT))
        return pd.pdn

    def region(self, start, size, relaxed):
        """A key of memory that has the addresses from start on; None: there is none."""
        memory = mmap.mmap(-1, size + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + start % mmap.PAGESIZE
        region = self.verbs.ibv_reg_mr_iova2(self.pd, address, size, start, RELAXED if relaxed else STRICT)
        self.kept.append(memory)
        return ctypes.cast(region, ctypes.POINTER(Mr))[0].lkey if region else None

    def gid(self):
        raw = (ctypes.c_uint8 * 16)()
        self.verbs.ibv_query_gid(self.context, PORT, 0, ctypes.byref(raw))
        return bytes(raw)

    def send(self, kind, box, size, handle):
        """(errno, what came back, the new object)"""
        ctypes.set_errno(0)
        into, out = ctypes.create_string_buffer(box, len(box)), ctypes.create_string_buffer(size)
        sent, back, made = ctypes.c_size_t(len(box)), ctypes.c_size_t(size), None
        if kind == "create":
            made = self.mlx5.mlx5dv_devx_obj_create(self.context, into, sent, out, back)
            err = 0 if made else ctypes.get_errno()
        elif kind == "general":
            err = self.mlx5.mlx5dv_devx_general_cmd(self.context, into, sent, out, back)
        else:
            call = self.mlx5.mlx5dv_devx_obj_modify if kind == "modify" else self.mlx5.mlx5dv_devx_obj_query
            err = call(ctypes.c_void_p(handle), into, sent, out, back)
        return err, out.raw, made


def put(box, offset, width, value):
    bits = len(box) * 8
    mask = ((1 << width) - 1) << (bits - offset - width)
    return (int.from_bytes(box, "big") & ~mask | value << (bits - offset - width)).to_bytes(len(box), "big")


MKC, KLMS, KLM = 0x80, 0x110, 16  # of CREATE_MKEY: bits, and two times bytes


class Feed:
    TRANSLATED = {"CREATE_CQ": [("CREATE_CQ_UMEM_ID", 0, "umem"), ("CQC_DBR_UMEM_ID", 0x80, "umem"),
                                ("CQC_UAR_PAGE", 0x80, "uar"), ("CQC_C_EQN", 0x80, "eqn")],
                  "CREATE_QP": [("CREATE_QP_UMEM_ID", 0, "umem"), ("QPC_DBR_UMEM_ID", prm.QPC, "umem"),
                                ("QPC_UAR_PAGE", prm.QPC, "uar"), ("QPC_PD", prm.QPC, "pd"),
                                ("QPC_CQN_SND", prm.QPC, "cq"), ("QPC_CQN_RCV", prm.QPC, "cq"),
                                ("QPC_COUNTER_SET", prm.QPC, "counter")],
                  "CREATE_MKEY": [("MKC_PD", MKC, "pd")],
                  "QUERY_Q_COUNTER": [("QUERY_Q_COUNTER_SET", 0, "counter")]}
    MODIFY = [("MODIFY_QP_QPN", 0, "qp"), ("QPC_REMOTE_QPN", prm.QPC, "qp"), ("QPC_COUNTER_SET", prm.QPC, "counter")]
    # What a command makes, and where its number comes back; which object another command is about.
    MADE = {"CREATE_CQ": ("cq", "CREATE_CQ_OUT_CQN"), "CREATE_QP": ("qp", "CREATE_QP_OUT_QPN"),
            "CREATE_MKEY": ("mkey", "CREATE_MKEY_OUT_INDEX"), "ALLOC_Q_COUNTER": ("counter", "ALLOC_Q_COUNTER_OUT_SET")}
    ABOUT = {"QUERY_Q_COUNTER": ("counter", "QUERY_Q_COUNTER_SET")}

    def __init__(self, capture, device):
        self.capture, self.device = capture, device
        self.numbers = {"umem": {i: device.umem(size) for i, (_, size) in capture.umems.items()},
                        "uar": {i: device.uar() for i in capture.uars}, "eqn": {i: device.eqn() for i in capture.eqns},
                        "pd": {}, "cq": {}, "qp": {}, "counter": {}, "mkey": {}}
        self.handles, self.pdn = {}, device.pdn()

    def translate(self, name, box):
        for field, base, kind in self.TRANSLATED.get(name, self.MODIFY if name.endswith("_QP") else []):
            offset, width = rings.at(base, field)
            old = prm.get(box, offset, width)
            new = self.pdn if kind == "pd" else self.numbers[kind].get(old)
            if old and new is not None:
                box = put(box, offset, width, new)
        if name == "CREATE_MKEY":
            box = self.pieces(box)
        if name == "INIT2RTR_QP" and prm.get(box, *rings.at(prm.ADS, "ADS_VHCA_PORT_NUM")):
            path = prm.ADS // 8 + 16
            box = box[:path] + self.device.gid() + box[path + 16:]
        return box

    def pieces(self, box):
        """CREATE_MKEY with keys of regions that hold its pieces."""
        relaxed, ends = prm.get(box, *rings.at(MKC, "MKC_RELAXED")), {}
        entries = [box[i:i + KLM] for i in range(KLMS, len(box) - KLM + 1, KLM)]
        for size, key, start in (self.piece(e) for e in entries):
            if size:
                low, high = ends.get(key, (start, start))
                ends[key] = min(low, start), max(high, start + size)
        keys = {key: self.device.region(low, high - low, relaxed) for key, (low, high) in ends.items()}
        return box[:KLMS] + b"".join(put(e, *prm.FIELDS["KLM_KEY"], keys.get(self.piece(e)[1]) or 0) for e in entries)

    @staticmethod
    def piece(entry):
        return [prm.get(entry, *prm.FIELDS[f]) for f in ("KLM_COUNT", "KLM_KEY", "KLM_ADDRESS")]

    def handle(self, name, sent):
        """The object that a command is about; None: it was not made."""
        kind, field = self.ABOUT.get(name, ("qp", "MODIFY_QP_QPN"))
        return self.handles.get((kind, prm.get(sent, *prm.FIELDS[field])))

    def remember(self, name, got, out, made):
        kind, field = self.MADE[name]
        number = prm.get(got, *prm.FIELDS[field])
        self.numbers[kind][number] = prm.get(out, *prm.FIELDS[field])
        self.handles[kind, number] = made

    def run(self):
        for kind, err, sent, got in self.capture.commands:
            name = prm.opcode(sent)
            if kind == "create" and name not in self.MADE:
                print(f"# {name} is left out: it is not known here")
                continue
            handle = self.handle(name, sent) if kind in ("modify", "query") else None
            if kind in ("modify", "query") and not handle:
                print(f"# {name} is left out: its object was not made")
                continue
            status, out, made = self.device.send(kind, self.translate(name, sent), len(got), handle)
            if made and not err:
                self.remember(name, got, out, made)
            print(f"cmd {kind} {status} {sent.hex()} {out.hex()}")


if __name__ == "__main__":
    prm.load()
    with open(sys.argv[1]) as file:
        feed = Feed(rings.Capture(file.read()), Device())
    feed.run()
    sys.stdout.flush()
    os._exit(0)  # the queues' memory stays until the device is closed, which is with the process
