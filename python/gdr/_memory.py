# SPDX-License-Identifier: BSD-3-Clause
"""Local memory of others: what has an address, by whichever protocol says so."""
from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, NamedTuple

from . import _dlpack

_FORMATS = {"b": "int8", "B": "uint8", "c": "uint8", "?": "uint8", "h": "int16", "H": "uint16", "e": "float16",
            "f": "float32", "d": "float64"}
_KINDS = {"i": "int", "u": "uint", "f": "float"}
_FOREIGN = ">" if sys.byteorder == "little" else "<"  # the order of bytes that is not this machine's


class _PyBuffer(ctypes.Structure):
    """Py_buffer"""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_api = ctypes.pythonapi
_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int)(
    ("PyObject_GetBuffer", _api))
_release = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_PyBuffer))(("PyBuffer_Release", _api))
_SIMPLE, _WRITABLE = 0, 1


class Memory(NamedTuple):
    """Elements without gaps. dtype: the object's own name of a type that gdr has not. keep: what keeps them."""
    address: int
    shape: tuple[int, ...]
    nbytes: int
    dtype: str
    keep: Any


def _of_interface(i: dict[str, Any], keep: Any) -> Memory:
    """__array_interface__, __cuda_array_interface__"""
    order, kind, size = i["typestr"][0], i["typestr"][1], int(i["typestr"][2:])
    shape = tuple(i["shape"])
    step = size
    for n, stride in zip(reversed(shape), reversed(i.get("strides") or ())):
        if n != 1 and stride != step and 0 not in shape:
            raise ValueError(f"memory with gaps: shape {shape}, strides {i['strides']} bytes")
        step *= n
    if order == _FOREIGN or kind not in _KINDS:
        dtype = "uint8" if kind == "b" else "bfloat16" if i["typestr"] == "<V2" else i["typestr"]
    else:
        dtype = f"{_KINDS[kind]}{8 * size}"
    return Memory(i["data"][0], shape, math.prod(shape) * size, dtype, keep)


class _Buffer:
    """A buffer that is held until this goes."""

    def __init__(self, x: Any, flags: int):
        self.view = _PyBuffer()
        _get_buffer(x, ctypes.byref(self.view), flags)  # raises by itself

    def __del__(self) -> None:
        _release(ctypes.byref(self.view))


def _of_buffer(x: Any, writable: bool) -> Memory:
    v = memoryview(x)
    if not v.c_contiguous:
        raise ValueError(f"memory with gaps: shape {v.shape}, strides {v.strides} bytes")
    if writable and v.readonly:
        raise ValueError(f"{type(x).__name__}: memory that cannot be written")
    b = _Buffer(x, _WRITABLE if writable else _SIMPLE)
    code = v.format.lstrip("@=" + "<>".replace(_FOREIGN, ""))
    dtype = _FORMATS.get(code, v.format)
    if code in tuple("iIlLqQ"):
        dtype = ("uint" if code.isupper() else "int") + str(8 * v.itemsize)
    return Memory(b.view.buf or 0, tuple(v.shape or ()), v.nbytes, dtype, b)


def of(x: Any, writable: bool = False) -> Memory:
    """The memory of an object; a TypeError names what objects may have."""
    i = getattr(x, "__cuda_array_interface__", None)
    if i is not None:
        return _of_interface(i, x)
    try:
        memoryview(x)
    except TypeError:
        pass
    else:
        return _of_buffer(x, writable)
    i = getattr(x, "__array_interface__", None)
    if i is not None and isinstance(i["data"], tuple):
        if writable and i["data"][1]:
            raise ValueError(f"{type(x).__name__}: memory that cannot be written")
        return _of_interface(i, x)
    if hasattr(x, "__dlpack__"):
        address, shape, dtype, _, keep = _dlpack.read(x)
        return Memory(address, shape, math.prod(shape) * int(_dlpack.type_of(dtype)[1]) // 8, dtype, keep)
    raise TypeError(f"{type(x).__name__} is no memory: it is an Array, an address, or has the buffer protocol, "
                    "__dlpack__, __array_interface__ or __cuda_array_interface__")


def fits(call: str, array: tuple[str, int], other: tuple[str, int]) -> None:
    """(dtype, bytes) of an array, and of what is to hold as much or more: bytes hold everything but references to objects,
    uint16 floats' bits."""
    (t, n), (u, m) = array, other
    if m < n:
        raise ValueError(f"{call}: {m} bytes of {u}, for an array of {n} bytes of {t}")
    if t == u or ("O" not in u and ("uint8" in (t, u) or "int8" in (t, u))):
        return
    if "uint16" in (t, u) and {t, u} & {"float16", "bfloat16"}:
        return
    raise ValueError(f"{call}: memory of {u}, for an array of {t}")
