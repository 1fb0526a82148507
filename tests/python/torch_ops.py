# SPDX-License-Identifier: BSD-3-Clause
"""gdr.torch: symmetric tensors, ops and their gradients, torch.compile, symm_mem. As PEs of a launcher; on GPUs with
GDR_DEVICE=cuda."""
import gc
import mmap
import os

import torch

import gdr
import gdr.torch as gt
from gdr.torch import symm_mem


def refused(kind, texts, call, *args, **kw):
    try:
        call(*args, **kw)
    except kind as e:
        assert all(t in str(e) for t in texts), e
        return
    raise AssertionError(f"{call} takes {args}")


def tensors(me, n):
    t = gt.zeros(4, 8)
    assert t.shape == (4, 8) and t.dtype == torch.float32 and t.device.type == device and gt.is_symmetric(t[1])
    assert not gt.is_symmetric(torch.zeros(4, device=device))
    for dtype in (torch.bfloat16, torch.float16, torch.int64, torch.uint8):
        u = gt.empty((2, 3), dtype=dtype)
        assert u.dtype == dtype and u.shape == (2, 3)
        gt.free(u)
    same = gdr.zeros(3, torch.bfloat16)
    assert same.dtype == "bfloat16"
    same.free()
    refused(ValueError, ["complex64", "view()"], gt.zeros, 3, dtype=torch.complex64)
    part = t[1]
    refused(BufferError, ["views"], gt.free, t)
    assert t.shape == (4, 8) and t.data_ptr() == part.data_ptr() - 32
    del part
    gc.collect()
    gt.free(t)
    assert t.numel() == 0
    refused(ValueError, ["gdr.torch.empty"], gt.free, torch.zeros(3))
    if device == "cpu":
        own = torch.frombuffer(mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=torch.float32)
        own.fill_(me)
        same = gt.register(own)
        gdr.barrier_all()
        gt.put(same[:4], same[4:8], (me + 1) % n)
        gt.barrier()
        assert (own[:4] == (me - 1) % n).all() and (own[4:] == me).all()
        gt.unregister(same)


def transfers(me, n):
    to, before = (me + 1) % n, (me - 1) % n
    x, sig = gt.zeros(2, 3), gt.zeros(2, dtype=torch.int64)
    gt.put(x, torch.full((2, 3), 1.0 + me, device=device), to)
    gt.barrier(x)
    assert (x == 1 + before).all()
    y = torch.zeros(2, 3, device=device)
    gt.get(y, x, to)
    assert (y == 1 + me).all()
    gt.barrier()
    gt.put_signal(x[0], torch.full((3,), 10.0 + me, device=device), sig[:1], 3, gdr.ADD, to)
    gt.signal_wait(sig[:1], gdr.GE, 3, x)
    assert (x[0] == 10 + before).all() and (x[1] == 1 + before).all()
    gt.signal(sig[1:], 7, gdr.SET, to)
    gt.signal_wait(sig[1:], gdr.EQ, 7)
    gt.quiet()
    ordinary = torch.zeros(2, 3, device=device)
    refused(ValueError, ["not symmetric", "gdr.torch.register"], gt.put, ordinary, x, to)
    refused(ValueError, ["not symmetric"], gt.allreduce_into, ordinary, x)
    refused(ValueError, ["(3,)", "(2, 3)"], gt.put, x, torch.zeros(3, device=device), to)
    refused(ValueError, ["float64", "float32"], gt.put, x, ordinary.double(), to)
    refused(ValueError, ["gaps"], gt.put, x.T, ordinary.T, to)
    gt.barrier()
    gt.free(x)
    del sig
    return


def into(me, n):
    """between symmetric tensors"""
    x, y, big = gt.zeros(4), gt.zeros(4), gt.zeros(4 * n)
    x.copy_(torch.arange(4.0) + 10 * me)
    gt.allreduce_into(y, x)
    assert torch.equal(y.cpu(), n * torch.arange(4.0) + 10 * sum(range(n)))
    gt.allreduce_into(y, x, "max")
    assert torch.equal(y.cpu(), torch.arange(4.0) + 10 * (n - 1))
    gt.allgather_into(big, x)
    assert torch.equal(big.cpu(), torch.cat([torch.arange(4.0) + 10 * p for p in range(n)]))
    gt.broadcast_into(y, x, n - 1)
    assert torch.equal(y.cpu(), torch.arange(4.0) + 10 * (n - 1))
    gt.reducescatter_into(y, big)
    assert torch.equal(y.cpu(), n * (torch.arange(4.0) + 10 * me))
    other = gt.zeros(4 * n)
    gt.alltoall_into(other, big)
    assert torch.equal(other.cpu().view(n, 4), (torch.arange(4.0) + 10 * me).expand(n, 4))


