# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory."""
from __future__ import annotations

import ctypes
import math
import operator
import sys
import weakref
from typing import Any, NoReturn, Sequence, SupportsIndex, Union

from . import _dlpack, _job, _memory
from ._job import my_pe, on_gpu
from ._library import Error, lib, said

# type: format of array and memoryview (floats of 16 bits: their bits), __cuda_array_interface__, class of reduce_op.h
TYPES = {"int8": ("b", "<i1", 1), "uint8": ("B", "<u1", 0), "int16": ("h", "<i2", 1), "uint16": ("H", "<u2", 0),
         "int32": ("i", "<i4", 1), "uint32": ("I", "<u4", 0), "int64": ("q", "<i8", 1), "uint64": ("Q", "<u8", 0),
         "float16": ("H", "<f2", 2), "bfloat16": ("H", "<V2", 3), "float32": ("f", "<f4", 2),
         "float64": ("d", "<f8", 2)}
Shape = Union[SupportsIndex, Sequence[SupportsIndex]]


def _name(dtype: Any) -> str:
    """Of a type: its name, or numpy's or torch's object of that name."""
    name = dtype
    if not isinstance(dtype, str):  # numpy.dtype("float32"), numpy.float32, torch.float32
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    if name not in TYPES or not getattr(dtype, "isnative", True):
        raise ValueError(f"there is no type {dtype!r}: {', '.join(TYPES)}, in this machine's order of bytes")
    return str(name)


def _size(dtype: str) -> int:
    return int(TYPES[dtype][1][2:])


def _lengths(shape: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, shape if hasattr(shape, "__iter__") else (shape,)))


def _shape(shape: Shape) -> tuple[int, ...]:
    t = _lengths(shape)
    if any(n < 0 for n in t):
        raise ValueError(f"shape {t} has a negative length")
    return t


class _Life:
    """What an array and its parts share."""

    def __init__(self) -> None:
        self.views: Any = weakref.WeakValueDictionary()
        self.ended = ""  # by which call
        self.job = _job.jobs  # the next one has other memory at the address


