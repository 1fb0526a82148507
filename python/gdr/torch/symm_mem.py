# SPDX-License-Identifier: BSD-3-Clause
"""Names of torch.distributed._symmetric_memory, over gdr.torch: bring-up is gdr.torch.init() and finalize(). What gdr does not
have raises; nothing is silently left out."""
from __future__ import annotations

import math
from typing import Any, Sequence

import torch
from torch import Tensor

import gdr

from . import _memory, _ops  # noqa: F401
from ._memory import empty

__all__ = ["SymmetricMemory", "empty", "is_symm_mem_tensor", "rendezvous"]
is_symm_mem_tensor = _memory.is_symmetric


class _Absent(AttributeError, NotImplementedError):
    """hasattr() is False."""


class SymmetricMemory:
    """A symmetric tensor as all members of a team see it. Counters of each channel are in a pad of its own: words that the
    signals of the PEs raise."""

    def __init__(self, tensor: Tensor, team: gdr.Team, channels: int):
        self.array = _memory.array_of("rendezvous", tensor)
        self.team, self.channels = team, channels
        self.rank, self.world_size = team.my_pe(), team.n_pes()
        self.pes = [team.translate(r, gdr.world) for r in range(self.world_size)]
        self.buffer_size = self.array.nbytes
        self.pad = _memory.zeros(2, channels, gdr.n_pes(), dtype=torch.int64)  # of signals, and of barriers
        self._seen = [[[0] * gdr.n_pes() for _ in range(channels)] for _ in range(2)]

    def _pe(self, rank: int) -> int:
        if not 0 <= rank < self.world_size:
            raise ValueError(f"there is no rank {rank}, the team has {self.world_size}")
        return self.pes[rank]

    def _at(self, array: gdr.Array, rank: int) -> int:
        address = array.at(self._pe(rank))
        if address is None:
            raise RuntimeError(f"the memory of rank {rank} (PE {self._pe(rank)}) is reached through the NIC alone: "
                               "gdr.torch.put() and get()")
        return address

    @property
    def buffer_ptrs(self) -> list[int]:
        return [self._at(self.array, r) for r in range(self.world_size)]

    @property
    def signal_pad_ptrs(self) -> list[int]:
        return [self._at(_memory.array_of("signal_pad", self.pad), r) for r in range(self.world_size)]

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0) -> Tensor:
        """The tensor of a rank, for loads and stores, from the element storage_offset on. A RuntimeError where it is not
        mapped."""
        a = gdr.Array(None, tuple(sizes), _memory.name_of(dtype), False)
        if storage_offset < 0 or storage_offset * a.itemsize + a.nbytes > self.buffer_size:
            raise ValueError(f"{a.nbytes} bytes from the element {storage_offset} on, of a buffer of {self.buffer_size}")
        own = gdr.Array((self.array.ptr or 0) + storage_offset * a.itemsize, a.shape, a.dtype, False)
        return _memory.tensor_of(own, self._at(own, rank))

    def get_signal_pad(self, rank: int) -> Tensor:
        """The counters of a rank: [signals, barriers][channel][PE that raised them]."""
        a = _memory.array_of("signal_pad", self.pad)
        return _memory.tensor_of(a, self._at(a, rank))

    def _word(self, kind: int, channel: int, pe: int, timeout_ms: int) -> Tensor:
        if not 0 <= channel < self.channels:
            raise ValueError(f"there is no channel {channel}: rendezvous() was asked for {self.channels}")
        if timeout_ms:
            raise NotImplementedError("timeout_ms: the limit of waits is GDR_TIMEOUT")
        return self.pad[kind, channel, pe:pe + 1]

    def _raise(self, kind: int, rank: int, channel: int, timeout_ms: int) -> None:
        word = self._word(kind, channel, gdr.my_pe(), timeout_ms)
        torch.ops.gdr.quiet([word])
        torch.ops.gdr.signal(word, 1, gdr.ADD, self._pe(rank))

    def _wait(self, kind: int, rank: int, channel: int, timeout_ms: int) -> None:
        pe = self._pe(rank)
        word, seen = self._word(kind, channel, pe, timeout_ms), self._seen[kind][channel]
        torch.ops.gdr.signal_wait(word, gdr.GE, seen[pe] + 1, [])
        seen[pe] += 1

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """One signal more for dst_rank, behind all that this PE put before."""
        self._raise(0, dst_rank, channel, timeout_ms)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for the next signal of src_rank; a gdr.Error after GDR_TIMEOUT."""
        self._wait(0, src_rank, channel, timeout_ms)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for all members, and for what they put before."""
        for rank in range(self.world_size):
            self._raise(1, rank, channel, timeout_ms)
        for rank in range(self.world_size):
            self._wait(1, rank, channel, timeout_ms)

    def free(self) -> None:
        """Collective, of all PEs of the job: the pad goes, the tensor stays."""
        _memory.free(self.pad)

    def __getattr__(self, name: str) -> Any:
        instead = ": gdr.torch.broadcast() and allreduce()" if name == "multicast_ptr" else ""
        raise _Absent(f"gdr.torch.symm_mem has no {name}{instead}")


def rendezvous(tensor: Tensor, team: gdr.Team = gdr.world, channels: int = 16) -> SymmetricMemory:
    """Collective, of all PEs of the job, each with a team that it is a member of. tensor: symmetric, the same object on all
    members."""
    if team.my_pe() < 0:
        raise ValueError("rendezvous: this PE is no member of the team")
    if channels < 1 or not math.prod(tensor.shape):
        raise ValueError(f"rendezvous: {channels} channels, a tensor {tuple(tensor.shape)}")
    return SymmetricMemory(tensor, team, channels)


def __getattr__(name: str) -> Any:
    raise _Absent(f"gdr.torch.symm_mem has no {name}: {', '.join(__all__)}")
