# SPDX-License-Identifier: BSD-3-Clause
"""Teams, and collectives on them."""
from __future__ import annotations

import ctypes
from typing import Any, Sequence

from . import _requests as rq
from ._array import Array
from ._library import ints, lib, said

WORLD, SHARED, NODE = range(3)


class Team:
    """Some of the job's PEs. Collectives are called by all of its members, in the same order, with arrays that are
    symmetric. When they are done at this PE (without a stream: when they return) dst is there and src may be used again;
    the next one may use the same arrays, without a barrier."""

    def __init__(self, handle: int):
        self.handle = handle

    def my_pe(self) -> int:
        """This PE's number in the team; negative where it is no member."""
        return int(lib.gdr_host_team_my_pe(self.handle))

    def n_pes(self) -> int:
        """The number of members."""
        return said("n_pes", lib.gdr_host_team_n_pes(self.handle))

    def translate(self, pe: int, other: Team | int) -> int:
        """The number in the other team of the member pe; negative where it is no member of that."""
        ints("translate", pe)
        return int(lib.gdr_host_team_translate_pe(self.handle, pe, getattr(other, "handle", other)))

    def _joined(self, call: str, status: int, new: ctypes.c_int32) -> Team | None:
        said(call, status)
        return Team(new.value) if new.value >= 0 else None

    def split(self, start: int, stride: int, size: int) -> Team | None:
        """Collective. A team of the members start, start + stride, ...; None on those that are not in it."""
        ints("split", start, stride, size)
        new = ctypes.c_int32(-1)
        return self._joined("split", lib.gdr_team_split_strided(self.handle, start, stride, size, None, 0,
                                                                ctypes.byref(new)), new)

    def create(self, pes: Sequence[int]) -> Team | None:
        """Collective. A team of these members, in this order; None on those that are not in it."""
        ints("create", *pes)
        new = ctypes.c_int32(-1)
        c = (ctypes.c_int * len(pes))(*pes)
        return self._joined("create", lib.gdr_team_create(self.handle, c, len(pes), None, 0, ctypes.byref(new)), new)

    @staticmethod
    def new_id() -> int:
        """Names one team of join(). One of its members makes it and hands it to the others."""
        made = ctypes.c_uint64()
        said("new_id", lib.gdr_team_new_id(ctypes.byref(made)))
        return made.value

    @staticmethod
    def join(name: int, n: int, me: int) -> Team:
        """Collective over the n members of the team alone, each of which says its number in it. name: of new_id()."""
        ints("join", n, me)
        new = ctypes.c_int32(-1)
        said("join", lib.gdr_team_join(name, n, me, None, 0, ctypes.byref(new)))
        return Team(new.value)

    def destroy(self) -> None:
        """Collective."""
        said("destroy", lib.gdr_team_destroy(self.handle))

    def barrier(self, stream: int | None = None) -> None:
        """quiet(), and waits for the members; an Error after GDR_TIMEOUT."""
        rq.ask("barrier", stream, rq.BARRIER, coll=rq.Coll(self.handle))

    def sync(self, stream: int | None = None) -> None:
        """Waits for the members, not for what was put."""
        rq.ask("sync", stream, rq.SYNC, coll=rq.Coll(self.handle))

    def _coll(self, call: str, what: int, dst: Array, src: Array, n: int, stream: int | None, into: int | None = None,
              of: int | None = None, **more: int) -> None:
        """n elements a PE: of `of` in src, to `into` in dst"""
        if dst.dtype != src.dtype:
            raise ValueError(f"{call}: {src.dtype} to {dst.dtype}")
        for name, array, least in ("dst", dst, n if into is None else into), ("src", src, n if of is None else of):
            if array.n < least:
                raise ValueError(f"{call}: {name} has {array.n} elements of {array.dtype}, {least} are needed")
        if not 0 <= more.get("root", 0) < self.n_pes():
            raise ValueError(f"{call}: root {more['root']} of a team of {self.n_pes()}")
        coll: Any = rq.Coll(**{"team": self.handle, "dst_step": 1, "src_step": 1, **more})
        rq.ask(call, stream, what, dst=dst.ptr, src=src.ptr, n=n, size=src.itemsize, coll=coll)

    def broadcast(self, dst: Array, src: Array, root: int, stream: int | None = None) -> None:
        """dst becomes src of the member root."""
        self._coll("broadcast", rq.BROADCAST, dst, src, src.n, stream, root=root)

    def fcollect(self, dst: Array, src: Array, stream: int | None = None) -> None:
        """dst becomes src of all members, one behind the other; all have as many elements."""
        self._coll("fcollect", rq.FCOLLECT, dst, src, src.n, stream, into=src.n * self.n_pes())

    def collect(self, dst: Array, src: Array, stream: int | None = None) -> None:
        """dst becomes src of all members, one behind the other; each may have another number of elements. dst
        has room for all of them: how many the others have no PE can check."""
        self._coll("collect", rq.COLLECT, dst, src, src.n, stream)

    def alltoall(self, dst: Array, src: Array, stream: int | None = None) -> None:
        """Part i of dst becomes the part of src of the member i that has this PE's number."""
        n, rest = divmod(src.n, self.n_pes())
        if rest:
            raise ValueError(f"alltoall: {src.n} elements are no equal parts for {self.n_pes()} PEs")
        self._coll("alltoall", rq.ALLTOALL, dst, src, n, stream, into=src.n)

    def alltoalls(self, dst: Array, src: Array, dst_step: int, src_step: int, n: int, stream: int | None = None) -> None:
        """alltoall() of n elements for each member, src_step apart in src and dst_step in dst."""
        if min(dst_step, src_step) < 1 or n < 0:
            raise ValueError(f"alltoalls: {n} elements, steps {dst_step} and {src_step}")
        into, of = ((n * self.n_pes() - 1) * step + 1 if n else 0 for step in (dst_step, src_step))
        self._coll("alltoalls", rq.ALLTOALLS, dst, src, n, stream, into, of, dst_step=dst_step, src_step=src_step)

    def reduce(self, dst: Array, src: Array, op: str = "sum", stream: int | None = None) -> None:
        """dst becomes, on all members, the sum (prod, min, max; of integers and, or, xor) of src, element by element."""
        self._coll("reduce", rq.REDUCE, dst, src, src.n, stream, code=rq.code(src, op))

    def reducescatter(self, dst: Array, src: Array, op: str = "sum", stream: int | None = None) -> None:
        """dst becomes this PE's part of what reduce() would give."""
        self._coll("reducescatter", rq.REDUCESCATTER, dst, src, dst.n, stream, of=dst.n * self.n_pes(),
                   code=rq.code(src, op))

    def scan(self, dst: Array, src: Array, exclusive: bool = False, stream: int | None = None) -> None:
        """dst becomes the sum of src of the members up to this one; exclusive: without it."""
        self._coll("scan", rq.EXSCAN if exclusive else rq.INSCAN, dst, src, src.n, stream, code=rq.code(src, "sum"))


world, shared, node = Team(WORLD), Team(SHARED), Team(NODE)
