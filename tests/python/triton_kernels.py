# SPDX-License-Identifier: BSD-3-Clause
"""python/gdr_triton.py: kernels of Triton, as PEs of a launcher, on GPUs."""
import torch
import triton
import triton.language as tl

import gdr
import gdr_triton

N = 512


@triton.jit
def after(pe):
    return (pe + 1) % gdr_triton.n_pes()


@triton.jit
def ring(to, arrived, status):
    """each PE's number to the next one"""
    me = gdr_triton.my_pe()
    tl.store(status, gdr_triton.int32_p(to + 1, 1000 + me, after(me)))
    gdr_triton.fence()
    gdr_triton.signal_op(arrived, 1, gdr_triton.ADD, pe=after(me))
    tl.store(status + 1, gdr_triton.signal_wait_until(arrived, gdr_triton.GE, value=1))
    tl.store(status + 2, gdr_triton.quiet())


@triton.jit
def values(a8, a64, f, out):
    """once a program, whatever its warps: values and atomics; every program adds"""
    nxt = after(gdr_triton.my_pe())
    tl.store(out + 5 + tl.program_id(0), gdr_triton.int64_atomic_fetch_add(a64 + 1, 1, nxt))
    if tl.program_id(0) == 0:
        gdr_triton.int8_p(a8, -5, nxt)
        gdr_triton.double_p(f, 2.5, nxt)
        gdr_triton.quiet()
        tl.store(out, gdr_triton.int8_g(a8, nxt).to(tl.int64))
        tl.store(out + 1, (gdr_triton.double_g(f, nxt) * 10).to(tl.int64))
        tl.store(out + 2, gdr_triton.int64_atomic_fetch_add(a64, 7, nxt))
        tl.store(out + 3, gdr_triton.int64_atomic_compare_swap(a64, 7, 1099511627776, nxt))
        there = gdr_triton.ptr(a64, nxt).to(tl.pointer_type(tl.int64))
        tl.store(out + 4, tl.load(there))


@triton.jit
def blocks(src, dst, sums, matrix, arrived, status, n: tl.constexpr):
    """a program with shared memory of its own: what it stored is put, with a signal; get, barrier, a sum, a broadcast"""
    me = gdr_triton.my_pe()
    i = tl.arange(0, n)
    tl.store(src + i, (1000 * me + i).to(tl.float32))
    tl.store(status, gdr_triton.float_put_signal_block(dst, src, n, arrived, 1, gdr_triton.SET, after(me)))
    tl.store(status + 1, gdr_triton.signal_wait_until(arrived, gdr_triton.EQ, 1))
    tl.store(status + 2, gdr_triton.barrier_all_block())
    tl.store(status + 3, gdr_triton.float_get_warp(dst + n, src, n, after(me)))
    tl.store(status + 4, gdr_triton.float_sum_reduce_block(gdr_triton.WORLD, sums, src, n))
    tl.store(status + 5, gdr_triton.float_broadcast_block(gdr_triton.WORLD, sums + n, src, n, 0))
    # what a product leaves in shared memory
    r = tl.arange(0, 64)
    a = ((r[:, None] * 64 + r[None, :]) / 64.0).to(tl.float16)
    b = tl.where(r[:, None] == r[None, :], 2.0, 0.0).to(tl.float16)
    tl.store(matrix + r[:, None] * 64 + r[None, :], tl.dot(a, b))
    tl.store(sums + i + 2 * n, tl.load(dst + i) * 2 + tl.sum(tl.load(dst + n + i), 0))


def tensors(*what):
    arrays = [gdr.zeros(n, t) for n, t in what]
    return [torch.as_tensor(a, device="cuda") for a in arrays]


def run_ring(me, n):
    to, arrived, status = tensors((2, "int32"), (1, "int64"), (3, "int32"))
    status.fill_(7)
    torch.cuda.synchronize()
    gdr.barrier_all()
    ring[(1,)](to, arrived, status)
    assert status.tolist() == [0, 0, 0]
    gdr.barrier_all()
    assert to.tolist() == [0, 1000 + (me - 1) % n]
    assert arrived.tolist() == [1]


def run_values():
    a8, a64, f, out = tensors((1, "int8"), (2, "int64"), (1, "float64"), (8, "int64"))
    gdr.barrier_all()
    values[(3,)](a8, a64, f, out)
    got = out.tolist()
    assert got[:5] == [-5, 25, 0, 7, 1 << 40], got
    assert sorted(got[5:]) == [0, 1, 2], got
    gdr.barrier_all()


def run_blocks(me, n, warps):
    src, dst, sums, matrix, arrived, status = tensors((N, "float32"), (2 * N, "float32"), (3 * N, "float32"),
                                                      (64 * 64, "float32"), (1, "int64"), (6, "int32"))
    status.fill_(7)
    torch.cuda.synchronize()
    gdr.barrier_all()
    kernel = blocks[(1,)](src, dst, sums, matrix, arrived, status, N, num_warps=warps)
    assert status.tolist() == [0] * 6, status.tolist()
    i = torch.arange(N, device="cuda", dtype=torch.float32)
    prev, nxt = 1000 * ((me - 1) % n) + i, 1000 * ((me + 1) % n) + i
    assert torch.equal(dst, torch.cat([prev, nxt]))
    total = sum(1000 * p + i for p in range(n))
    assert torch.equal(sums, torch.cat([total, i, prev * 2 + nxt.sum()]))
    r = torch.arange(64 * 64, device="cuda", dtype=torch.float32)
    assert torch.equal(matrix, (r.half() / 64).float() * 2)
    gdr.barrier_all()
    return kernel


def refused(body, text):
    a = torch.zeros(4, dtype=torch.int32, device="cuda")
    try:
        body[(1,)](a)
    except Exception as e:  # Triton wraps what a function raises
        while e and text not in str(e):
            e = e.__cause__ or e.__context__
        assert e, text
        return
    raise AssertionError(f"not refused: {text}")


@triton.jit
def too_few(a):
    gdr_triton.int32_p(a, 1)


@triton.jit
def other_type(a):
    gdr_triton.float_p(a, 1.0, 0)


@triton.jit
def of_blocks(a):
    gdr_triton.int32_p(a + tl.arange(0, 4), 1, 0)


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
run_ring(me, n)
run_values()
for warps in 1, 4:
    k = run_blocks(me, n, warps)
if me == 0:
    print(f"registers of the last kernel: {k.n_regs}, spilled {k.n_spills}, shared {k.metadata.shared}")
if n == 1:
    refused(too_few, "int32_p takes dst, value, pe")
    refused(other_type, "dst is a pointer to float32, not to int32")
    refused(of_blocks, "not a block")
gdr.finalize()
if me == 0:
    print(f"triton: all right on {n} PEs")
