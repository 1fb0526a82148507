# SPDX-License-Identifier: BSD-3-Clause
"""Shapes, DLPack and other memory that goes to and from arrays (python/gdr/); numpy's part where numpy is. As PEs of a
launcher, on the host device."""
import array
import copy
import gc
import mmap
import pickle

import gdr
from gdr import _dlpack

try:
    import numpy
except ImportError:
    numpy = None


def refused(kind, texts, call, *args):
    try:
        call(*args)
    except kind as e:
        assert all(t in str(e) for t in texts), e
        return
    raise AssertionError(f"{call} takes {args}")


class Tensor:
    """Memory that says itself by DLPack alone, and counts its capsules' ends."""

    def __init__(self, values, code="f", device=1):
        self.memory, self.device = array.array(code, values), device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self):
        word = {"f": "float32", "q": "int64"}[self.memory.typecode]
        return _dlpack.capsule(self.memory.buffer_info()[0], (len(self.memory),), word, (self.device, 0), self.memory)


def shapes(me):
    a = gdr.zeros((4, 8), "float32")
    assert (a.shape, a.ndim, a.n, len(a), a.nbytes) == ((4, 8), 2, 32, 4, 128)
    a.memory[1, 3] = 5
    assert a[1].shape == (8,) and a[1].memory[3] == 5 and a[-3].ptr == a[1].ptr
    assert a[1:3].shape == (2, 8) and a[1:3].memory[0, 3] == 5
    assert a.reshape(-1).memory[11] == 5 and a.reshape(2, -1).shape == (2, 16) and a.reshape((8, 4)).memory[2, 3] == 5
    refused(ValueError, ["(5, 5)", "32", "(4, 8)"], a.reshape, 5, 5)
    refused(ValueError, ["(3, -1)"], a.reshape, 3, -1)
    refused(IndexError, ["4"], a.__getitem__, 4)
    refused(ValueError, ["float31", "float32"], gdr.zeros, 4, "float31")
    for copied in copy.copy, copy.deepcopy, pickle.dumps, lambda x: copy.deepcopy([x[:1]]):
        refused(TypeError, ["memory that all PEs have", "gdr.put"], copied, a)
    refused(TypeError, ["gdr.p(", "a.memory[i] = x"], a.__setitem__, 0, 5)
    refused(TypeError, ["float"], gdr.zeros, 4.0)
    gc.collect()
    a.free()
    one = gdr.zeros((), "int64")
    assert (one.n, one.nbytes) == (1, 8)
    refused(TypeError, ["no length"], len, one)
    one.free()
    none = gdr.zeros((0, 3))
    assert len(none) == 0 and len(none.memory) == 0 and none[:].shape == (0, 3)
    none.free()