def rounds(me, n):
    """functional collectives, with more than the workspace has room for"""
    for m in (1, 3, 5000):
        x = torch.randn(n * m, 2, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
        of = [x * (p + 1) for p in range(n)]  # each PE's
        x = of[me].to(device)
        close(gt.allreduce(x), sum(of))
        close(gt.allgather(x), torch.cat(of))
        close(gt.reducescatter(x), sum(of)[me * m:(me + 1) * m])
        close(gt.alltoall(x), torch.cat([o[me * m:(me + 1) * m] for o in of]))
        close(gt.broadcast(x, n - 1), of[n - 1])
        close(gt.allreduce(x.t()), sum(of).t())
    close(gt.allgather(torch.tensor(float(me), device=device)), torch.arange(float(n)))
    if n > 1:
        refused(ValueError, ["(%d, 2)" % (n + 1), "equal parts"], gt.alltoall, torch.zeros(n + 1, 2, device=device))
    half = gdr.world.split(0, 2, (n + 1) // 2)
    if half:
        close(gt.allreduce(torch.ones(3, device=device), team=half), torch.full((3,), float((n + 1) // 2)))
        half.destroy()


def close(a, b):
    torch.testing.assert_close(a.cpu(), b)


def gradients(me, n):
    """against those of the whole computation, which one PE can do alone"""
    g = torch.Generator().manual_seed(7)
    whole = [torch.randn(n * 2, 3, dtype=torch.float64, generator=g) for _ in range(n)]
    weight = [torch.randn(n * n * 2, 3, dtype=torch.float64, generator=g) for _ in range(n)]
    ways = {
        "allreduce": (gt.allreduce, lambda x, p: sum(x)),
        "allgather": (gt.allgather, lambda x, p: torch.cat(x)),
        "reducescatter": (gt.reducescatter, lambda x, p: sum(x)[2 * p:2 * p + 2]),
        "alltoall": (gt.alltoall, lambda x, p: torch.cat([o[2 * p:2 * p + 2] for o in x])),
        "broadcast": (lambda x: gt.broadcast(x, n - 1), lambda x, p: x[n - 1] * 1),
    }
    for name, (ours, serial) in ways.items():
        leaves = [w.clone().requires_grad_() for w in whole]
        sum((y * y * weight[p][:len(y)]).sum() for p in range(n) for y in [serial(leaves, p)]).backward()
        x = whole[me].clone().to(device).requires_grad_()
        y = ours(x)
        (y * y * weight[me][:len(y)].to(device)).sum().backward()
        want = leaves[me].grad
        close(x.grad, torch.zeros_like(x.grad).cpu() if want is None else want)
    x = whole[me].clone().to(device).requires_grad_()
    refused(NotImplementedError, ["allreduce", "max"], lambda: gt.allreduce(x, "max").sum().backward())
    torch.library.opcheck(torch.ops.gdr.allreduce.default, (x, "sum", 0))
    torch.library.opcheck(torch.ops.gdr.allgather.default, (x, 0))


def compiled(me, n):
    """inductor hands the ops the tensors themselves, in order, and drops none"""
    x, sig = gt.zeros(8), gt.zeros(1, dtype=torch.int64)
    to = (me + 1) % n

    def f(x, sig, y):
        gt.put_signal(x, y * 2, sig, 1, gdr.ADD, to)
        gt.signal_wait(sig, gdr.GE, 1, x)
        z = gt.allreduce(x + 1)
        gt.barrier(x)
        return z * 2

    y = torch.full((8,), float(me), device=device)
    z = torch.compile(f, fullgraph=True)(x, sig, y)
    close(z, torch.full((8,), 2.0 * sum(2 * p + 1 for p in range(n))))
    assert (x == 2 * ((me - 1) % n)).all() and sig.item() == 1
    h = torch.compile(lambda v: gt.allgather(v * 2).sum(), fullgraph=True, backend="aot_eager")
    v = y.clone().requires_grad_()
    h(v).backward()
    close(v.grad, torch.full((8,), 2.0 * n))

    def silent(x):
        gt.barrier()
        return x + 1
    refused(Exception, ["drops a call without tensors"], torch.compile(silent, fullgraph=True), y)


def like_symm_mem(me, n):
    t = symm_mem.empty(4, n, dtype=torch.float32)
    s = symm_mem.rendezvous(t, channels=2)
    assert (s.rank, s.world_size, s.buffer_size) == (me, n, 16 * n) and symm_mem.is_symm_mem_tensor(t)
    for rank in range(n):
        s.get_buffer(rank, (4, n), torch.float32)[:, me] = me + 1.0
    s.barrier()
    assert torch.equal(t.cpu(), (torch.arange(n) + 1.0).expand(4, n))
    s.barrier(1)
    for count in range(3):
        gt.put(t[0], torch.full((n,), 100.0 + count + me, device=device), (me + 1) % n)
        s.put_signal((me + 1) % n, 1)
        s.wait_signal((me - 1) % n, 1)
        assert (t[0] == 100 + count + (me - 1) % n).all()
        s.barrier()
    assert s.get_buffer((me + 1) % n, (n,), torch.float32, n)[me] == me + 1
    assert s.get_signal_pad(me).shape == (2, 2, n) and len(s.buffer_ptrs) == len(s.signal_pad_ptrs) == n
    refused(ValueError, ["channel 2"], s.barrier, 2)
    refused(ValueError, ["rank"], s.put_signal, n)
    refused(ValueError, [f"{16 * n}"], s.get_buffer, me, (5, n), torch.float32)
    refused(NotImplementedError, ["GDR_TIMEOUT"], s.barrier, 0, 5)
    refused(NotImplementedError, ["multicast"], lambda: s.multicast_ptr)
    assert not hasattr(s, "multicast_ptr") and not hasattr(s, "stream_write_value32") and not hasattr(symm_mem, "get_backend")
    refused(NotImplementedError, ["stream_write_value32"], lambda: s.stream_write_value32)
    refused(NotImplementedError, ["enable_symm_mem_for_group"], lambda: symm_mem.enable_symm_mem_for_group)
    refused(ValueError, ["not symmetric"], symm_mem.rendezvous, torch.zeros(4, device=device))
    gdr.barrier_all()
    s.free()


device = "cuda" if os.environ.get("GDR_DEVICE") == "cuda" else "cpu"
if device == "cuda":
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)))
                          % torch.cuda.device_count())
refused(RuntimeError, ["gdr.torch.init()"], gt.zeros, 3)
gt.init(workspace=8192, heap_size=32 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
for part in (tensors, transfers, into, rounds, gradients, like_symm_mem, compiled):
    part(me, n)
gt.finalize()
if me == 0:
    print(f"torch_ops: all right on {n} PEs")
