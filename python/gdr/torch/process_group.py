# SPDX-License-Identifier: BSD-3-Clause
# Of ProcessGroup's calls torch.distributed makes those with lists and options: the other forms are not here.
# mypy: disable-error-code="override, assignment"
"""gdr as a backend of torch.distributed:

    import gdr.torch.process_group                      # registers it; torch 2.15 finds it in an installed wheel by itself
    torch.distributed.init_process_group("gdr")         # on a GPU behind torch.cuda.set_device()

A job that gdr.init() or gdr.torch.init() began before is taken, and stays behind destroy_process_group(); else one begins, by
a unique id in the store, and ends there. Ranks are PEs. Collectives go through the workspace of gdr.torch, on the current
stream or, on the host device, at once. send, recv and what goes by them (gather, scatter, lists and unequal parts of
all_to_all) are done by the thread that calls or waits (_mailbox.py). Waits end after the group's timeout=, where one was given,
else after GDR_TIMEOUT, with an Error that names the peer. What is not there raises NotImplementedError."""
from __future__ import annotations

import threading
import zlib
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import _create_work_from_future
from torch.distributed.constants import default_pg_timeout

import gdr

from .._library import lib
from . import _memory
from ._functional import _staged
from ._mailbox import Mailbox, bytes_of, fill

_OPS = {"SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max", "BAND": "and", "BOR": "or", "BXOR": "xor"}
kept_bytes = 256 << 20  # of each sender's messages that no recv has asked for: _mailbox.py; of the next default group
_lock, _last_use = threading.RLock(), None
_box: Mailbox | None = None


@contextmanager
def _turn(limit: float | None = None) -> Iterator[None]:
    """There is one workspace: threads take turns, and so do streams. limit: seconds, of waits of this thread for others."""
    global _last_use
    device = _memory.workspace()[1].device
    with _lock, torch.no_grad():
        if device.type == "cuda" and _last_use is not None:
            torch.cuda.current_stream(device).wait_event(_last_use)
        before = lib.gdri_torch_limit(round(limit * 1e9)) if limit else 0
        try:
            yield
        finally:
            if before:
                lib.gdri_torch_limit(before)
        if device.type == "cuda":
            _last_use = torch.cuda.current_stream(device).record_event()


def _done(tensors: list[Tensor]) -> dist.Work:
    future: Any = torch.futures.Future(devices=list({t.device for t in tensors if t.is_cuda}))
    future.set_result(tensors)
    return _create_work_from_future(future)


def _equal(call: str, tensors: list[Tensor], like: Tensor) -> None:
    if any((t.numel(), t.dtype) != (like.numel(), like.dtype) for t in tensors):
        raise NotImplementedError(f"gdr: {call} of tensors that differ in size or type: "
                                  f"{[tuple(t.shape) for t in tensors]}, {tuple(like.shape)} of {like.dtype}")


def _mailbox() -> Mailbox:
    if _box is None:
        raise RuntimeError("gdr: the default process group is destroyed")
    return _box


