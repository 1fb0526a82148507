# SPDX-License-Identifier: BSD-3-Clause
"""usage: every.py [uid FILE PE N]
Each function of python/gdr/, as PEs of a launcher or by unique id; on GPUs with GDR_DEVICE=cuda."""
import array
import os
import sys
import time

import gdr


def bring_up():
    if sys.argv[1:2] != ["uid"]:
        gdr.init(heap_size=16 << 20)
        return
    path, pe, n = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if pe == 0:
        with open(path + ".part", "wb") as f:
            f.write(gdr.get_uniqueid())
        os.rename(path + ".part", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as f:
        gdr.init(uniqueid=f.read(), pe=pe, n_pes=n)


def write(a, values):
    local = array.array(a._format, values)
    gdr.put(a, local.buffer_info()[0], gdr.my_pe())
    gdr.quiet()


def read(a):
    local = array.array(a._format, [0] * a.n)
    gdr.get(local.buffer_info()[0], a, gdr.my_pe())
    return list(local)


def transfers(me, n):
    nxt, prev = (me + 1) % n, (me - 1) % n
    a, b = gdr.zeros(8, "int32"), gdr.zeros(8, "int32")
    sig = gdr.zeros(2, "uint64")
    assert len(a) == 8 and a.nbytes == 32
    write(a, [100 * me + i for i in range(8)])
    if gdr.on_gpu():
        assert a.__cuda_array_interface__["data"][0] == a.ptr
    else:
        assert a.memory[3] == 100 * me + 3
        for t in gdr._TYPES:
            assert len(gdr.Array(a.ptr, 2, t, False).memory) == 2, t
    gdr.barrier_all()
    gdr.put(b[:4], a[:4], nxt)
    gdr.put_signal(b[4:6], a[4:6], sig[:1], 5, gdr.SET, nxt)
    gdr.signal_wait(sig[:1], gdr.EQ, 5)
    gdr.signal(sig[1:], 2, gdr.ADD, nxt)
    gdr.signal_wait(sig[1:], gdr.GE, 2)
    gdr.quiet()
    gdr.barrier_all()
    assert read(b) == [100 * prev + i for i in range(6)] + [0, 0]
    local = array.array("i", [0] * 8)
    gdr.get(local.buffer_info()[0], a, nxt)
    assert list(local) == [100 * nxt + i for i in range(8)]
    assert a.at(me) == a.ptr
    gdr.barrier_all()
    # on the default stream
    gdr.put(b[6:], a[6:], nxt, stream=0)
    gdr.quiet(stream=0)
    gdr.barrier_all(stream=0)
    if not gdr.on_gpu():
        gdr._lib.gdr_stream_sync(None)
    gdr.barrier_all()
    assert read(b) == [100 * prev + i for i in range(8)]
    gdr.barrier_all()
    for x in (sig, b, a):
        x.free()


def collectives(me, n):
    src, dst = gdr.zeros(n, "float64"), gdr.zeros(n * n, "float64")
    write(src, [me * 10.0 + i for i in range(n)])
    t = gdr.world
    assert (t.my_pe(), t.n_pes(), t.translate(me, gdr.node)) == (me, n, me)
    t.fcollect(dst, src)
    assert read(dst) == [p * 10.0 + i for p in range(n) for i in range(n)]
    t.sync()
    t.alltoall(dst[:n], src)
    assert read(dst[:n]) == [p * 10.0 + me for p in range(n)]
    t.barrier()
    t.reduce(dst[:n], src, "sum")
    assert read(dst[:n]) == [sum(p * 10.0 + i for p in range(n)) for i in range(n)]
    t.barrier()
    t.reduce(dst[:n], src, "max")
    assert read(dst[:n]) == [(n - 1) * 10.0 + i for i in range(n)]
    t.barrier()
    t.reducescatter(dst[:1], src, "sum")
    assert read(dst)[0] == sum(p * 10.0 + me for p in range(n))
    t.barrier()
    t.scan(dst[:n], src)
    assert read(dst)[0] == sum(p * 10.0 for p in range(me + 1))
    t.barrier()
    t.scan(dst[:n], src, exclusive=True)
    assert read(dst)[0] == sum(p * 10.0 for p in range(me))
    t.barrier()
    t.broadcast(dst[:n], src, n - 1)
    assert read(dst)[1 % n] == (n - 1) * 10.0 + 1 % n
    t.barrier()
    t.collect(dst, src)
    assert read(dst)[n * n - 1] == (n - 1) * 11.0
    half = t.split(0, 2, (n + 1) // 2)
    assert (half is not None) == (me % 2 == 0)
    if half:
        assert half.n_pes() == (n + 1) // 2
        half.destroy()
    back = t.create(list(range(n))[::-1])
    assert back.my_pe() == n - 1 - me
    back.destroy()
    name = gdr.zeros(1, "uint64")
    if me == 0:
        write(name, [gdr.Team.new_id()])
    t.broadcast(name, name, 0)
    if me % 2 == 0:  # the others take no part
        word = array.array("Q", [0])
        gdr.get(word, name, me)
        even = gdr.Team.join(word[0], (n + 1) // 2, me // 2)
        assert (even.n_pes(), even.translate(even.my_pe(), t)) == ((n + 1) // 2, me)
        even.destroy()
    t.barrier()
    name.free()
    dst.free()
    src.free()


def words(me, n):
    """elements, strides, atomics, waits, locks"""
    nxt, prev, values = (me + 1) % n, (me - 1) % n, {}
    for t in gdr._TYPES:
        a = gdr.zeros(2, t)
        gdr.p(a[1:], 5 + me, nxt)
        gdr.barrier_all()
        values[t] = gdr.g(a[1:], me), gdr.g(a[1:], nxt)
        assert values[t] == (5 + prev, 5 + me), (t, values)
        gdr.barrier_all()
        a.free()
    for t in "int32", "uint64", "float32", "float64":
        a = gdr.zeros(1, t)
        gdr.atomic(a, "set", 5, nxt)
        gdr.atomic(a, "add", 3, nxt)
        gdr.atomic(a, "max", 20, nxt)
        assert gdr.atomic_fetch(a, pe=nxt) == 20
        assert gdr.atomic_fetch(a, "min", 7, nxt) == 20
        assert gdr.atomic_fetch(a, "add", 1, nxt) == 7
        assert gdr.atomic_fetch(a, "swap", 12, nxt) == 8
        assert gdr.atomic_fetch(a, "compare_swap", 1, nxt, cond=13) == 12
        assert gdr.atomic_fetch(a, "compare_swap", 13, nxt, cond=12) == 12
        if t == "int32":
            gdr.atomic(a, "and", 5, nxt)
            assert [gdr.atomic_fetch(a, op, 6, nxt) for op in ("or", "xor", "and", "fetch")] == [5, 7, 1, 0]
        else:
            wrong_size(gdr.atomic, a, "nor", 5, nxt)
        gdr.barrier_all()
        a.free()
    half, a, b, lock = gdr.zeros(1, "float16"), gdr.zeros(12, "int16"), gdr.zeros(12, "int16"), gdr.zeros(2, "int64")
    wrong_size(gdr.atomic, half, "add", 1, nxt)
    wrong_size(gdr.atomic_fetch, lock, "set", 1, nxt)
    wrong_size(gdr.p, a, 1 << 16, nxt)
    write(a, [100 * me + i for i in range(12)])
    gdr.iput(b, a, 4, 1, 3, nxt)
    gdr.iput(b[2:], a[3:], 4, 3, 3, nxt, block=2)
    gdr.barrier_all()
    assert read(b) == [100 * prev + i if i >= 0 else 0 for i in (0, -1, 3, 4, 1, -1, 6, 7, 2, -1, 9, 10)] or me == prev == 0
    local = array.array("h", [0] * 6)
    gdr.iget(local, a[1:], 2, 5, 3, nxt)
    assert list(local) == [100 * nxt + 1, 0, 100 * nxt + 6, 0, 100 * nxt + 11, 0]
    wrong_size(gdr.iput, b, a, 4, 1, 4, nxt)
    wrong_size(gdr.iget, local, a, 2, 1, 3, nxt, 3)
    wrong_size(gdr.iput, b, array.array("i", [1]), 1, 1, 1, nxt)
    gdr.barrier_all()
    write(b, [0] * 12)
    gdr.barrier_all()
    gdr.p(b[1:], 4, nxt)
    gdr.p(b[3:], -2, nxt)
    assert gdr.wait(b[:4], gdr.EQ, [9, 4, 9, -2], skip=[1, 0, 1, 0])
    assert gdr.wait(b[:4], gdr.EQ, 4, "any") == 1 and gdr.wait(b[:4], gdr.NE, 0, "some") == [1, 3]
    assert gdr.wait(b[3:4], gdr.EQ, -2) and gdr.test(b[:4], gdr.GT, -3) and not gdr.test(b[:4], gdr.LT, -2)
    assert gdr.wait(b[:4], gdr.LT, 0, "any") == gdr.test(b[:4], gdr.LT, 0, "any") == 3
    assert not gdr.test(b[:4], gdr.EQ, 4) and gdr.test(b, gdr.LE, 4) and gdr.test(b, gdr.EQ, 7, "any") is None
    assert gdr.wait(b, gdr.EQ, 7, limit=0.01) is False and gdr.wait(b, gdr.EQ, 7, "some", limit=0.01) == []
    wrong_size(gdr.wait, half, gdr.EQ, 0)
    wrong_size(gdr.wait, b, gdr.EQ, [1])
    gdr.barrier_all()
    for _ in range(10):  # counted by reading and writing, under the lock
        gdr.set_lock(lock)
        gdr.p(lock[1:], gdr.g(lock[1:], 0) + 1, 0)
        gdr.clear_lock(lock)
    gdr.barrier_all()
    assert gdr.g(lock[1:], 0) == 10 * n
    if me == 0:
        assert gdr.test_lock(lock)
    gdr.barrier_all()
    assert me == 0 or not gdr.test_lock(lock)
    gdr.barrier_all()
    if me == 0:
        gdr.clear_lock(lock)
    to, by = gdr.zeros(4 * n, "int16"), gdr.zeros(4 * n, "int16")
    write(by, [100 * me + i for i in range(4 * n)])
    gdr.world.alltoalls(to, by, 1, 2, 2)
    assert read(to)[:2 * n] == [100 * pe + 4 * me + i for pe in range(n) for i in (0, 2)]
    wrong_size(gdr.world.alltoalls, to, by, 4, 1, 2)
    gdr.barrier_all()
    for x in to, by, lock, b, a, half:
        x.free()


def wrong_size(call, *args):
    try:
        call(*args)
    except ValueError:
        return
    raise AssertionError(f"{call.__name__} takes {args}")


def sizes(me, n):
    """of nothing, and too small ones, behind which other objects are"""
    for none in (gdr.zeros(0), gdr.empty(0, "int64")):
        assert len(none) == none.nbytes == len(none[:]) == 0
        if not gdr.on_gpu():
            assert len(none.memory) == 0
        gdr.put(none, none, me)
        gdr.get(none, none, me)
        gdr.world.reduce(none, none)
        none.free()
    a, longs, t = gdr.zeros(4 * n), gdr.zeros(4 * n, "int64"), gdr.world
    wrong_size(gdr.put, a, a[1:], me)
    wrong_size(gdr.get, a[1:], a, me)
    wrong_size(gdr.put_signal, a, a[1:], longs[:1], 1, gdr.SET, me)
    wrong_size(t.broadcast, a[1:], a, 0)
    wrong_size(t.reduce, a[:3], a[:4])
    wrong_size(t.scan, a[:3], a)
    wrong_size(t.reduce, longs, a)
    for op in "and", "or", "xor", "avg":
        wrong_size(t.reduce, a, a, op)
        wrong_size(t.reducescatter, a[:4], a, op)
    t.reduce(longs, longs, "xor")
    wrong_size(t.alltoall, a[1:], a)
    wrong_size(t.fcollect, a[1:], a[:4])
    wrong_size(t.reducescatter, a[:4], a[1:])
    if n > 1:
        wrong_size(t.alltoall, a, a[1:])
    wraps(me, a, longs)
    longs.free()
    a.free()


def wraps(me, a, longs):
    """numbers that C's types would cut"""
    words, t = gdr.zeros(4, "uint64"), gdr.world
    for sig, value in (words, -1), (words, 1 << 64), (longs, 1 << 63), (longs, -(1 << 63) - 1), (words, 1.5):
        for call in (lambda: gdr.put_signal(a, a, sig[:1], value, gdr.SET, me), lambda: gdr.signal(sig[:1], value, gdr.ADD, me),
                     lambda: gdr.signal_wait(sig[:1], gdr.EQ, value), lambda: gdr.test(sig, gdr.EQ, value)):
            wrong_size(call)
    wrong_size(gdr.test, words, gdr.EQ, [1 << 64] * 4)
    wrong_size(gdr.signal, gdr.Array(words.ptr, 1, "float64", False), 1, gdr.SET, me)
    gdr.signal(longs[:1], -5, gdr.SET, me)
    gdr.signal_wait(longs[:1], gdr.LT, 0)  # by its sign
    gdr.signal(words[:1], (1 << 64) - 1, gdr.SET, me)
    gdr.signal_wait(words[:1], gdr.GT, 1 << 63)
    for limit in -1, -0.1, float("nan"):
        wrong_size(gdr.wait, words, gdr.EQ, 3, "all", None, limit)
    for pe in 1 << 32, -1:
        for call in (lambda: gdr.put(a, a, pe, 0), lambda: gdr.get(a, a, pe, 0), lambda: gdr.signal(words, 1, gdr.SET, pe),
                     lambda: gdr.put_signal(a, a, words, 1, gdr.SET, pe), lambda: gdr.p(a, 1, pe), lambda: gdr.g(a, pe),
                     lambda: gdr.iput(a, a, 1, 1, 1, pe), lambda: gdr.iget(a, a, 1, 1, 1, pe),
                     lambda: gdr.atomic(words, "add", 1, pe), lambda: gdr.atomic_fetch(words, pe=pe), lambda: a.at(pe),
                     lambda: t.broadcast(longs, longs, pe)):
            wrong_size(call)
    for call in (lambda: t.split(1 << 32, 1, 1), lambda: t.split(0, 1, 1 + (1 << 32)), lambda: t.create([1 << 32]),
                 lambda: t.join(1, 1 + (1 << 32), 0), lambda: t.translate(1 << 32, t)):
        wrong_size(call)
    gdr.barrier_all()
    words.free()


def errors(me, n):
    a, word = gdr.zeros(4), gdr.zeros(1, "uint64")
    try:
        gdr.put(a, a, n)
        raise AssertionError("no such PE")
    except ValueError:
        pass
    try:
        gdr.signal(word, 1, 7, me)
        raise AssertionError("no such operation")
    except gdr.Error as e:
        assert e.status < 0 and str(e).startswith("signal: ") and "there is no signal operation 7" in str(e), e
    try:
        a.memory if gdr.on_gpu() else a.__cuda_array_interface__
        raise AssertionError("the other kind of memory")
    except (AttributeError, BufferError):
        pass
    try:
        a[:2].free()
        raise AssertionError("a part")
    except ValueError:
        pass
    word.free()
    a.free()


bring_up()
me, n = gdr.my_pe(), gdr.n_pes()
transfers(me, n)
collectives(me, n)
words(me, n)
sizes(me, n)
errors(me, n)
gdr.finalize()
if me == 0:
    print(f"python: all right on {n} PEs")
