# SPDX-License-Identifier: BSD-3-Clause
"""torch.cuda.MemPool on the symmetric heap."""
from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

import gdr

from .. import _library
from . import _memory

_allocator: Any = None


class _Object(ctypes.Structure):
    """struct gdr_heap_object"""
    _fields_ = [("addr", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def mem_pool() -> Any:
    """A new pool for torch.cuda.use_mem_pool(), whose segments lie in the symmetric heap; on GPUs.

    A segment is a collective gdr_malloc(): between two of them all PEs make and drop the same tensors of the pool in the same
    order, those of one stream. Where they do not, sizes and PEs are named (gdr.Error's log, and torch's OutOfMemoryError), or
    the PE that does not come; where tensors lie at different places only same_place() tells. The pool and its tensors go
    before finalize(), and behind `del pool` release() gives the segments back to the heap.

    It is one of the job's GPU, that of init(). A ValueError where another one is current; what asks it for memory of
    another one later (use_mem_pool(pool, device=...)) gets torch's OutOfMemoryError, and the library's log says why."""
    global _allocator
    _, memory = _memory.workspace()
    if not gdr.on_gpu():
        raise RuntimeError("mem_pool: the heap is memory of the CPU, where torch has no pools: gdr.torch.empty()")
    current, own = torch.cuda.current_device(), memory.device.index
    if current != own:
        raise ValueError(f"mem_pool: cuda:{current} is the current device, and the heap is memory of cuda:{own}: "
                         f"torch.cuda.set_device({own}) first")
    if _allocator is None:
        _allocator = torch.cuda.memory.CUDAPluggableAllocator(_library.lib._name, "gdri_torch_alloc", "gdri_torch_free")
    return torch.cuda.MemPool(_allocator.allocator())


def release() -> int:
    """Collective. Frees the segments that PyTorch gave back on all PEs, and returns how many; others wait for the next
    release(), or for finalize()."""
    _, memory = _memory.workspace()
    lib, mine = _library.lib, _memory.given_back()
    objects = (_Object * lib.gdr_heap_list(None, 0))()  # the same ones on all PEs, in the same order
    lib.gdr_heap_list(objects, len(objects))
    here = torch.tensor([o.addr in mine for o in objects], dtype=torch.int32, device=memory.device)
    freed = [o.addr for o, all_have in zip(objects, torch.ops.gdr.allreduce(here, "min", gdr.world.handle).tolist()) if all_have]
    for ptr in freed:
        _library.said("release", lib.gdr_free(ptr))
        mine.remove(ptr)
    return len(freed)


def same_place(*tensors: Tensor) -> None:
    """Collective. A ValueError on all PEs where one of the tensors lies at another place of the heap than at PE 0, or has
    another size."""
    first, memory = _memory.workspace()
    arrays = [_memory.array_of("same_place", t) for t in tensors]
    own = torch.tensor([[(a.ptr or 0) - (first.ptr or 0), a.nbytes] for a in arrays], device=memory.device)
    every = torch.ops.gdr.allgather(own, gdr.world.handle).view(gdr.n_pes(), len(tensors), 2).tolist()
    for pe, theirs in enumerate(every):
        for i, (at, there) in enumerate(zip(every[0], theirs)):
            if at != there:
                raise ValueError(f"same_place: tensor {i} has {at[1]} bytes at {at[0]:+#x} from the workspace on PE 0, "
                                 f"{there[1]} at {there[0]:+#x} on PE {pe}: PEs made or dropped tensors in different orders")
