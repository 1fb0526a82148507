# SPDX-License-Identifier: BSD-3-Clause
"""DLPack's capsules, made and read: dlpack.h, the layout without version, which all readers know."""
from __future__ import annotations

import atexit
import ctypes
from typing import Any

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_NAME, _USED = b"dltensor", b"used_dltensor"
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    """What the tensor's reader deletes by its deleter. `holder` is what keeps the memory, for as long."""
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
    holder: Any


_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_exported: dict[int, _Managed] = {}


def _drop(address: int) -> None:
    _exported.pop(address, None)


def _drop_unread(capsule: int) -> None:
    """A capsule goes: if nobody took the tensor out, it goes, too."""
    if _valid(capsule, _NAME):
        _exported.pop(_pointer(capsule, _NAME), None)


_delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_drop)
_unread = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop_unread)


@atexit.register
def _end() -> None:
    """Tensors may outlive the interpreter: they find no deleter, and their structs stay."""
    for managed in _exported.values():
        managed.deleter = None
        _api.Py_IncRef(ctypes.py_object(managed))


def type_of(dtype: str) -> tuple[int, int]:
    """(code, bits)"""
    word = dtype.rstrip("0123456789")
    return _CODES[word], int(dtype[len(word):])


def capsule(address: int, shape: tuple[int, ...], dtype: str, device: tuple[int, int], holder: Any) -> Any:
    """Of elements without gaps, which holder keeps."""
    m = _Managed()
    code, bits = type_of(dtype)
    m.dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    m.tensor = _Tensor(address, *device, len(shape), code, bits, 1, m.dims, None, 0)
    m.deleter, m.holder = ctypes.cast(_delete, ctypes.c_void_p), holder
    _exported[ctypes.addressof(m)] = m
    return _new(ctypes.addressof(m), _NAME, ctypes.cast(_unread, ctypes.c_void_p))


def read(x: Any) -> tuple[int, tuple[int, ...], str, tuple[int, int], Any]:
    """(address, shape, dtype, device, what keeps the memory) of an object with __dlpack__; it has no gaps"""
    c = x.__dlpack__()
    m = _Managed.from_address(_pointer(id(c), _NAME))
    t = m.tensor
    shape, step = tuple(t.shape[:t.ndim]), 1
    for i in reversed(range(t.ndim if t.strides and 0 not in shape else 0)):
        if shape[i] != 1 and t.strides[i] != step:
            raise ValueError(f"memory with gaps: shape {shape}, strides {tuple(t.strides[:t.ndim])}")
        step *= shape[i]
    word = {v: k for k, v in _CODES.items()}.get(t.code)
    if not word or t.lanes != 1:
        raise ValueError(f"DLPack's type {t.code} of {t.bits} bits is none of gdr's")
    return (t.data or 0) + t.byte_offset, shape, f"{word}{t.bits}", (t.device, t.device_id), c