class Array:
    """Elements without gaps, at the same place of every PE's heap. It lives until free() or finalize(), whatever refers to
    it; while there are views of it on the host device (memory, numpy, DLPack) free() is refused."""

    def __init__(self, ptr: int | None, shape: Shape, dtype: Any, owned: bool, life: _Life | None = None):
        self._ptr, self.shape, self.dtype, self._owned = ptr, _shape(shape), _name(dtype), owned
        self._format, self._typestr, self._class = TYPES[self.dtype]
        self.n = math.prod(self.shape)
        self.itemsize = _size(self.dtype)
        self.nbytes = self.n * self.itemsize
        self.keep: Any = None  # what has the memory, where that is the program's
        self._life = life or _Life()

    def __repr__(self) -> str:
        return f"<gdr.Array {self.shape} {self.dtype} at {self._ptr or 0:#x}>"

    @property
    def ptr(self) -> int | None:
        """The address here, None of no elements. All uses ask for it, so that behind free() each is a ValueError."""
        if self._life.ended:
            raise ValueError(f"{self!r}: the array was {self._life.ended}")
        if self._life.job != _job.jobs:
            raise ValueError(f"{self!r}: the array is of a job that finalize() ended")
        return self._ptr

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __reduce__(self) -> NoReturn:
        """Of copy and pickle, whose copy would be the same memory."""
        raise TypeError(f"{self!r} is memory that all PEs have: gdr.empty() on all of them, and gdr.put() or get(), copy it; "
                        "on the host device numpy.array() and bytes(array.memory) are copies of this PE's elements")

    def __setitem__(self, part: Any, value: Any) -> NoReturn:
        raise TypeError("an array is not assigned to: gdr.p(a[i:], x, pe) and gdr.put(a[i:j], x, pe) write it, of pe "
                        "gdr.my_pe(), too; on the host device a.memory[i] = x and numpy.asarray(a)[...] = x write this PE's")

    def __getitem__(self, part: SupportsIndex | slice) -> Array:
        """A part of it, from one slice of the first dimension without steps, or one of its rows; it has not to be
        freed."""
        n = len(self)
        row = self.nbytes // n if n else 0
        if isinstance(part, slice):
            first, last, step = part.indices(n)
            if step != 1:
                raise ValueError("parts have no steps")
            shape = (max(last - first, 0), *self.shape[1:])
        else:
            row_at, shape = operator.index(part), self.shape[1:]
            first = row_at + n if row_at < 0 else row_at
            if not 0 <= first < n:
                raise IndexError(f"there is no row {part}, the array has {n}")
        return Array((self.ptr or 0) + first * row, shape, self.dtype, False, self._life)

    def reshape(self, *shape: Any) -> Array:
        """The elements as an array of another shape, of which one length may be -1; it has not to be freed."""
        want = list(_lengths(shape[0] if len(shape) == 1 else shape))
        if want.count(-1) == 1:
            rest = -math.prod(want)
            want[want.index(-1)] = self.n // rest if rest else 0
        if any(n < 0 for n in want) or math.prod(want) != self.n:
            raise ValueError(f"shape {tuple(shape)} is not of {self.n} elements, as {self.shape} is")
        return Array(self.ptr, want, self.dtype, False, self._life)

    def _view(self) -> Any:
        """The bytes, as an object that counts as a view."""
        view = (ctypes.c_ubyte * self.nbytes).from_address(self.ptr or 0)
        self._life.views[id(view)] = view
        return view

    @property
    def memory(self) -> Any:
        """A memoryview of this PE's elements; on the host device alone. Floats of 16 bits are their bits."""
        if on_gpu():
            raise BufferError("memory of a GPU: __cuda_array_interface__, or get()")
        flat: Any = memoryview(self._view()).cast("B")
        return flat.cast(self._format, self.shape) if self.n and self.shape else flat.cast(self._format)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """numpy.asarray(array) is a view, on the host device."""
        if on_gpu():
            raise AttributeError("memory of a GPU: __cuda_array_interface__, or get()")
        return {"shape": self.shape, "typestr": self._typestr, "version": 3,
                "data": self._view() if self.n else (self.ptr or 0, False)}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not on_gpu():
            raise AttributeError("not memory of a GPU")
        return {"shape": self.shape, "typestr": self._typestr, "data": (self.ptr or 0, False), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return _device(self.ptr)

    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        """A capsule of these elements, not of a copy. What others wrote is there behind a signal or a barrier: streams
        are not ordered here."""
        device = _device(self.ptr)
        if copy or (dl_device is not None and tuple(dl_device) != device):
            raise BufferError(f"an array is handed on as it is, on device {device}")
        return _dlpack.capsule(self.ptr or 0, self.shape, self.dtype, device, self._view())

    def at(self, pe: int) -> int | None:
        """The address at which this PE sees those of pe; None where it is reached through the NIC alone."""
        address: int | None = lib.gdr_host_ptr(self.ptr, _job.checked(pe))
        return address

    def free(self) -> None:
        """Collective, the same array on all PEs. It and its parts are refused from then on. A BufferError where views
        are left (memory, numpy, DLPack): it was not freed, here."""
        if not self._owned:
            raise ValueError("a part of an array")
        if len(self._life.views):
            raise BufferError(f"{len(self._life.views)} views of {self!r} are in use: free() it when they are gone")
        said("free", lib.gdr_free(self.ptr))
        self._life.ended = "freed"


def _device(ptr: int | None) -> tuple[int, int]:
    """DLPack's, of memory"""
    if not on_gpu():
        return _dlpack.CPU, 0
    ordinal = ctypes.c_int()
    cuda = ctypes.CDLL("libcuda.so.1")
    if cuda.cuPointerGetAttribute(ctypes.byref(ordinal), 9, ctypes.c_uint64(ptr or 0)):  # _DEVICE_ORDINAL
        raise BufferError(f"the driver knows no device of {ptr or 0:#x}")
    return _dlpack.CUDA, ordinal.value


def _bytes(call: str, shape: tuple[int, ...], dtype: str) -> int:
    """What a heap is asked for: C's numbers would wrap."""
    n: int = math.prod(shape) * _size(dtype)
    if n > sys.maxsize:
        raise ValueError(f"{call}: shape {shape} of {dtype} is {n} bytes")
    return n


def _made(call: str, ptr: int | None, shape: tuple[int, ...], dtype: str) -> Array:
    if not ptr and 0 not in shape:
        raise Error(call, lib.gdr_host_status())
    return Array(ptr, shape, dtype, True)


def empty(shape: Shape, dtype: Any = "float32") -> Array:
    """Collective, with the same arguments on all PEs: elements that nobody has set. shape: how many, or a tuple. dtype: a name,
    or numpy's or torch's type of that name. Of no elements there is no memory, but free() is collective as for others."""
    t, name = _shape(shape), _name(dtype)
    return _made("empty", lib.gdr_malloc(_bytes("empty", t, name)), t, name)


def zeros(shape: Shape, dtype: Any = "float32") -> Array:
    """As empty(), of zeros."""
    t, name = _shape(shape), _name(dtype)
    return _made("zeros", lib.gdr_calloc(_bytes("zeros", t, name), 1), t, name)


def from_dlpack(x: Any) -> Array:
    """An array that is the memory of x (an object with __dlpack__), which is symmetric already: a tensor over one of
    this module's arrays, whole or a part without gaps. Of others: register(), or zeros() and put()."""
    address, shape, dtype, _, _ = _dlpack.read(x)
    _name(dtype)
    nbytes = math.prod(shape) * _size(dtype)
    if nbytes and not (lib.gdr_host_ptr(address, my_pe()) and lib.gdr_host_ptr(address + nbytes - 1, my_pe())):
        raise ValueError(f"memory of {nbytes} bytes of {dtype} at {address:#x} is not symmetric: make it with gdr.zeros() "
                         "or gdr.torch.zeros(), or register() it")
    return Array(address, shape, dtype, False)


def register(memory: Any, nbytes: int | None = None, dtype: Any = None) -> Array:
    """Collective. gdr_symmetric_register: memory of the program (whole pages, of the same size on all PEs; an address and
    bytes, or what put() takes, too) becomes symmetric. Operations take the array that is returned; unregister() ends
    that, and the memory must live until then."""
    m = _memory.Memory(memory, (), nbytes or 0, "", None) if isinstance(memory, int) else _memory.of(memory, True)
    kind = _name(dtype) if dtype is not None else m.dtype if m.dtype in TYPES else "uint8"
    p = lib.gdr_symmetric_register(m.address, m.nbytes)
    if not p:
        raise Error("register", lib.gdr_host_status())
    shape = m.shape if kind == m.dtype else m.nbytes // _size(kind)
    a = Array(p, shape, kind, False)
    a.keep = m.keep
    return a


def unregister(array: Array) -> None:
    """Collective. The memory is the program's alone again, with what it holds."""
    said("unregister", lib.gdr_symmetric_unregister(array.ptr))
    array._life.ended = "unregistered"
