# SPDX-License-Identifier: BSD-3-Clause
"""gdr from Python: bring-up, symmetric arrays, transfers, signals, teams and collectives of host threads, at once or
on a stream. It belongs to the libgdr beside which it is installed (LIBGDR names another one). Functions raise
gdr.Error. Kernels are made by gdr_kernel, or are those of others, to which arrays go by __cuda_array_interface__ or,
on the host device, as memory. With GDR_DEVICE=cuda they are memory of a GPU."""
import ctypes
import os

_lib = ctypes.CDLL(os.environ.get("LIBGDR", "libgdr.so"))

EQ, NE, GT, GE, LT, LE = range(6)
SET, ADD = range(2)
WORLD, SHARED, NODE = range(3)
UNIQUEID_BYTES = 128


class Error(RuntimeError):
    """status: -GDR_E*"""

    def __init__(self, call, status):
        super().__init__(f"{call}: {_lib.gdr_strerror(status).decode()}")
        self.status = status


# ---- the library: host.h, team.h, and requests (gdr/impl/request/request.h), which belong to its version ----

class _Attr(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("heap_size", ctypes.c_size_t), ("transports", ctypes.c_char_p),
                ("bootstrap", ctypes.c_void_p), ("uniqueid", ctypes.c_char_p), ("pe", ctypes.c_int),
                ("n_pes", ctypes.c_int), ("mpi_comm", ctypes.c_void_p), ("ctx_queues", ctypes.c_uint)]


class _Signal(ctypes.Structure):
    _fields_ = [("word", ctypes.c_void_p), ("value", ctypes.c_uint64), ("op", ctypes.c_uint32), ("nbi", ctypes.c_uint32)]


class _Wait(ctypes.Structure):
    _fields_ = [("words", ctypes.c_void_p), ("skip", ctypes.c_void_p), ("values", ctypes.c_void_p),
                ("value", ctypes.c_uint64), ("cmp", ctypes.c_uint32), ("is_signed", ctypes.c_uint32),
                ("from_pe", ctypes.c_uint32)]


class _Coll(ctypes.Structure):
    _fields_ = [("team", ctypes.c_int32), ("root", ctypes.c_int32), ("code", ctypes.c_uint32), ("keep", ctypes.c_uint32),
                ("dst_step", ctypes.c_int64), ("src_step", ctypes.c_int64), ("members", ctypes.c_int32),
                ("member", ctypes.c_int32), ("start", ctypes.c_int32), ("stride", ctypes.c_int32),
                ("words", ctypes.c_void_p), ("ctas_size", ctypes.c_uint32)]


class _OfKind(ctypes.Union):
    """those that are asked for here; _Coll is the largest of all"""
    _fields_ = [("signal", _Signal), ("wait", _Wait), ("coll", _Coll)]


class _Request(ctypes.Structure):
    """all of struct gdri_request: the library copies it whole; tests/python/functions.py compares the two"""
    _anonymous_ = ("of_kind",)
    _fields_ = [("what", ctypes.c_uint32), ("by", ctypes.c_uint32), ("size", ctypes.c_uint32), ("pe", ctypes.c_int32),
                ("dst", ctypes.c_void_p), ("src", ctypes.c_void_p), ("n", ctypes.c_uint64), ("answer", ctypes.c_void_p),
                ("of_kind", _OfKind)]


# enum gdri_what, those that are asked for here; tests/python/functions.py compares
_BARRIER_ALL, _BARRIER, _SYNC, _QUIET, _SIGNAL, _WAIT = 0, 2, 3, 4, 7, 8
_PUT, _GET, _PUT_SIGNAL = 12, 13, 16
_BROADCAST, _COLLECT, _FCOLLECT, _ALLTOALL, _REDUCE, _REDUCESCATTER, _INSCAN, _EXSCAN = 17, 18, 19, 20, 22, 23, 24, 25
_OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6}
# type: format of array and memoryview (floats of 16 bits: their bits), __cuda_array_interface__, class of reduce_op.h
_TYPES = {"int8": ("b", "<i1", 1), "uint8": ("B", "<u1", 0), "int16": ("h", "<i2", 1), "uint16": ("H", "<u2", 0),
          "int32": ("i", "<i4", 1), "uint32": ("I", "<u4", 0), "int64": ("q", "<i8", 1), "uint64": ("Q", "<u8", 0),
          "float16": ("H", "<f2", 2), "bfloat16": ("H", "<V2", 3), "float32": ("f", "<f4", 2),
          "float64": ("d", "<f8", 2)}


