# SPDX-License-Identifier: BSD-3-Clause
"""gdr for PyTorch: symmetric tensors, one-sided transfers, signals and collectives, on the current CUDA stream, or at
once where kernels run on the host device (tensors of the CPU).

    gdr.torch.init()                                    # behind torch.cuda.set_device()
    x, sig = gdr.torch.zeros(4, 8), gdr.torch.zeros(1, dtype=torch.int64)
    gdr.torch.put_signal(x, torch.ones(4, 8, device=x.device), sig, 1, gdr.ADD, peer)
    gdr.torch.signal_wait(sig, gdr.GE, 1, x)            # x is what the peer put
    y = gdr.torch.allreduce(x)                          # any tensor; with a gradient
    gdr.torch.finalize()

All of it are custom ops, torch.ops.gdr, for torch.compile with inductor; gdr.torch.symm_mem has the names of
torch.distributed._symmetric_memory. Errors: gdr.Error, and ValueError for tensors that do not fit."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gdr

from . import _functional, _ops  # noqa: F401  they make the ops
from ._memory import (array_of, empty, finalize, free, init, is_symmetric, register, tensor_of, unregister,
                      workspace, zeros)
from ._pool import mem_pool, release, same_place

__all__ = ["allgather", "allgather_into", "allreduce", "allreduce_into", "alltoall", "alltoall_into", "array_of",
           "barrier", "broadcast", "broadcast_into", "empty", "finalize", "free", "get", "init", "is_symmetric",
           "mem_pool", "put", "put_signal", "quiet", "reducescatter", "reducescatter_into", "register", "release", "same_place",
           "signal", "signal_wait", "tensor_of", "unregister", "zeros"]

_gdr: Any = torch.ops.gdr


def put(dst: Tensor, src: Tensor, pe: int) -> None:
    """dst (symmetric) of pe becomes src, any tensor of its size and type on its device. src may be used again behind it in
    the stream; pe has it behind quiet() and what tells it so, as barrier()."""
    _gdr.put(dst, src, pe)


def get(dst: Tensor, src: Tensor, pe: int) -> None:
    """dst, any tensor, becomes src (symmetric) of pe."""
    _gdr.get(dst, src, pe)


def put_signal(dst: Tensor, src: Tensor, sig: Tensor, value: int, op: int, pe: int) -> None:
    """put(), and behind it the word sig of pe (symmetric, 64 bits) is set to value (gdr.SET) or added to (gdr.ADD)."""
    _gdr.put_signal(dst, src, sig, value, op, pe)


def signal(sig: Tensor, value: int, op: int, pe: int) -> None:
    """The word sig of pe is set to value, or value is added to it."""
    _gdr.signal(sig, value, op, pe)


def signal_wait(sig: Tensor, cmp: int, value: int, *tensors: Tensor) -> None:
    """Waits until this PE's word sig is gdr.EQ, NE, GT, GE, LT or LE value. tensors: those that the signal is about, so that
    torch.compile reads them behind it; eager code may leave them out."""
    _gdr.signal_wait(sig, cmp, value, list(tensors))


def _ordered(call: str, tensors: tuple[Tensor, ...]) -> list[Tensor]:
    if tensors:
        return list(tensors)
    if torch.compiler.is_compiling():
        raise ValueError(f"{call}: torch.compile drops a call without tensors: name those that it orders")
    _, memory = workspace()
    return [memory]


def quiet(*tensors: Tensor) -> None:
    """Waits until what this PE put is at its targets. tensors: as of signal_wait(), needed where torch.compile compiles."""
    _gdr.quiet(_ordered("quiet", tensors))


def barrier(*tensors: Tensor, team: gdr.Team = gdr.world) -> None:
    """quiet(), and waits for the team's members. tensors: as of quiet()."""
    _gdr.barrier(_ordered("barrier", tensors), team.handle)


def allreduce(x: Tensor, op: str = "sum", team: gdr.Team = gdr.world) -> Tensor:
    """The sum (prod, min, max, and, or, xor) of all members' x. A gradient: of sums."""
    out: Tensor = _gdr.allreduce(x, op, team.handle)
    return out


def allgather(x: Tensor, team: gdr.Team = gdr.world) -> Tensor:
    """All members' x, along the first dimension."""
    out: Tensor = _gdr.allgather(x, team.handle)
    return out


def reducescatter(x: Tensor, op: str = "sum", team: gdr.Team = gdr.world) -> Tensor:
    """This member's part, along the first dimension, of what allreduce() gives. A gradient: of sums."""
    out: Tensor = _gdr.reducescatter(x, op, team.handle)
    return out


def alltoall(x: Tensor, team: gdr.Team = gdr.world) -> Tensor:
    """Part i, along the first dimension, is what member i has as part for this one."""
    out: Tensor = _gdr.alltoall(x, team.handle)
    return out


def broadcast(x: Tensor, root: int = 0, team: gdr.Team = gdr.world) -> Tensor:
    """x of the member root."""
    out: Tensor = _gdr.broadcast(x, root, team.handle)
    return out


def allreduce_into(dst: Tensor, src: Tensor, op: str = "sum", team: gdr.Team = gdr.world) -> None:
    """allreduce() from a symmetric tensor to another one, or the same, without staging; no gradient."""
    _gdr.allreduce_into(dst, src, op, team.handle)


def allgather_into(dst: Tensor, src: Tensor, team: gdr.Team = gdr.world) -> None:
    """allgather() between symmetric tensors."""
    _gdr.allgather_into(dst, src, team.handle)


def reducescatter_into(dst: Tensor, src: Tensor, op: str = "sum", team: gdr.Team = gdr.world) -> None:
    """reducescatter() between symmetric tensors."""
    _gdr.reducescatter_into(dst, src, op, team.handle)


def alltoall_into(dst: Tensor, src: Tensor, team: gdr.Team = gdr.world) -> None:
    """alltoall() between symmetric tensors."""
    _gdr.alltoall_into(dst, src, team.handle)


def broadcast_into(dst: Tensor, src: Tensor, root: int = 0, team: gdr.Team = gdr.world) -> None:
    """broadcast() between symmetric tensors."""
    _gdr.broadcast_into(dst, src, root, team.handle)
