# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory."""
from __future__ import annotations

import ctypes
from typing import Any

from ._job import on_gpu
from ._library import Error, lib, said

# type: format of array and memoryview (floats of 16 bits: their bits), __cuda_array_interface__, class of reduce_op.h
TYPES = {"int8": ("b", "<i1", 1), "uint8": ("B", "<u1", 0), "int16": ("h", "<i2", 1), "uint16": ("H", "<u2", 0),
         "int32": ("i", "<i4", 1), "uint32": ("I", "<u4", 0), "int64": ("q", "<i8", 1), "uint64": ("Q", "<u8", 0),
         "float16": ("H", "<f2", 2), "bfloat16": ("H", "<V2", 3), "float32": ("f", "<f4", 2),
         "float64": ("d", "<f8", 2)}


class Array:
    """Elements at the same place of every PE's heap. It lives until free() or finalize(), whatever refers to it."""

    def __init__(self, ptr: int | None, n: int, dtype: str, owned: bool):
        self.ptr, self.n, self.dtype, self._owned = ptr, n, dtype, owned
        self._format, self._typestr, self._class = TYPES[dtype]
        self.itemsize = int(self._typestr[2:])
        self.nbytes = n * self.itemsize

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, part: slice) -> Array:
        """A part of it, from one slice without steps; it has not to be freed."""
        first, last, step = part.indices(self.n)
        if step != 1:
            raise ValueError("parts have no steps")
        return Array((self.ptr or 0) + first * self.itemsize, max(last - first, 0), self.dtype, False)

    @property
    def memory(self) -> memoryview:
        """This PE's elements; on the host device alone."""
        if on_gpu():
            raise BufferError("memory of a GPU: __cuda_array_interface__, or get()")
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.ptr or 0)).cast("B").cast(self._format)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not on_gpu():
            raise AttributeError("not memory of a GPU")
        return {"shape": (self.n,), "typestr": self._typestr, "data": (self.ptr or 0, False), "version": 3}

    def at(self, pe: int) -> int | None:
        """The address at which this PE sees those of pe; None where it is reached through the NIC alone."""
        return lib.gdr_host_ptr(self.ptr, pe)

    def free(self) -> None:
        """Collective, the same array on all PEs. Parts of it must not be used any more."""
        if not self._owned:
            raise ValueError("a part of an array")
        said("free", lib.gdr_free(self.ptr))
        self.ptr = None


def _made(call: str, ptr: int | None, n: int, dtype: str) -> Array:
    if not ptr and n:
        raise Error(call, lib.gdr_host_status())
    return Array(ptr, n, dtype, True)


def empty(n: int, dtype: str = "float32") -> Array:
    """Collective, with the same arguments on all PEs. Of no elements there is no memory, but free() is collective as
    for others."""
    return _made("empty", lib.gdr_malloc(n * int(TYPES[dtype][1][2:])), n, dtype)


def zeros(n: int, dtype: str = "float32") -> Array:
    """As empty(), of zeros."""
    return _made("zeros", lib.gdr_calloc(n, int(TYPES[dtype][1][2:])), n, dtype)


def register(address: int, nbytes: int, dtype: str = "uint8") -> Array:
    """Collective. gdr_symmetric_register: memory of the program (whole pages, of the same size on all PEs) becomes
    symmetric. Operations take the array that is returned; unregister() ends that."""
    p = lib.gdr_symmetric_register(address, nbytes)
    if not p:
        raise Error("register", lib.gdr_host_status())
    return Array(p, nbytes // int(TYPES[dtype][1][2:]), dtype, False)


def unregister(array: Array) -> None:
    """Collective. The memory is the program's alone again, with what it holds."""
    said("unregister", lib.gdr_symmetric_unregister(array.ptr))