def _declare():
    p, i, z = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    for name, result, *args in (
            ("gdr_strerror", ctypes.c_char_p, i), ("gdr_init_attr", i, ctypes.POINTER(_Attr)),
            ("gdr_malloc", p, z), ("gdr_calloc", p, z, z), ("gdr_free", i, p), ("gdr_host_ptr", p, p, i),
            ("gdr_host_put", i, p, p, z, i), ("gdr_host_get", i, p, p, z, i), ("gdr_symmetric_register", p, p, z),
            ("gdr_symmetric_unregister", i, p), ("gdr_get_uniqueid", i, ctypes.c_char_p),
            ("gdri_request_now", i, ctypes.POINTER(_Request), p),
            ("gdri_request_on_stream", i, ctypes.POINTER(_Request), p),
            ("gdr_team_split_strided", i, i, i, i, i, p, ctypes.c_long, ctypes.POINTER(ctypes.c_int32)),
            ("gdr_team_create", i, i, ctypes.POINTER(i), i, p, ctypes.c_long, ctypes.POINTER(ctypes.c_int32)),
            ("gdr_host_team_translate_pe", i, i, i, i), ("gdr_query", i, p)):
        f = getattr(_lib, name)
        f.restype, f.argtypes = result, args


_declare()


def _said(call, status):
    if status < 0:
        raise Error(call, status)
    return status


def _address(x):
    return x.ptr if isinstance(x, Array) else x


def _checked(pe):
    if not 0 <= pe < n_pes():  # the library trusts its callers
        raise ValueError(f"there is no PE {pe}, the job has {n_pes()}")
    return pe


def _ask(call, stream, what, **fields):
    q = _Request(what=what, size=fields.pop("size", 1), **fields)
    if stream is None:
        _said(call, _lib.gdri_request_now(ctypes.byref(q), None))
    else:
        _said(call, _lib.gdri_request_on_stream(ctypes.byref(q), stream))


# ---- bring-up ----

def get_uniqueid():
    """bytes that the other processes of the job are to have"""
    b = ctypes.create_string_buffer(UNIQUEID_BYTES)
    _said("get_uniqueid", _lib.gdr_get_uniqueid(b))
    return b.raw


def init(heap_size=0, transports=None, uniqueid=None, pe=0, n_pes=0):
    """by the launcher, or as PE pe of n_pes of the job of a unique id"""
    keep = ctypes.create_string_buffer(uniqueid, UNIQUEID_BYTES) if uniqueid else None
    a = _Attr(ctypes.sizeof(_Attr), heap_size, transports.encode() if transports else None, None,
              ctypes.cast(keep, ctypes.c_char_p) if keep else None, pe, n_pes, None, 0)
    _said("init", _lib.gdr_init_attr(ctypes.byref(a)))


def finalize():
    _said("finalize", _lib.gdr_finalize())


def my_pe():
    return _said("my_pe", _lib.gdr_host_my_pe())


def n_pes():
    return _said("n_pes", _lib.gdr_host_n_pes())


def on_gpu():
    """whether arrays are memory of a GPU"""
    info = (ctypes.c_char_p * 64)()
    _said("query", _lib.gdr_query(info))
    return info[0] == b"cuda"


# ---- symmetric memory ----

