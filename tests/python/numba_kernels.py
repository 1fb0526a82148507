# SPDX-License-Identifier: BSD-3-Clause
"""python/gdr_numba.py: kernels of Numba, as PEs of a launcher, on GPUs."""
import numpy
from numba import cuda

import gdr
import gdr_numba

N = 300


@cuda.jit(device=True)
def after(pe):
    return (pe + 1) % gdr_numba.n_pes()


@cuda.jit
def ring(to, arrived, status):
    """each PE's number to the next one"""
    me = gdr_numba.my_pe()
    status[0] = gdr_numba.int32_p(to[1:], 1000 + me, after(me))
    gdr_numba.fence()
    gdr_numba.signal_op(arrived, 1, gdr.ADD, pe=after(me))
    status[1] = gdr_numba.signal_wait_until(arrived, gdr.GE, value=1)
    status[2] = gdr_numba.quiet()


@cuda.jit
def values(a8, a64, f, out):
    """one thread: values, atomics, a PE's memory at its address"""
    nxt = after(gdr_numba.my_pe())
    gdr_numba.int8_p(a8, -5, nxt)
    gdr_numba.double_p(f, 2.5, nxt)
    gdr_numba.quiet()
    out[0] = gdr_numba.int8_g(a8, nxt)
    out[1] = int(gdr_numba.double_g(f, nxt) * 10)
    out[2] = gdr_numba.int64_atomic_fetch_add(a64, 7, nxt)
    out[3] = gdr_numba.int64_atomic_compare_swap(a64, 7, 1 << 40, nxt)
    out[4] = gdr_numba.int64_atomic_fetch(a64, nxt)
    there = gdr_numba.ptr(a64, nxt)
    out[5] = there.size
    out[6] = there[0] if there.size else 1 << 40
    out[7] = gdr_numba.ptr(a64, 1000).size


@cuda.jit
def blocks(src, dst, sums, arrived, status):
    """a block: put with signal, get by warps, barrier, a sum, a broadcast"""
    t = cuda.threadIdx.x
    me = gdr_numba.my_pe()
    for i in range(t, N, cuda.blockDim.x):
        src[i] = 1000 * me + i
    cuda.syncthreads()
    s = gdr_numba.float_put_signal_block(dst, src, N, arrived, 1, gdr.SET, after(me))
    w = gdr_numba.signal_wait_until(arrived, gdr.EQ, 1)
    cuda.syncthreads()
    b = gdr_numba.barrier_all_block()
    if t < 32:
        g = gdr_numba.float_get_warp(dst[N:], src, N, after(me))
        if t == 0:
            status[1] = g
    cuda.syncthreads()
    r = gdr_numba.float_sum_reduce_block(gdr.WORLD, sums, src, N)
    c = gdr_numba.float_broadcast_block(gdr.WORLD, sums[N:], src, N, 0)
    if t == 0:
        status[0], status[2], status[3], status[4], status[5] = s, w, b, r, c


@cuda.jit
def put_only(a, b, pe):
    gdr_numba.float_put_block(a, b, N, pe)


def run_ring(me, n):
    to, arrived, status = gdr.zeros(2, "int32"), gdr.zeros(1, "uint64"), gdr.zeros(3, "int32")
    t, a, s = map(cuda.as_cuda_array, (to, arrived, status))
    s[:] = 7
    cuda.synchronize()
    gdr.barrier_all()
    ring[1, 1](t, a, s)
    assert s.copy_to_host().tolist() == [0, 0, 0]
    gdr.barrier_all()
    assert t.copy_to_host().tolist() == [0, 1000 + (me - 1) % n]
    assert a.copy_to_host().tolist() == [1]


def run_values():
    arrays = [cuda.as_cuda_array(gdr.zeros(n, t)) for n, t in ((1, "int8"), (1, "int64"), (1, "float64"), (8, "int64"))]
    values[1, 1](*arrays)
    got = arrays[3].copy_to_host().tolist()
    assert got == [-5, 25, 0, 7, 1 << 40, 1, 1 << 40, 0], got
    gdr.barrier_all()


def run_blocks(me, n):
    src, dst, sums, arrived, status = (cuda.as_cuda_array(gdr.zeros(k, t)) for k, t in (
        (N, "float32"), (2 * N, "float32"), (2 * N, "float32"), (1, "uint64"), (6, "int32")))
    status[:] = 7
    blocks[1, 64](src, dst, sums, arrived, status)
    assert status.copy_to_host().tolist() == [0] * 6, status.copy_to_host()
    i = numpy.arange(N)
    want = numpy.concatenate([1000 * ((me - 1) % n) + i, 1000 * ((me + 1) % n) + i])
    assert (dst.copy_to_host() == want).all()
    total = sum(1000 * p + i for p in range(n))
    assert (sums.copy_to_host() == numpy.concatenate([total, i])).all()
    gdr.barrier_all()


def run_registers():
    """the functions become part of the kernel: not the registers of a call"""
    a, b = (cuda.as_cuda_array(gdr.zeros(N)) for _ in range(2))
    put_only[1, 128](a, b, gdr.my_pe())
    cuda.synchronize()
    (kernel,) = put_only.overloads.values()
    print("registers of a kernel that puts:", kernel.regs_per_thread)
    assert kernel.regs_per_thread <= 80


def refused(body, text):
    try:
        cuda.jit(body)[1, 1](cuda.as_cuda_array(gdr.zeros(4, "int32")))
    except Exception as e:  # numba's or numba-cuda's, by version
        assert type(e).__name__ == "TypingError" and text in str(e), e
        return
    raise AssertionError(f"not refused: {text}")


def refusals():
    refused(lambda a: gdr_numba.int32_p(a, 1), "int32_p takes dst, value, pe")
    refused(lambda a: gdr_numba.float_p(a, 1, 0), "dst is an array of float32, not of int32")
    refused(lambda a: gdr_numba.int32_p(a[::2], 1, 0), "an array with steps")
    refused(lambda a: gdr_numba.int32_p(1.5, 1, 0), "an array or an address")
    refused(lambda a: gdr_numba.int32_puts(a), "int32_puts")


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
run_ring(me, n)
run_values()
run_blocks(me, n)
run_registers()
if n == 1:
    refusals()
gdr.finalize()
if me == 0:
    print(f"numba: all right on {n} PEs")
