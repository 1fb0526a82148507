# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of any tensor, which return a new one: staged in the workspace, so that nothing has to be symmetric, and
with gradients. The loss is the sum of what the PEs make of their results."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor

import gdr

from ._memory import name_of, stream_of, workspace


def _staged(x: Tensor, team: int, parts_in: int, parts_out: int,
            collective: Callable[[gdr.Team, gdr.Array, gdr.Array, int | None], None]) -> Tensor:
    """parts_in parts of x become parts_out; as many columns at a time as the workspace has room for."""
    array, memory = workspace()
    name, size, t, stream = name_of(x.dtype), x.element_size(), gdr.Team(team), stream_of(memory)
    m, half = x.numel() // parts_in, array.nbytes // 2
    room = half // size // max(parts_in, parts_out)
    if not room:
        raise ValueError(f"a workspace of {array.nbytes} bytes is too small for {max(parts_in, parts_out)} PEs")
    of, out = x.reshape(parts_in, m), x.new_empty((parts_out, m))
    for first in range(0, m, room):
        n = min(room, m - first)
        a_in = gdr.Array(array.ptr, (parts_in, n), name, False)
        a_out = gdr.Array((array.ptr or 0) + half, (parts_out, n), name, False)
        memory[:a_in.nbytes].view(x.dtype).view(parts_in, n).copy_(of[:, first:first + n])
        collective(t, a_out, a_in, stream)  # nobody writes to a_out before this PE is here (gdr/coll.h)
        out[:, first:first + n].copy_(memory[half:half + a_out.nbytes].view(x.dtype).view(parts_out, n))
    return out


def _parts(call: str, x: Tensor, team: int) -> int:
    n = gdr.Team(team).n_pes()
    if not x.dim() or x.shape[0] % n:
        raise ValueError(f"{call}: the first dimension of {tuple(x.shape)} is no {n} equal parts")
    return n


def _grown(x: Tensor, n: int) -> tuple[int, ...]:
    return (n * x.shape[0], *x.shape[1:]) if x.dim() else (n,)


# ---- allreduce ----

@torch.library.custom_op("gdr::allreduce", mutates_args=())
def allreduce(x: Tensor, op: str, team: int) -> Tensor:
    return _staged(x, team, 1, 1, lambda t, d, s, stream: t.reduce(d, s, op, stream)).view(x.shape)


@allreduce.register_fake
def _(x: Tensor, op: str, team: int) -> Tensor:
    return x.new_empty(x.shape)


def _keep_op(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.op, ctx.team = inputs[1:]


def _of_sum(call: str, op: str) -> None:
    if op != "sum":
        raise NotImplementedError(f"{call}: there is a gradient of sums, not of {op}")


def _allreduce_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    _of_sum("allreduce", ctx.op)
    return torch.ops.gdr.allreduce(grad, "sum", ctx.team), None, None


allreduce.register_autograd(_allreduce_backward, setup_context=_keep_op)


# ---- allgather and reducescatter, each the other's gradient ----

@torch.library.custom_op("gdr::allgather", mutates_args=())
def allgather(x: Tensor, team: int) -> Tensor:
    n = gdr.Team(team).n_pes()
    return _staged(x, team, 1, n, lambda t, d, s, stream: t.fcollect(d, s, stream)).view(_grown(x, n))


@allgather.register_fake
def _(x: Tensor, team: int) -> Tensor:
    return x.new_empty(_grown(x, gdr.Team(team).n_pes()))


@torch.library.custom_op("gdr::reducescatter", mutates_args=())
def reducescatter(x: Tensor, op: str, team: int) -> Tensor:
    n = _parts("reducescatter", x, team)
    out = _staged(x, team, n, 1, lambda t, d, s, stream: t.reducescatter(d, s, op, stream))
    return out.view(x.shape[0] // n, *x.shape[1:])


@reducescatter.register_fake
def _(x: Tensor, op: str, team: int) -> Tensor:
    return x.new_empty((x.shape[0] // _parts("reducescatter", x, team), *x.shape[1:]))


def _keep_team(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.shape, ctx.team = inputs[0].shape, inputs[1]


def _allgather_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return torch.ops.gdr.reducescatter(grad, "sum", ctx.team).reshape(ctx.shape), None


def _reducescatter_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    _of_sum("reducescatter", ctx.op)
    return torch.ops.gdr.allgather(grad, ctx.team), None, None


allgather.register_autograd(_allgather_backward, setup_context=_keep_team)
reducescatter.register_autograd(_reducescatter_backward, setup_context=_keep_op)


# ---- alltoall ----

@torch.library.custom_op("gdr::alltoall", mutates_args=())
def alltoall(x: Tensor, team: int) -> Tensor:
    n = _parts("alltoall", x, team)
    return _staged(x, team, n, n, lambda t, d, s, stream: t.alltoall(d, s, stream)).view(x.shape)


@alltoall.register_fake
def _(x: Tensor, team: int) -> Tensor:
    _parts("alltoall", x, team)
    return x.new_empty(x.shape)


def _alltoall_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return torch.ops.gdr.alltoall(grad, ctx.team), None


alltoall.register_autograd(_alltoall_backward, setup_context=_keep_team)


# ---- broadcast: the root's gradient is the sum of all, that of others nothing ----

@torch.library.custom_op("gdr::broadcast", mutates_args=())
def broadcast(x: Tensor, root: int, team: int) -> Tensor:
    return _staged(x, team, 1, 1, lambda t, d, s, stream: t.broadcast(d, s, root, stream)).view(x.shape)


@broadcast.register_fake
def _(x: Tensor, root: int, team: int) -> Tensor:
    return x.new_empty(x.shape)


def _keep_root(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.root, ctx.team = inputs[1:]


def _broadcast_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    total = torch.ops.gdr.allreduce(grad, "sum", ctx.team)
    return total if gdr.Team(ctx.team).my_pe() == ctx.root else torch.zeros_like(total), None, None


broadcast.register_autograd(_broadcast_backward, setup_context=_keep_root)