class Array:
    """n elements at the same place of every PE's heap"""

    def __init__(self, ptr, n, dtype, owned):
        self.ptr, self.n, self.dtype, self._owned = ptr, n, dtype, owned
        self._format, self._typestr, self._class = _TYPES[dtype]
        self.itemsize = int(self._typestr[2:])
        self.nbytes = n * self.itemsize

    def __len__(self):
        return self.n

    def __getitem__(self, part):
        """a part of it, from one slice without steps; it has not to be freed"""
        first, last, step = part.indices(self.n)
        if step != 1:
            raise ValueError("parts have no steps")
        return Array((self.ptr or 0) + first * self.itemsize, max(last - first, 0), self.dtype, False)

    @property
    def memory(self):
        """memoryview of this PE's elements; on the host device alone"""
        if on_gpu():
            raise BufferError("memory of a GPU: __cuda_array_interface__, or get()")
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.ptr or 0)).cast("B").cast(self._format)

    @property
    def __cuda_array_interface__(self):
        if not on_gpu():
            raise AttributeError("not memory of a GPU")
        return {"shape": (self.n,), "typestr": self._typestr, "data": (self.ptr or 0, False), "version": 3}

    def at(self, pe):
        """the address at which this PE sees those of pe, or None"""
        return _lib.gdr_host_ptr(self.ptr, pe)

    def free(self):
        if not self._owned:
            raise ValueError("a part of an array")
        _said("free", _lib.gdr_free(self.ptr))
        self.ptr = None


def empty(n, dtype="float32"):
    """n elements; of none there is no memory, but free() is collective as for others"""
    p = _lib.gdr_malloc(n * int(_TYPES[dtype][1][2:]))
    if not p and n:
        raise Error("empty", _lib.gdr_host_status())
    return Array(p, n, dtype, True)


def zeros(n, dtype="float32"):
    p = _lib.gdr_calloc(n, int(_TYPES[dtype][1][2:]))
    if not p and n:
        raise Error("zeros", _lib.gdr_host_status())
    return Array(p, n, dtype, True)


