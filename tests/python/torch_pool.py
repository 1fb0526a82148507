# SPDX-License-Identifier: BSD-3-Clause
"""gdr.torch.mem_pool(): what its segments are allocated by, and, with GDR_DEVICE=cuda, the pool. As PEs of a launcher."""
import ctypes
import gc
import os
from unittest import mock

import torch

import gdr
import gdr.torch as gt


def refused(kind, texts, call, *args):
    try:
        call(*args)
    except kind as e:
        assert all(t in str(e) for t in texts), e
        return
    raise AssertionError(f"{call} takes {args}")


def objects():
    return gdr._lib.gdr_heap_list(None, 0)


def segments(me, n):
    """as PyTorch calls them, in another order on each PE"""
    alloc, free, before = gdr._lib.gdri_torch_alloc, gdr._lib.gdri_torch_free, objects()
    alloc.restype, alloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    free.restype, free.argtypes = None, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    device = torch.cuda.current_device() if gdr.on_gpu() else 0
    at = [alloc(1 << 20, device, None) for _ in range(4)]
    x = [gt.tensor_of(gdr.Array(p, 1 << 18, "float32", False)) for p in at]
    assert all(gt.is_symmetric(t) for t in x) and objects() == before + 4
    gt.same_place(*x)
    own = x[:2] if me == 0 or n == 1 else x[1::-1]
    refused(ValueError, ["tensor 0", "on PE 1"], gt.same_place, *own) if n > 1 else gt.same_place(*own)
    for i in [2, 0, 1] if me % 2 else [0, 1]:  # the third one: on some PEs alone
        free(at[i], 1 << 20, device, None)
    assert (gt.release(), objects()) == (2, before + 2)
    assert (gt.release(), objects()) == (0, before + 2)
    for i in [3] if me % 2 else [3, 2]:
        free(at[i], 1 << 20, device, None)
    assert (gt.release(), objects()) == (2, before)


def other_device():
    """as on a machine with two GPUs, of which the job has the first"""
    with (mock.patch.object(gdr, "on_gpu", lambda: True), mock.patch.object(gt._pool, "_allocator", mock.Mock()),
          mock.patch.object(gt._memory, "workspace", lambda: (None, mock.Mock(device=torch.device("cuda", 0)))),
          mock.patch.multiple(torch.cuda, current_device=lambda: 1, MemPool=lambda _: "a pool", create=True)):
        refused(ValueError, ["cuda:1 is the current", "of cuda:0", "set_device(0)"], gt.mem_pool)
        with mock.patch.object(torch.cuda, "current_device", lambda: 0):
            assert gt.mem_pool() == "a pool"


def pool(me, n):
    before, to = objects(), (me + 1) % n
    one = gt.mem_pool()
    with torch.cuda.use_mem_pool(one):
        x = torch.full((1000,), 1.0 + me, device="cuda")
        y = torch.empty(1000, device="cuda")
        big = torch.ones(8 << 20, device="cuda")
        sig = torch.zeros(1, dtype=torch.int64, device="cuda")
    other = torch.ones(10, device="cuda")
    assert all(gt.is_symmetric(t) for t in (x, y, big, sig)) and not gt.is_symmetric(other) and objects() > before
    gt.same_place(x, y, big, sig)
    gt.barrier()
    gt.put_signal(y, x, sig, 1, gdr.SET, to)
    gt.signal_wait(sig, gdr.EQ, 1, y)
    assert (y == 1.0 + (me - 1) % n).all()
    gt.allreduce_into(big, big)
    assert (big == n).all()
    gt.barrier()
    torch.cuda.synchronize()
    held = objects()
    del big
    with torch.cuda.use_mem_pool(one):  # what was dropped is used again
        big = torch.zeros(8 << 20, device="cuda")
    assert objects() == held
    gt.same_place(big)
    del x, y, big, sig, one
    gc.collect()
    torch.cuda.empty_cache()
    assert gt.release() >= 2 and objects() == before, (objects(), before)


if os.environ.get("GDR_DEVICE") == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
gt.init(heap_size=256 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
segments(me, n)
if gdr.on_gpu():
    pool(me, n)
else:
    refused(RuntimeError, ["memory of the CPU"], gt.mem_pool)
    other_device()
gt.finalize()
if me == 0:
    print(f"torch_pool: all right on {n} PEs{'' if os.environ.get('GDR_DEVICE') == 'cuda' else ', without a pool'}")
