# SPDX-License-Identifier: BSD-3-Clause
"""Operations on tensors as custom ops (torch.ops.gdr), on the current stream. What changes a tensor of this PE, or tells
that another PE did, says so: compilers keep it, and what reads the tensor behind it. Compilers that copy arguments (the
backend aot_eager) are refused by their copies, which are not symmetric; inductor does not."""
from __future__ import annotations

from typing import Any, Callable, List

import torch
from torch import Tensor

import gdr

from ._memory import array_of, stream_of


def _none(*_: Any) -> None:
    """Nothing but the arguments changes."""


def _op(name: str, mutates: tuple[str, ...]) -> Callable[[Callable[..., None]], Any]:
    def made(f: Callable[..., None]) -> Any:
        op = torch.library.custom_op(f"gdr::{name}", f, mutates_args=mutates)
        op.register_fake(_none)
        return op
    return made


def _source(call: str, dst: Tensor, src: Tensor) -> Any:
    """Local memory on the tensor's device; it may be anywhere."""
    if src.device != dst.device or src.dtype != dst.dtype or src.numel() != dst.numel() or not src.is_contiguous():
        raise ValueError(f"{call}: from {tuple(src.shape)} {src.dtype} on {src.device} to {tuple(dst.shape)} {dst.dtype} "
                         f"on {dst.device}{'' if src.is_contiguous() else ', with gaps'}")
    return src.data_ptr()


@_op("put", ("dst",))
def put(dst: Tensor, src: Tensor, pe: int) -> None:
    gdr.put(array_of("put", dst), _source("put", dst, src), pe, stream_of(dst))


@_op("get", ("dst",))
def get(dst: Tensor, src: Tensor, pe: int) -> None:
    gdr.get(_source("get", src, dst), array_of("get", src), pe, stream_of(src))


@_op("put_signal", ("dst", "sig"))
def put_signal(dst: Tensor, src: Tensor, sig: Tensor, value: int, op: int, pe: int) -> None:
    gdr.put_signal(array_of("put_signal", dst), _source("put_signal", dst, src), array_of("put_signal", sig), value, op,
                   pe, stream_of(dst))


@_op("signal", ("sig",))
def signal(sig: Tensor, value: int, op: int, pe: int) -> None:
    gdr.signal(array_of("signal", sig), value, op, pe, stream_of(sig))


@_op("signal_wait", ("sig", "tensors"))
def signal_wait(sig: Tensor, cmp: int, value: int, tensors: List[Tensor]) -> None:
    gdr.signal_wait(array_of("signal_wait", sig), cmp, value, stream_of(sig))


@_op("quiet", ("tensors",))
def quiet(tensors: List[Tensor]) -> None:
    gdr.quiet(stream_of(tensors[0]))


@_op("barrier", ("tensors",))
def barrier(tensors: List[Tensor], team: int) -> None:
    gdr.Team(team).barrier(stream_of(tensors[0]))


# ---- collectives from tensor to tensor, both symmetric ----

@_op("allreduce_into", ("dst",))
def allreduce_into(dst: Tensor, src: Tensor, op: str, team: int) -> None:
    gdr.Team(team).reduce(array_of("allreduce", dst), array_of("allreduce", src), op, stream_of(dst))


@_op("allgather_into", ("dst",))
def allgather_into(dst: Tensor, src: Tensor, team: int) -> None:
    gdr.Team(team).fcollect(array_of("allgather", dst), array_of("allgather", src), stream_of(dst))


@_op("alltoall_into", ("dst",))
def alltoall_into(dst: Tensor, src: Tensor, team: int) -> None:
    gdr.Team(team).alltoall(array_of("alltoall", dst), array_of("alltoall", src), stream_of(dst))


@_op("reducescatter_into", ("dst",))
def reducescatter_into(dst: Tensor, src: Tensor, op: str, team: int) -> None:
    gdr.Team(team).reducescatter(array_of("reducescatter", dst), array_of("reducescatter", src), op, stream_of(dst))


@_op("broadcast_into", ("dst",))
def broadcast_into(dst: Tensor, src: Tensor, root: int, team: int) -> None:
    gdr.Team(team).broadcast(array_of("broadcast", dst), array_of("broadcast", src), root, stream_of(dst))
