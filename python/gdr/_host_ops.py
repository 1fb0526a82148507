# SPDX-License-Identifier: BSD-3-Clause
"""gdr/host_ops.h by the type of arrays: single elements, strides, atomics, waits for several words, locks."""
from __future__ import annotations

import array
import ctypes
import operator
from typing import Any, Sequence

from . import _requests as rq
from ._array import Array
from ._job import checked
from ._library import Error, lib, said
from ._transfer import Number, _local, bits_of, number_of

_ETIMEOUT, _NO_LIMIT = -20, (1 << 64) - 1
_KINDS = {"set": 0, "fetch": 1, "add": 2, "swap": 3, "compare_swap": 4, "and": 5, "or": 6, "xor": 7}  # enum gdri_amo
_COMBINE = 1 << 16
_HOW = {"all": 1, "any": 2, "some": 3}  # enum gdri_words
_VECTOR, _TEST = 4, 8


def _call(what: int, to: Any = None, limit_ns: int = _NO_LIMIT, **fields: Any) -> int:
    q = rq.Request(what=what, **fields)
    return int(lib.gdri_host_call(ctypes.byref(q), limit_ns, to))


def _one(call: str, a: Array) -> int | None:
    if a.n < 1:
        raise ValueError(f"{call}: an array without elements")
    return a.ptr


def p(dst: Array, value: Number, pe: int) -> None:
    """The first element of dst at pe becomes value, by the next quiet(). Floats of 16 bits: their bits, here and in g()."""
    said("p", _call(rq.P, dst=_one("p", dst), n=1, size=dst.itemsize, pe=checked(pe), value=(bits_of(dst, value), 0)))


def g(src: Array, pe: int) -> Number:
    """The first element of src at pe."""
    bits = ctypes.create_string_buffer(16)
    said("g", _call(rq.G, bits, src=_one("g", src), n=1, size=src.itemsize, pe=checked(pe)))
    return number_of(src, bits.raw)


def _strided(call: str, what: int, array: Array, step: int, other: Any, other_step: int, n: int, block: int, pe: int,
             is_put: bool) -> None:
    if min(step, other_step, n, block) < 0:
        raise ValueError(f"{call}: steps {step} and {other_step}, {n} blocks of {block}: none may be negative")
    needed, others = ((n - 1) * s + block if n and block else 0 for s in (step, other_step))
    if array.n < needed:
        raise ValueError(f"{call}: {array!r} has {array.n} elements, {needed} are needed")
    address, keep = _local(call, Array(None, others, array.dtype, False), other, not is_put)
    dst, src = (array.ptr, address) if is_put else (address, array.ptr)
    steps = rq.Strided(*((step, other_step) if is_put else (other_step, step)), max(block, 1))
    said(call, _call(what, dst=dst, src=src, n=n if block else 0, size=array.itemsize, pe=checked(pe), strided=steps))
    del keep


def iput(dst: Array, src: Any, dst_step: int, src_step: int, n: int, pe: int, block: int = 1) -> None:
    """n elements of src, each src_step behind the last, go to dst of pe, dst_step apart; block: so many that lie together
    instead of each. src: as of put(), with elements of dst's type."""
    _strided("iput", rq.IPUT, dst, dst_step, src, src_step, n, block, pe, True)


def iget(dst: Any, src: Array, dst_step: int, src_step: int, n: int, pe: int, block: int = 1) -> None:
    """As iput(), from src of pe to dst here."""
    _strided("iget", rq.IGET, src, src_step, dst, dst_step, n, block, pe, False)


def _atomic(call: str, what: int, word: Array, op: str, value: Number, cond: Number, pe: int, old: Any = None) -> None:
    if word.itemsize < 4 or word._class > 2:
        raise ValueError(f"{call}: of integers of 32 and 64 bits, float32 and float64, not of {word.dtype}")
    kind = _KINDS.get(op)
    if kind is None or (op == "add" and word._class == 2):
        kind = _COMBINE | rq.code(word, {"add": "sum"}.get(op, op))
    elif kind > 4:
        rq.code(word, op)  # refuses floats
    said(call, _call(what, old, dst=_one(call, word), n=1, size=word.itemsize, pe=checked(pe),
                     atomic=rq.Atomic(bits_of(word, value), bits_of(word, cond), kind)))


def atomic(word: Array, op: str, value: Number, pe: int) -> None:
    """The first element of word at pe is set, or value is combined with it, by the next quiet(). op: set, add, min, max; of
    integers and, or, xor."""
    if op not in ("set", "add", "min", "max", "and", "or", "xor"):
        raise ValueError(f"atomic: there is no operation {op!r}: set, add, min, max, and, or, xor")
    _atomic("atomic", rq.AMO, word, op, value, 0, pe)