def register(address, nbytes, dtype="uint8"):
    """gdr_symmetric_register: memory of the program as an array"""
    p = _lib.gdr_symmetric_register(address, nbytes)
    if not p:
        raise Error("register", _lib.gdr_host_status())
    return Array(p, nbytes // int(_TYPES[dtype][1][2:]), dtype, False)


def unregister(array):
    _said("unregister", _lib.gdr_symmetric_unregister(array.ptr))


# ---- transfers: arrays, or addresses of local memory with the other one an array ----

def _fits(array, nbytes):
    """what is smaller would be left behind: there are other objects"""
    if isinstance(array, Array) and array.nbytes < nbytes:
        raise ValueError(f"an array of {array.nbytes} bytes, for {nbytes}")


def put(dst, src, pe, stream=None):
    """dst (an array) of pe becomes src, which has as many bytes or more"""
    _fits(src, dst.nbytes)
    if stream is None:
        _said("put", _lib.gdr_host_put(dst.ptr, _address(src), dst.nbytes, _checked(pe)))
    else:
        _ask("put", stream, _PUT, dst=dst.ptr, src=_address(src), n=dst.nbytes, pe=pe)


def get(dst, src, pe, stream=None):
    """dst, which has as many bytes or more, becomes src (an array) of pe"""
    _fits(dst, src.nbytes)
    if stream is None:
        _said("get", _lib.gdr_host_get(_address(dst), src.ptr, src.nbytes, _checked(pe)))
    else:
        _ask("get", stream, _GET, dst=_address(dst), src=src.ptr, n=src.nbytes, pe=pe)


def put_signal(dst, src, sig, value, op, pe, stream=None):
    _fits(src, dst.nbytes)
    _ask("put_signal", stream, _PUT_SIGNAL, dst=dst.ptr, src=_address(src), n=dst.nbytes, pe=pe,
         signal=_Signal(sig.ptr, value, op))


def signal(sig, value, op, pe, stream=None):
    _ask("signal", stream, _SIGNAL, size=8, pe=pe, signal=_Signal(sig.ptr, value, op))


def signal_wait(sig, cmp, value, stream=None):
    _ask("signal_wait", stream, _WAIT, size=8, wait=_Wait(words=sig.ptr, value=value, cmp=cmp))


def quiet(stream=None):
    if stream is None:
        _said("quiet", _lib.gdr_host_quiet())
    else:
        _ask("quiet", stream, _QUIET)


def barrier_all(stream=None):
    if stream is None:
        _said("barrier_all", _lib.gdr_barrier_all())
    else:
        _ask("barrier_all", stream, _BARRIER_ALL)


# ---- teams, collectives ----

class Team:
    def __init__(self, handle):
        self.handle = handle

    def my_pe(self):
        return _lib.gdr_host_team_my_pe(self.handle)

    def n_pes(self):
        return _said("n_pes", _lib.gdr_host_team_n_pes(self.handle))

    def translate(self, pe, other):
        return _lib.gdr_host_team_translate_pe(self.handle, pe, getattr(other, "handle", other))

    def split(self, start, stride, size):
        """PEs start, start + stride, ...; None on those that are not in it"""
        new = ctypes.c_int32(-1)
        _said("split", _lib.gdr_team_split_strided(self.handle, start, stride, size, None, 0, ctypes.byref(new)))
        return Team(new.value) if new.value >= 0 else None

    def create(self, pes):
        new = ctypes.c_int32(-1)
        c = (ctypes.c_int * len(pes))(*pes)
        _said("create", _lib.gdr_team_create(self.handle, c, len(pes), None, 0, ctypes.byref(new)))
        return Team(new.value) if new.value >= 0 else None

    def destroy(self):
        _said("destroy", _lib.gdr_team_destroy(self.handle))

    def barrier(self, stream=None):
        _ask("barrier", stream, _BARRIER, coll=_Coll(self.handle))

    def sync(self, stream=None):
        _ask("sync", stream, _SYNC, coll=_Coll(self.handle))

    def _coll(self, call, what, dst, src, n, stream, into=None, of=None, **more):
        """n elements a PE: of `of` in src, to `into` in dst"""
        if dst.itemsize != src.itemsize:
            raise ValueError(f"{call}: {src.dtype} to {dst.dtype}")
        _fits(dst, (n if into is None else into) * dst.itemsize)
        _fits(src, (n if of is None else of) * src.itemsize)
        _ask(call, stream, what, dst=dst.ptr, src=src.ptr, n=n, size=src.itemsize,
             coll=_Coll(team=self.handle, dst_step=1, src_step=1, **more))

    def broadcast(self, dst, src, root, stream=None):
        self._coll("broadcast", _BROADCAST, dst, src, src.n, stream, root=root)

    def fcollect(self, dst, src, stream=None):
        self._coll("fcollect", _FCOLLECT, dst, src, src.n, stream, into=src.n * self.n_pes())

    def collect(self, dst, src, stream=None):
        self._coll("collect", _COLLECT, dst, src, src.n, stream)

    def alltoall(self, dst, src, stream=None):
        n, rest = divmod(src.n, self.n_pes())
        if rest:
            raise ValueError(f"alltoall: {src.n} elements are no equal parts for {self.n_pes()} PEs")
        self._coll("alltoall", _ALLTOALL, dst, src, n, stream, into=src.n)

    def _code(self, array, op):
        return _OPS[op] << 8 | array._class << 4 | array.itemsize.bit_length() - 1

    def reduce(self, dst, src, op="sum", stream=None):
        self._coll("reduce", _REDUCE, dst, src, src.n, stream, code=self._code(src, op))

    def reducescatter(self, dst, src, op="sum", stream=None):
        self._coll("reducescatter", _REDUCESCATTER, dst, src, dst.n, stream, of=dst.n * self.n_pes(),
                   code=self._code(src, op))

    def scan(self, dst, src, exclusive=False, stream=None):
        self._coll("scan", _EXSCAN if exclusive else _INSCAN, dst, src, src.n, stream, code=self._code(src, "sum"))


world, shared, node = Team(WORLD), Team(SHARED), Team(NODE)
