# SPDX-License-Identifier: BSD-3-Clause
"""Requests of host threads (gdr/impl/request/request.h), which belong to the version of the library;
tests/python/functions.py compares the two."""
from __future__ import annotations

import ctypes
from typing import Any

from ._library import lib, said


class Signal(ctypes.Structure):
    _fields_ = [("word", ctypes.c_void_p), ("value", ctypes.c_uint64), ("op", ctypes.c_uint32), ("nbi", ctypes.c_uint32)]


class Wait(ctypes.Structure):
    _fields_ = [("words", ctypes.c_void_p), ("skip", ctypes.c_void_p), ("values", ctypes.c_void_p),
                ("value", ctypes.c_uint64), ("cmp", ctypes.c_uint32), ("is_signed", ctypes.c_uint32),
                ("from_pe", ctypes.c_uint32), ("set", ctypes.c_uint32)]


class Strided(ctypes.Structure):
    _fields_ = [("dst_step", ctypes.c_int64), ("src_step", ctypes.c_int64), ("block", ctypes.c_uint64)]


class Atomic(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_uint64), ("compare", ctypes.c_uint64), ("kind", ctypes.c_uint32)]


class Lock(ctypes.Structure):
    _fields_ = [("call", ctypes.c_uint32)]


class Coll(ctypes.Structure):
    _fields_ = [("team", ctypes.c_int32), ("root", ctypes.c_int32), ("code", ctypes.c_uint32), ("keep", ctypes.c_uint32),
                ("dst_step", ctypes.c_int64), ("src_step", ctypes.c_int64), ("members", ctypes.c_int32),
                ("member", ctypes.c_int32), ("start", ctypes.c_int32), ("stride", ctypes.c_int32),
                ("words", ctypes.c_void_p), ("ctas_size", ctypes.c_uint32)]


class OfKind(ctypes.Union):
    """Those that are asked for here; Coll is the largest of all."""
    _fields_ = [("value", ctypes.c_uint64 * 2), ("signal", Signal), ("strided", Strided), ("atomic", Atomic),
                ("wait", Wait), ("lock", Lock), ("coll", Coll)]


class Request(ctypes.Structure):
    """All of struct gdri_request: the library copies it whole."""
    _anonymous_ = ("of_kind",)
    _fields_ = [("what", ctypes.c_uint32), ("by", ctypes.c_uint32), ("size", ctypes.c_uint32), ("pe", ctypes.c_int32),
                ("dst", ctypes.c_void_p), ("src", ctypes.c_void_p), ("n", ctypes.c_uint64), ("answer", ctypes.c_void_p),
                ("of_kind", OfKind)]


# enum gdri_what, those that are asked for here
BARRIER_ALL, BARRIER, SYNC, QUIET, P, G, SIGNAL, WAIT, AMO, FETCH_AMO, LOCK = 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
PUT, GET, IPUT, IGET, PUT_SIGNAL = 12, 13, 14, 15, 16
BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, REDUCE, REDUCESCATTER, INSCAN, EXSCAN = range(17, 26)
OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6}


def code(array: Any, op: str) -> int:
    """GDRI_REDUCE_CODE of the array's elements"""
    if op not in OPS:
        raise ValueError(f"there is no operation {op!r}: {', '.join(OPS)}")
    if op in ("and", "or", "xor") and array._class > 1:
        raise ValueError(f"{op} is of integers, not of {array.dtype}")
    made: int = OPS[op] << 8 | array._class << 4 | array.itemsize.bit_length() - 1
    return made


def ask(call: str, stream: int | None, what: int, size: int = 1, **fields: Any) -> None:
    """Without a stream the request is done when this returns; with one when what lies on the stream before is."""
    q = Request(what=what, size=size, **fields)
    if stream is None:
        said(call, lib.gdri_request_now(ctypes.byref(q), None))
    else:
        said(call, lib.gdri_request_on_stream(ctypes.byref(q), stream))