def atomic_fetch(word: Array, op: str = "fetch", value: Number = 0, pe: int = 0, cond: Number = 0) -> Number:
    """As atomic(), and what the element was before. op: fetch (alone), swap, compare_swap (if it is cond), add, min, max; of
    integers and, or, xor."""
    if op not in ("fetch", "swap", "compare_swap", "add", "min", "max", "and", "or", "xor"):
        raise ValueError(f"atomic_fetch: there is no operation {op!r}: fetch, swap, compare_swap, add, min, max, and, or, xor")
    old = ctypes.create_string_buffer(16)
    _atomic("atomic_fetch", rq.FETCH_AMO, word, op, value, cond, pe, old)
    return number_of(word, old.raw)


def _look(call: str, words: Array, cmp: int, value: Number | Sequence[Number], how: str, skip: Sequence[Any] | None,
          limit_ns: int, is_test: bool) -> Any:
    if how not in _HOW or words.itemsize < 2 or words._class > 1:
        raise ValueError(f"{call}: all, any or some of integers of 16 to 64 bits, not {how} of {words.dtype}")
    one = not hasattr(value, "__len__")
    for name, x in ("value", None if one else value), ("skip", skip):
        if x is not None and len(x) != words.n:  # type: ignore[arg-type]
            raise ValueError(f"{call}: {name} is of {len(x)} words, there are {words.n}")  # type: ignore[arg-type]
    try:
        values = None if one else array.array(words._format, map(operator.index, value))  # type: ignore[arg-type]
    except OverflowError as e:
        raise ValueError(f"{call}: value {value} is not of {words.dtype}: {e}") from e
    skips = None if skip is None else array.array("i", [bool(s) for s in skip])
    if one:
        bits_of(words, value)  # type: ignore[arg-type]
    indices, found = (ctypes.c_size_t * max(words.n, 1))(), ctypes.c_size_t()
    wait = rq.Wait(words=words.ptr, skip=skips and skips.buffer_info()[0], values=values and values.buffer_info()[0],
                   value=operator.index(value) & _NO_LIMIT if one else 0, cmp=cmp, is_signed=words._class,  # type: ignore[arg-type]
                   set=_HOW[how] | (0 if one else _VECTOR) | (_TEST if is_test else 0))
    ret = _call(rq.WAIT, ctypes.byref(found), limit_ns, n=words.n, size=words.itemsize, wait=wait,
                dst=ctypes.addressof(indices))
    if ret and (ret != _ETIMEOUT or limit_ns == _NO_LIMIT):
        raise Error(call, ret)
    if how == "all":
        return not ret
    if how == "some":
        return list(indices[:found.value])
    return None if found.value >= words.n else found.value


def wait(words: Array, cmp: int, value: Number | Sequence[Number], how: str = "all", skip: Sequence[Any] | None = None,
         limit: float | None = None) -> Any:
    """Waits until own words are EQ, NE, GT, GE, LT or LE value: one for all, or one for each. how: "all" (returns whether they
    are), "any" (the index of one, or None), "some" (a list of indices, at least one). skip: where true, that word does not
    count. limit: seconds, behind which it returns False, None or []; an Error after GDR_TIMEOUT."""
    if limit is not None and not limit >= 0:  # nor no number
        raise ValueError(f"wait: a limit of {limit} s")
    limit_ns = _NO_LIMIT if limit is None else int(min(limit, 1e9) * 1e9)
    return _look("wait", words, cmp, value, how, skip, limit_ns, False)


def test(words: Array, cmp: int, value: Number | Sequence[Number], how: str = "all", skip: Sequence[Any] | None = None) -> Any:
    """As wait(), but it looks once."""
    return _look("test", words, cmp, value, how, skip, 0, True)


def _lock(call: str, of: int, lock: Array) -> int:
    if lock.n < 1 or lock.itemsize != 8:
        raise ValueError(f"{call}: a lock is a word of 64 bits, zero at first, not {lock.n} of {lock.dtype}")
    busy = ctypes.c_uint64()
    said(call, _call(rq.LOCK, ctypes.byref(busy), dst=lock.ptr, n=1, size=8, lock=rq.Lock(of)))
    return busy.value


def set_lock(lock: Array) -> None:
    """Takes the lock, a symmetric word that is zero at first, which kernels may share; an Error after GDR_TIMEOUT."""
    _lock("set_lock", 0, lock)


def test_lock(lock: Array) -> bool:
    """Takes the lock if nobody has it: whether it did."""
    return not _lock("test_lock", 1, lock)


def clear_lock(lock: Array) -> None:
    """quiet(), and gives the lock to who waits for it."""
    _lock("clear_lock", 2, lock)
