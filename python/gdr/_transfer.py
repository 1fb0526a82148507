# SPDX-License-Identifier: BSD-3-Clause
"""Transfers, signals and order: of arrays, or of local memory with the other one an array."""
from __future__ import annotations

import struct
from typing import Any, Union

from . import _memory
from ._array import Array
from ._job import checked
from ._library import lib, said
from ._requests import BARRIER_ALL, GET, PUT, PUT_SIGNAL, QUIET, SIGNAL, WAIT, Signal, Wait, ask

EQ, NE, GT, GE, LT, LE = range(6)
SET, ADD = range(2)
FIRST_PAGE = 4096  # where nothing is
Number = Union[int, float]


def bits_of(a: Array, value: Number) -> int:
    """An element of this value, as a number without a sign; ctypes would take any, and cut it."""
    try:
        return int.from_bytes(struct.pack("<" + a._format, value), "little")
    except struct.error as e:
        raise ValueError(f"{value} is no {a.dtype}: {e}") from e


def number_of(a: Array, raw: bytes) -> Number:
    value: Number = struct.unpack_from("<" + a._format, raw)[0]
    return value


def _local(call: str, array: Array, x: Any, writable: bool = False) -> tuple[int | None, Any]:
    """(address, what keeps it) of what is to hold as much as the array; the caller vouches for an address."""
    if isinstance(x, int):
        if 0 <= x < FIRST_PAGE and array.nbytes:
            raise ValueError(f"{call}: {x} is no address, and no memory")
        return x, None
    if isinstance(x, Array):
        _memory.fits(call, (array.dtype, array.nbytes), (x.dtype, x.nbytes))
        return x.ptr, x
    m = _memory.of(x, writable)
    _memory.fits(call, (array.dtype, array.nbytes), (m.dtype, m.nbytes))
    return m.address, m.keep


def put(dst: Array, src: Any, pe: int, stream: int | None = None) -> None:
    """dst of pe becomes src, which has as many bytes or more. src may be used again when the call (or, with a stream,
    what it put there) is done; pe has it behind a quiet() here and what tells pe so: a signal, a barrier.

    src: an array, an address, or memory: what has the buffer protocol (bytes, array.array, numpy), __dlpack__ (torch),
    __array_interface__ or __cuda_array_interface__, without gaps."""
    address, keep = _local("put", dst, src)
    if stream is None:
        said("put", lib.gdr_host_put(dst.ptr, address, dst.nbytes, checked(pe)))
    else:
        ask("put", stream, PUT, dst=dst.ptr, src=address, n=dst.nbytes, pe=checked(pe))
    del keep


def get(dst: Any, src: Array, pe: int, stream: int | None = None) -> None:
    """dst, which has as many bytes or more, becomes src of pe: when the call is done, or what it put on the stream.
    dst: as src of put(), and it can be written."""
    address, keep = _local("get", src, dst, True)
    if stream is None:
        said("get", lib.gdr_host_get(address, src.ptr, src.nbytes, checked(pe)))
    else:
        ask("get", stream, GET, dst=address, src=src.ptr, n=src.nbytes, pe=checked(pe))
    del keep


def put_signal(dst: Array, src: Any, sig: Array, value: int, op: int, pe: int,
               stream: int | None = None) -> None:
    """put(), and behind it the word sig of pe (of 64 bits) is set to value (op SET) or added to (ADD): who sees the
    signal sees the data."""
    address, keep = _local("put_signal", dst, src)
    ask("put_signal", stream, PUT_SIGNAL, dst=dst.ptr, src=address, n=dst.nbytes, pe=checked(pe),
        signal=Signal(_word("put_signal", sig), bits_of(sig, value), op))
    del keep


def _word(call: str, sig: Array) -> int | None:
    if sig.n < 1 or sig.itemsize != 8 or sig._class > 1:
        raise ValueError(f"{call}: a signal is an int64 or uint64, a word of 64 bits, not {sig.n} of {sig.dtype}")
    return sig.ptr


def signal(sig: Array, value: int, op: int, pe: int, stream: int | None = None) -> None:
    """The word sig of pe is set to value (op SET), or value is added to it (ADD)."""
    ask("signal", stream, SIGNAL, size=8, pe=checked(pe), signal=Signal(_word("signal", sig), bits_of(sig, value), op))


def signal_wait(sig: Array, cmp: int, value: int, stream: int | None = None) -> None:
    """Waits until this PE's word sig is EQ, NE, GT, GE, LT or LE value; an Error after GDR_TIMEOUT."""
    word = _word("signal_wait", sig)
    ask("signal_wait", stream, WAIT, size=8, wait=Wait(words=word, value=bits_of(sig, value), cmp=cmp, is_signed=sig._class))


def quiet(stream: int | None = None) -> None:
    """Waits until what this PE put is at its targets."""
    if stream is None:
        said("quiet", lib.gdr_host_quiet())
    else:
        ask("quiet", stream, QUIET)


def barrier_all(stream: int | None = None) -> None:
    """Collective. quiet(), and waits for all PEs of the job; an Error after GDR_TIMEOUT."""
    if stream is None:
        said("barrier_all", lib.gdr_barrier_all())
    else:
        ask("barrier_all", stream, BARRIER_ALL)
