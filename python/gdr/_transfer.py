# SPDX-License-Identifier: BSD-3-Clause
"""Transfers, signals and order: of arrays, or of addresses of local memory with the other one an array."""
from __future__ import annotations

from ._array import Array
from ._job import checked
from ._library import lib, said
from ._requests import BARRIER_ALL, GET, PUT, PUT_SIGNAL, QUIET, SIGNAL, WAIT, Signal, Wait, ask

EQ, NE, GT, GE, LT, LE = range(6)
SET, ADD = range(2)


def _address(x: Array | int) -> int | None:
    return x.ptr if isinstance(x, Array) else x


def fits(array: Array | int, nbytes: int) -> None:
    """What is smaller would be left behind: there are other objects."""
    if isinstance(array, Array) and array.nbytes < nbytes:
        raise ValueError(f"an array of {array.nbytes} bytes, for {nbytes}")


def put(dst: Array, src: Array | int, pe: int, stream: int | None = None) -> None:
    """dst of pe becomes src, which has as many bytes or more. src may be used again when the call (or, with a stream,
    what it put there) is done; pe has it behind a quiet() here and what tells pe so: a signal, a barrier."""
    fits(src, dst.nbytes)
    if stream is None:
        said("put", lib.gdr_host_put(dst.ptr, _address(src), dst.nbytes, checked(pe)))
    else:
        ask("put", stream, PUT, dst=dst.ptr, src=_address(src), n=dst.nbytes, pe=pe)


def get(dst: Array | int, src: Array, pe: int, stream: int | None = None) -> None:
    """dst, which has as many bytes or more, becomes src of pe: when the call is done, or what it put on the stream."""
    fits(dst, src.nbytes)
    if stream is None:
        said("get", lib.gdr_host_get(_address(dst), src.ptr, src.nbytes, checked(pe)))
    else:
        ask("get", stream, GET, dst=_address(dst), src=src.ptr, n=src.nbytes, pe=pe)


def put_signal(dst: Array, src: Array | int, sig: Array, value: int, op: int, pe: int,
               stream: int | None = None) -> None:
    """put(), and behind it the word sig of pe (of 64 bits) is set to value (op SET) or added to (ADD): who sees the
    signal sees the data."""
    fits(src, dst.nbytes)
    ask("put_signal", stream, PUT_SIGNAL, dst=dst.ptr, src=_address(src), n=dst.nbytes, pe=pe,
        signal=Signal(sig.ptr, value, op))


def signal(sig: Array, value: int, op: int, pe: int, stream: int | None = None) -> None:
    """The word sig of pe is set to value (op SET), or value is added to it (ADD)."""
    ask("signal", stream, SIGNAL, size=8, pe=pe, signal=Signal(sig.ptr, value, op))


def signal_wait(sig: Array, cmp: int, value: int, stream: int | None = None) -> None:
    """Waits until this PE's word sig is EQ, NE, GT, GE, LT or LE value; an Error after GDR_TIMEOUT."""
    ask("signal_wait", stream, WAIT, size=8, wait=Wait(words=sig.ptr, value=value, cmp=cmp))


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