def freed():
    """each use of an array behind free(), of a part that was made before, and of an array without elements"""
    a, none, word, other, t = gdr.zeros(8), gdr.zeros(0), gdr.zeros(1, "uint64"), gdr.zeros(8), gdr.world
    part, live = a[:], gdr.zeros(1, "uint64")
    for x in a, none, word:
        x.free()
    for x in a, part, none:
        for use in (lambda: gdr.put(x, x, 0), lambda: gdr.put(other[:x.n], x, 0), lambda: gdr.put(x, other, 0, stream=0),
                    lambda: gdr.get(x, x, 0), lambda: gdr.get(other[:x.n], x, 0), lambda: gdr.get(x, x, 0, stream=0),
                    lambda: gdr.put_signal(x, other, live, 1, gdr.SET, 0), lambda: x[:1], lambda: x.reshape(-1),
                    lambda: x.memory, lambda: x.at(0), lambda: x.__array_interface__,
                    lambda: x.__dlpack__(), lambda: x.__dlpack_device__(), lambda: gdr.from_dlpack(x),
                    lambda: t.reduce(x, x), lambda: t.broadcast(other, x, 0), lambda: t.scan(x, x),
                    lambda: gdr.unregister(x)):
            refused(ValueError, [repr(x), "the array was freed"], use)
    for use in (lambda: gdr.signal(word, 1, gdr.SET, 0), lambda: gdr.signal_wait(word, gdr.EQ, 0), word.free,
                lambda: gdr.put_signal(other, other, word, 1, gdr.SET, 0), a.free, none.free):
        refused(ValueError, ["the array was freed"], use)
    own = gdr.register(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    gdr.unregister(own)
    refused(ValueError, ["the array was unregistered"], gdr.put, own, own, 0)
    other.free()
    live.free()


def local(me, n):
    """put and get of what has the buffer protocol, or DLPack"""
    a, to = gdr.zeros((2, 3), "float32"), (me + 1) % n
    gdr.put(a, array.array("f", range(6)), to)
    gdr.barrier_all()
    back = array.array("f", [0] * 6)
    gdr.get(back, a, me)
    assert list(back) == list(range(6))
    gdr.barrier_all()
    gdr.put(a, bytes(24), to)
    gdr.barrier_all()
    gdr.get(memoryview(back), a, to)
    assert list(back) == [0] * 6
    gdr.barrier_all()
    before = len(_dlpack._exported)
    gdr.put(a, Tensor([7] * 6), to)
    assert len(_dlpack._exported) == before  # the capsule that was not taken has ended
    gdr.barrier_all()
    into = Tensor([0] * 7)
    gdr.get(into, a, me)
    assert list(into.memory) == [7] * 6 + [0]
    refused(ValueError, ["put", "20 bytes of float32", "24 bytes"], gdr.put, a, array.array("f", [0] * 5), to)
    refused(ValueError, ["put", "float64", "float32"], gdr.put, a, array.array("d", [0] * 6), to)
    refused(ValueError, ["put", "int64", "float32"], gdr.put, a, Tensor([0] * 6, "q"), to)
    refused(ValueError, ["get", "20 bytes of float32", "24 bytes"], gdr.get, array.array("f", [0] * 5), a, to)
    refused(ValueError, ["cannot be written"], gdr.get, bytes(24), a, to)
    refused(ValueError, ["gaps"], gdr.put, a, memoryview(bytearray(48))[::2], to)
    refused(TypeError, ["str", "buffer protocol"], gdr.put, a, "text", to)
    refused(ValueError, ["put", "5 is no address"], gdr.put, a, 5, to)
    refused(ValueError, ["empty", "bytes"], gdr.empty, 2**62 + 4, "int32")
    refused(ValueError, ["zeros", "bytes"], gdr.zeros, 2**62)
    bits = gdr.zeros(4, "bfloat16")
    gdr.put(bits, array.array("H", [0x3f80] * 4), to)
    gdr.barrier_all()
    assert list(bits.memory) == [0x3f80] * 4
    refused(ValueError, ["signal_wait", "64 bits", "bfloat16"], gdr.signal_wait, bits, gdr.EQ, 0)
    gdr.barrier_all()
    bits.free()
    a.free()


def dlpack(me):
    a = gdr.zeros((2, 4), "int32")
    assert a.__dlpack_device__() == (1, 0)
    same = gdr.from_dlpack(a)
    assert (same.ptr, same.shape, same.dtype) == (a.ptr, (2, 4), "int32")
    part = gdr.from_dlpack(a[1])
    assert part.ptr == a.ptr + 16
    refused(ValueError, ["not symmetric", "gdr.zeros", "register"], gdr.from_dlpack, Tensor([1, 2]))
    refused(BufferError, ["as it is"], lambda: a.__dlpack__(copy=True))
    capsule = a.__dlpack__()
    refused(BufferError, ["1 views", "(2, 4) int32"], a.free)
    del capsule
    view = a[1:].memory  # of a part
    refused(BufferError, ["1 views"], a.free)
    del view
    gc.collect()
    a.free()


def numbers():
    """lengths, indices and types as numpy has them"""
    a = gdr.zeros((numpy.int64(4), numpy.int32(8)), numpy.float32)
    assert (a.shape, a.dtype, type(a.shape[0])) == ((4, 8), "float32", int)
    assert a[numpy.int64(-1)].ptr == a[3].ptr and a[numpy.int64(1):numpy.int64(3)].shape == (2, 8)
    assert a.reshape(numpy.int64(32)).shape == a.reshape(-1).shape == (32,) and a.reshape(numpy.array([2, 16])).ndim == 2
    a.free()
    words = gdr.zeros(3, "int32")
    assert gdr.test(words, gdr.EQ, numpy.array([0, 1, 0]), skip=numpy.array([False, True, False]))
    words.free()
    for dtype in numpy.dtype("int16"), numpy.int16, "int16", numpy.zeros(1, "int16").dtype:
        b = gdr.empty(numpy.int64(3), dtype)
        assert (b.shape, b.dtype, b.nbytes) == ((3,), "int16", 6)
        b.free()
    for dtype in numpy.dtype(">f4"), numpy.complex64, numpy.dtype("f4,f4"), float, None:
        refused(ValueError, ["there is no type", "float32"], gdr.zeros, 3, dtype)


def views(me, n):
    """numpy's"""
    a = gdr.zeros((2, 3), "float32")
    v = numpy.asarray(a)
    assert v.shape == (2, 3) and v.dtype == numpy.float32 and v.ctypes.data == a.ptr
    v[1, 2] = me + 1
    assert a.memory[1, 2] == me + 1
    w = numpy.from_dlpack(a)
    assert w.ctypes.data == a.ptr and w[1, 2] == me + 1
    gdr.barrier_all()
    x = numpy.zeros((2, 3), "float32")
    gdr.get(x, a, (me + 1) % n)
    assert x[1, 2] == (me + 1) % n + 1
    gdr.barrier_all()
    gdr.put(a, numpy.full((2, 3), 9, "float32"), (me + 1) % n)
    gdr.barrier_all()
    assert (v == 9).all()
    refused(ValueError, ["put", "float64", "float32"], gdr.put, a, numpy.zeros((2, 3)), me)
    refused(ValueError, ["gaps", "(3, 2)"], gdr.put, a, x.T, me)
    for foreign in ">f4", "c8", "O", "U1", "i4,i4":
        refused(ValueError, ["put", "float32"], gdr.put, a, numpy.zeros((2, 6), foreign), me)
        refused(ValueError, ["get", "float32"], gdr.get, numpy.zeros((2, 6), foreign), a, me)
    some = gdr.zeros(8, "uint8")
    gdr.put(some, numpy.zeros(2, "c8"), me)
    refused(ValueError, ["put", "uint8"], gdr.put, some, numpy.zeros(2, "O"), me)
    some.free()
    gdr.barrier_all()
    refused(BufferError, ["views"], a.free)
    del v, w
    gc.collect()
    a.free()
    h = gdr.zeros(4, "float16")
    assert numpy.asarray(h).dtype == numpy.float16
    h.free()
    pages = numpy.empty(3 * 4096, "uint8")
    at = -pages.ctypes.data % 4096
    own = pages[at:at + 4096].view("float32").reshape(32, 32)
    r = gdr.register(own)
    assert (r.shape, r.dtype) == ((32, 32), "float32")
    own[:] = me
    gdr.barrier_all()
    gdr.put(r[1], r[0], (me + 1) % n)
    gdr.barrier_all()
    assert (own[1] == (me - 1) % n).all()
    gdr.unregister(r)


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
shapes(me)
freed()
local(me, n)
dlpack(me)
if numpy:
    numbers()
    views(me, n)
elif me == 0:
    print("left out: numpy's views, there is no numpy")
old = gdr.zeros(4)
gdr.finalize()
refused(ValueError, ["beyond 32 bits"], lambda: gdr.init(pe=1 << 32, n_pes=1))
gdr.init(heap_size=16 << 20)
new = gdr.zeros(4)
for use in (lambda: gdr.put(old, new, me)), (lambda: gdr.put(new, old, me)), old.free:
    refused(ValueError, ["a job that finalize() ended"], use)
new.free()
gdr.finalize()
if me == 0:
    print(f"memory: all right on {n} PEs")
