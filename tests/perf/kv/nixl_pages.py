# SPDX-License-Identifier: BSD-3-Clause
"""What pages.c does, by NIXL: usage: nixl_pages.py BYTES MIB ROUNDS [cuda]. Two processes; decode's notification asks, prefill writes
the first page and then all others by requests that were prepared before, each with a notification. Prints as pages.c does."""
import ctypes
import importlib
import os
import signal
import socket
import sys
import time
from array import array

import numpy


def wheel():
    """Of nixl, which chooses one of these by torch's CUDA release, and has none without torch."""
    for name in "nixl_cu13", "nixl_cu12":
        try:
            return importlib.import_module(name + "._api")
        except ImportError:
            pass
    return importlib.import_module("nixl._api")


nixl_api = wheel()
if sys.argv[1:] == ["there"]:
    os._exit(0)
size, mib, rounds = map(int, sys.argv[1:4])
n, on_gpu = (mib << 20) // size, "cuda" in sys.argv[4:]


class Memory:
    """A cache, of the CPU or of the PE's GPU"""

    def __init__(self, gpu):
        self.gpu = gpu if on_gpu else 0
        if not on_gpu:
            self.host = numpy.zeros(n * size, numpy.uint8)
            self.at = self.host.ctypes.data
            return
        self.cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        for call, *how in ((self.cuda.cuInit, 0), (self.cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), gpu),
                           (self.cuda.cuCtxSetCurrent, context),
                           (self.cuda.cuMemAlloc_v2, ctypes.byref(at), ctypes.c_size_t(n * size))):
            assert call(*how) == 0, call
        self.at = at.value

    def fill(self, words):
        if on_gpu:
            assert self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(self.at), words.ctypes.data_as(ctypes.c_void_p), words.nbytes) == 0
        else:
            self.host[:] = words.view(numpy.uint8)

    def words(self):
        out = numpy.empty(n * size // 8, numpy.uint64)
        if on_gpu:
            assert self.cuda.cuMemcpyDtoH_v2(out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.at), out.nbytes) == 0
        else:
            out.view(numpy.uint8)[:] = self.host
        return out


draw = numpy.random.default_rng(1)
place = draw.permutation(n).astype(numpy.int32), draw.permutation(n).astype(numpy.int32)
content = draw.integers(0, 1 << 62, n * size // 8, numpy.uint64)
kind = "VRAM" if on_gpu else "DRAM"
ends = socket.socketpair()
me = 1 if os.fork() else 0  # decode prints
if me == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with decode
cpus = sorted(os.sched_getaffinity(0))
if len(cpus) > 1:  # a core each, as mpirun binds by itself
    os.sched_setaffinity(0, {cpus[me]})
channel = ends[me].makefile("rwb", buffering=0)


def exchange(mine):
    """bytes with the other process"""
    channel.write(len(mine).to_bytes(8, "little") + mine)
    out = b""
    left = int.from_bytes(channel.read(8), "little")
    while len(out) < left:
        out += channel.read(left - len(out))
    return out


names = "prefill", "decode"
agent = nixl_api.nixl_agent(names[me], nixl_api.nixl_agent_config(backends=["UCX"], enable_prog_thread="THREAD" in os.environ))
memory = Memory(me)
registered = agent.register_memory([(memory.at, n * size, memory.gpu, "")], kind)
there = array("q", exchange(array("q", [memory.at, memory.gpu]).tobytes()))
agent.add_remote_agent(exchange(agent.get_agent_metadata()))
limit = time.monotonic() + 100


def take(said):
    """waits for a notification"""
    while not agent.check_remote_xfer_done(names[1 - me], said, tag_is_prefix=False):
        assert time.monotonic() < limit, f"{names[me]} waits for {said}"


def prefill():
    memory.fill(content)
    own, theirs = ([(at + i * size, size, gpu) for i in range(n)] for at, gpu in ((memory.at, memory.gpu), there))
    sides = agent.prep_xfer_dlist("NIXL_INIT_AGENT", own, kind), agent.prep_xfer_dlist("decode", theirs, kind)
    requests = [agent.make_prepped_xfer("WRITE", sides[0], place[0][part], sides[1], place[1][part], said)
                for part, said in ((slice(0, 1), b"first"), (slice(1, n), b"others"))]
    exchange(b"ready")
    for i in range(rounds + 3):
        take(b"ask")
        for r in requests:  # the first one's notification goes while it is asked for
            assert agent.transfer(r) != "ERR"
            while (state := agent.check_xfer_state(r)) != "DONE":
                assert state == "PROC" and time.monotonic() < limit
    exchange(b"done")


def decode():
    exchange(b"ready")
    first, all_pages = [], []
    for i in range(rounds + 3):
        since = time.perf_counter()
        agent.send_notif("prefill", b"ask")
        take(b"first")
        first.append(time.perf_counter() - since)
        take(b"others")
        all_pages.append(time.perf_counter() - since)
    exchange(b"done")
    pages = memory.words().reshape(n, -1)
    assert (pages[place[1]] == content.reshape(n, -1)[place[0]]).all(), "WRONG"
    print(size, f"{sorted(first[3:])[rounds // 2] * 1e6:.2f}", f"{n * size / sorted(all_pages[3:])[rounds // 2] / 1e9:.3f}", n,
          flush=True)


decode() if me else prefill()
exchange(b"end")
status = os.waitpid(-1, 0)[1] if me else 0
os._exit(1 if status else 0)  # where no GPU is, its destructors crash
