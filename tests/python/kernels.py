# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of python/gdr_kernel.py, as PEs of a launcher; on GPUs with GDR_DEVICE=cuda."""
import array
import ctypes

import gdr
import gdr_kernel

TEN = 10


@gdr_kernel.kernel
def ring(to: "int32*", arrived: "uint64*", status: "int32*"):
    """each PE's number to the next one"""
    me = gdr.my_pe()
    n = gdr.n_pes()
    status[0] = gdr.int32_p(to, 1000 + me, (me + 1) % n)
    gdr.fence()
    gdr.signal_op(arrived, 1, gdr.ADD, (me + 1) % n)
    gdr.signal_wait_until(arrived, gdr.GE, 1)
    status[1] = gdr.quiet()


@gdr_kernel.kernel
def words(out: "int64*", n: "int32", scale: "float64", counter: "int64*"):
    me = gdr.thread_id() + gdr.block_id() * gdr.block_size()
    if me >= n:
        return
    part = 5 - gdr.int64_atomic_fetch_add(counter, 1, gdr.my_pe()) % 3  # added once, as in the next three
    counter[1 + me] = k = gdr.int64_atomic_fetch_add(counter, 1, gdr.my_pe())
    counter[1 + me + 0 * gdr.int64_atomic_fetch_add(counter, 1, gdr.my_pe())] -= k
    if counter[1 + me] or not 0 <= gdr.int64_atomic_fetch_add(counter, 1, gdr.my_pe()) < 1000:
        return
    counter[1 + me] = part * 100 + int(max(-7.5 // scale, -7.5 % scale) * 2)
    odd = 0
    for i in range(TEN, -TEN, -3):
        if i % 4 == 0:
            continue
        odd += i // 4 + 1
        i = 100
    k = 0
    while True:
        k += 1
        if not k < 5 or k == me and k > 3:
            break
    out[me] = odd * 1000 + k * 10 + min(me, 3) + (1 if -1 < me <= 2 else 0)
    out[n:][me] = int(scale * abs(me - 2)) | 1 << 40


@gdr_kernel.kernel
def halves(data: "float32*", from_next: "float32*", status: "int32*", n: "int32"):
    mine = gdr.thread_id()
    while mine < n:
        data[mine] = data[mine] / 2
        mine += gdr.block_size()
    gdr.barrier_all_block()
    s = gdr.float_get_block(from_next, data[n // 2:], n // 2, (gdr.my_pe() + 1) % gdr.n_pes())
    if gdr.thread_id() == 0:
        status[0] = s


in_c = gdr_kernel.source("""#include <gdr.h>
struct args { int32_t *out; int32_t add; };
GDR_KERNEL(plain, struct args, a)
{
	if (!gdr_thread_id())
		a.out[gdr_block_id()] = (int32_t)gdr_block_id() + a.add;
}
""", "plain", {"out": "int32*", "add": "int32"})


def read(a):
    local = array.array(a._format, [0] * a.n)
    gdr.get(local.buffer_info()[0], a, gdr.my_pe())
    return list(local)


def write(a, values):
    local = array.array(a._format, values)
    gdr.put(a, local.buffer_info()[0], gdr.my_pe())


def run_ring(me, n):
    to, arrived, status = gdr.zeros(1, "int32"), gdr.zeros(1, "uint64"), gdr.zeros(2, "int32")
    write(status, [7, 7])
    gdr.barrier_all()
    ring[1, 1](to, arrived, status)
    gdr_kernel.sync()
    gdr.barrier_all()
    assert read(status) == [0, 0]
    assert read(to) == [1000 + (me - 1) % n]
    assert read(arrived) == [1]


def run_words():
    n, scale = 37, 2.25
    out, counter = gdr.zeros(2 * n, "int64"), gdr.zeros(1 + n, "int64")
    words[2, 32](out, n, scale, counter)
    gdr_kernel.sync()
    count = read(counter)
    real = int(max(-7.5 // scale, -7.5 % scale) * 2)
    assert count[0] == 4 * n and all(c - real in (300, 400, 500) for c in count[1:]), count
    odd = sum(i // 4 + 1 for i in range(TEN, -TEN, -3) if i % 4 != 0)
    want = [odd * 1000 + (4 if i == 4 else 5) * 10 + min(i, 3) + (1 if i <= 2 else 0) for i in range(n)]
    assert read(out) == want + [int(scale * abs(i - 2)) | 1 << 40 for i in range(n)], read(out)


def run_halves(me, n):
    count = 300
    data, got, status = gdr.zeros(count), gdr.zeros(count // 2), gdr.zeros(1, "int32")
    write(data, [float(1000 * me + i) for i in range(count)])
    write(status, [7])
    gdr.barrier_all()
    halves[1, 64](data, got, status, count)
    gdr_kernel.sync()
    assert read(status) == [0]
    assert read(got) == [(1000 * ((me + 1) % n) + i) / 2 for i in range(count // 2, count)]
    gdr.barrier_all()


def run_plain():
    out = gdr.zeros(5, "int32")
    in_c[5, 32](out, 40)
    gdr_kernel.sync()
    assert read(out) == [40, 41, 42, 43, 44]


def refused(what, kind, text):
    try:
        what()
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"not refused: {text}")


def refusals():
    a = gdr.zeros(1, "int32")
    refused(lambda: ring[1, 1](a, a), TypeError, "takes 3")
    refused(lambda: ring[1, 1](a, a, a), TypeError, "an array of uint64")

    def no_type(x):
        pass

    def lists(x: "int32*"):
        x[0] = [1, 2][0]

    def unknown(x: "int32*"):
        x[0] = later

    def result(x: "int32*"):
        return x[0]

    refused(lambda: gdr_kernel.kernel(no_type), SyntaxError, "a type is missing")
    refused(lambda: gdr_kernel.kernel(lists), SyntaxError, "List is not known")
    refused(lambda: gdr_kernel.kernel(unknown), SyntaxError, "no variable yet")
    refused(lambda: gdr_kernel.kernel(result), SyntaxError, "Return")
    broken = gdr_kernel.source("GDR_KERNEL(", "x", {})
    refused(lambda: broken[1, 1](), SyntaxError, "")
    assert ctypes.sizeof(words._struct) == 32


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
run_ring(me, n)
run_words()
run_halves(me, n)
run_plain()
if n == 1:
    refusals()
gdr.finalize()
if me == 0:
    print(f"kernels: all right on {n} PEs")