class Group(dist.ProcessGroup):
    """Of a team; its ranks are the members."""
    supports_splitting = supports_coalescing = False

    def __init__(self, name: str, rank: int, size: int, team: gdr.Team, end: Callable[[], None]):
        super().__init__(rank, size)
        self._name, self._team, self._end, self._limit = name, team, end, None  # type: str, gdr.Team, Any, float | None
        self._pes = [team.translate(i, gdr.world) for i in range(size)]

    def getBackendName(self) -> str:
        return "gdr"

    @property
    def group_name(self) -> str:
        return self._name

    def _get_backend(self, device: torch.device) -> Group:
        return self

    get_backend = _get_backend

    def shutdown(self) -> None:
        """Collective. torch.distributed.destroy_process_group() calls it."""
        with _turn():
            self._end()

    def set_timeout(self, timeout: Any) -> None:
        """That of torch's own default is GDR_TIMEOUT."""
        self._limit = None if timeout == default_pg_timeout else timeout.total_seconds()

    # ---- by collectives ----

    def _moved(self, x: Tensor, parts_in: int, parts_out: int, collective: Any) -> Tensor:
        """bytes, so that they may be of any type"""
        with _turn(self._limit):
            return _staged(bytes_of(x), self._team.handle, parts_in, parts_out, collective)

    def _reduced(self, x: Tensor, op: Any, parts: int = 1) -> Tensor:
        """all of it, or this member's part"""
        called = next(name for name, of in dist.ReduceOp.RedOpType.__members__.items() if op == of)
        name = _OPS.get(called)
        if name is None or (name == "avg" and not x.is_floating_point()):
            raise NotImplementedError(f"gdr: a reduction by {called} of {x.dtype}")
        of = "sum" if name == "avg" else name

        def reduce(team: gdr.Team, dst: gdr.Array, src: gdr.Array, stream: int | None) -> None:
            (team.reduce if parts == 1 else team.reducescatter)(dst, src, of, stream)

        with _turn(self._limit):
            out = _staged(x.detach(), self._team.handle, parts, 1, reduce)
            return out.div_(self.size()) if name == "avg" else out

    def allreduce(self, tensors: list[Tensor], opts: Any = dist.AllreduceOptions()) -> dist.Work:
        for t in tensors:
            fill(t, self._reduced(t, opts.reduceOp))
        return _done(tensors)

    def reduce(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        for t in tensors:
            out = self._reduced(t, opts.reduceOp)
            if self.rank() == opts.rootRank:
                fill(t, out)
        return _done(tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        for t in tensors:
            fill(t, self._moved(t, 1, 1, lambda team, d, s, stream: team.broadcast(d, s, opts.rootRank, stream)))
        return _done(tensors)

    def _gathered(self, x: Tensor) -> Tensor:
        return self._moved(x, 1, self.size(), lambda team, d, s, stream: team.fcollect(d, s, stream))

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        for out, x in zip(outputs, inputs):
            _equal("all_gather", out, x)
            for t, part in zip(out, self._gathered(x)):
                fill(t, part)
        return _done([t for out in outputs for t in out])

    def all_gather_single(self, output: Tensor, x: Tensor, opts: Any = None) -> dist.Work:
        self._whole("all_gather_single", output, x)
        fill(output, self._gathered(x))
        return _done([output])

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> dist.Work:
        for out, parts in zip(outputs, inputs):
            _equal("reduce_scatter", parts, out)
            fill(out, self._reduced(torch.stack([p.detach().reshape(-1) for p in parts]), opts.reduceOp, self.size()))
        return _done(outputs)

    def reduce_scatter_single(self, output: Tensor, x: Tensor, opts: Any) -> dist.Work:
        self._whole("reduce_scatter_single", x, output)
        fill(output, self._reduced(x, opts.reduceOp, self.size()))
        return _done([output])

    def _whole(self, call: str, whole: Tensor, part: Tensor) -> None:
        if (whole.numel(), whole.dtype) != (self.size() * part.numel(), part.dtype):
            raise ValueError(f"gdr: {call} between {tuple(whole.shape)} {whole.dtype} and {tuple(part.shape)} {part.dtype} "
                             f"in a group of {self.size()}")

    def _each(self, call: Callable[..., dist.Work], outputs: list[Tensor], inputs: list[Tensor], opts: Any) -> dist.Work:
        for out, x in zip(outputs, inputs):
            call(out, x, opts)
        return _done(outputs)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> dist.Work:
        return self._each(self.all_gather_single, outputs, inputs, opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any) -> dist.Work:
        return self._each(self.reduce_scatter_single, outputs, inputs, opts)

    def barrier(self, opts: Any = None) -> dist.Work:
        """The host waits, too."""
        with _turn(self._limit):
            memory = _memory.workspace()[1]
            self._team.barrier(_memory.stream_of(memory))
            if memory.is_cuda:
                torch.cuda.current_stream(memory.device).synchronize()
        return _done([])

    def all_to_all_single(self, output: Tensor, x: Tensor, out_sizes: Any, sizes: Any, opts: Any = None) -> dist.Work:
        """With lists of sizes, on all members or on none, parts may differ."""
        n = self.size()
        if out_sizes or sizes:
            return self.alltoall(list(torch.split(output, out_sizes or len(output) // n)),
                                 list(torch.split(x, sizes or len(x) // n)))
        _equal("all_to_all_single", [output], x)
        if not x.dim() or len(x) % n:
            raise ValueError(f"gdr: all_to_all_single: the first dimension of {tuple(x.shape)} is no {n} equal parts")
        fill(output, self._moved(x, n, n, lambda team, d, s, stream: team.alltoall(d, s, stream)))
        return _done([output])

    # ---- by transfers from member to member ----

    def _message(self, call: str, x: Tensor, rank: int, tag: int) -> dist.Work:
        """rank -1: of any member"""
        key = zlib.crc32(self._name.encode()), tag
        with _turn():
            send_or_recv = getattr(_mailbox(), call)
            return send_or_recv(x, self._pes[rank] if rank >= 0 else -1, key, self._pes, self._limit)  # type: ignore[no-any-return]

    def _exchange(self, outputs: list[tuple[int, Tensor]], inputs: list[tuple[int, Tensor]]) -> dist.Work:
        """from and to members"""
        works = [self._message("recv", t, i, -1) for i, t in outputs] + [self._message("send", t, i, -1) for i, t in inputs]
        for w in works:
            w.wait()
        return _done([t for _, t in outputs])

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        return self._exchange(list(enumerate(outputs)), list(enumerate(inputs)))

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> dist.Work:
        for i, x in enumerate(inputs):
            self._exchange(list(enumerate(outputs[i])) if self.rank() == opts.rootRank else [], [(opts.rootRank, x)])
        return _done([t for out in outputs for t in out])

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> dist.Work:
        for i, out in enumerate(outputs):
            self._exchange([(opts.rootRank, out)], list(enumerate(inputs[i])) if self.rank() == opts.rootRank else [])
        return _done(outputs)

    def send(self, tensors: list[Tensor], to: int, tag: int = 0) -> dist.Work:
        x, = tensors
        return self._message("send", x, to, tag)

    def recv(self, tensors: list[Tensor], source: int, tag: int = 0) -> dist.Work:
        x, = tensors
        return self._message("recv", x, source, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> dist.Work:
        x, = tensors
        return self._message("recv", x, -1, tag)

    # names of torch before 2.15
    allreduce_coalesced = allreduce
    _allgather_base, allgather_into_tensor_coalesced = all_gather_single, all_gather_single_coalesced
    _reduce_scatter_base, reduce_scatter_tensor_coalesced = reduce_scatter_single, reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


def _absent(name: str) -> Callable[..., Any]:
    def call(self: Group, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"gdr: {name} is not there")
    return call


for _name in ("abort", "allgather_coalesced", "gather_into_tensor", "gather_single", "get_reconfigure_handle",
              "merge_remote_group", "new_window", "reconfigure", "split_group",
              "_add_ephemeral_timeout", "_end_coalescing", "_start_coalescing", "end_coalescing", "start_coalescing"):
    setattr(Group, _name, _absent(_name))


def _shared(store: Any, rank: int, make: Callable[[], bytes], use: Callable[[bytes], Any]) -> Any:
    """What rank 0 makes is used by all, in a collective call, and then nobody's who comes later."""
    if rank == 0:
        store.set("gdr", make().hex())
    used = use(bytes.fromhex(store.get("gdr").decode()))
    if rank == 0:
        store.delete_key("gdr")
    return used


def _begin(store: Any, rank: int, n: int) -> Callable[[], None]:
    """Returns what ends it: of job, workspace and mailbox those that were not there before."""
    global _box, _last_use
    here = lib.gdr_host_my_pe() >= 0
    if here and (gdr.my_pe(), gdr.n_pes()) != (rank, n):
        raise ValueError(f"gdr: rank {rank} of {n} is PE {gdr.my_pe()} of {gdr.n_pes()} in the job that has begun")
    staged = here and _memory.staged()
    if not here:
        _shared(store, rank, gdr.get_uniqueid, lambda name: _memory.init(uniqueid=name, pe=rank, n_pes=n))
    elif not staged:
        _memory.stage()
    _box, _last_use = Mailbox(kept_bytes), None

    def end() -> None:
        global _box
        ended = _mailbox()
        ended.end()
        _box = None
        if not here:
            _memory.finalize()
            return
        ended.free()
        if not staged:
            _memory.unstage()
    return end


def _create(how: Any, options: Any) -> Group:
    if options is not None:
        raise NotImplementedError("gdr: pg_options: the workspace's size is that of gdr.torch.init(workspace=...)")
    rank, n = how.group_rank, how.group_size
    if not how.global_ranks_in_group:  # the default group
        group = Group(how.group_id, rank, n, gdr.world, _begin(how.store, rank, n))
    else:
        team = _shared(how.store, rank, lambda: gdr.Team.new_id().to_bytes(8, "little"),
                       lambda name: gdr.Team.join(int.from_bytes(name, "little"), n, rank))
        group = Group(how.group_id, rank, n, team, team.destroy)
    group.set_timeout(how.timeout)
    return group


def register() -> None:
    """What torch calls by the wheel's entry point."""
    if not hasattr(dist.Backend, "GDR"):
        dist.Backend.register_backend("gdr", _create, extended_api=True, devices=["cpu", "cuda"])


register()
