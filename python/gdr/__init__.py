# SPDX-License-Identifier: BSD-3-Clause
"""gdr from Python: bring-up, symmetric arrays, transfers, signals, teams and collectives of host threads, at once or
on a stream. Kernels are made by gdr_kernel, or are those of others, to which arrays go by __cuda_array_interface__ or,
on the host device, as memory. With GDR_DEVICE=cuda arrays are memory of a GPU.

It belongs to the libgdr of the wheel; LIBGDR names another one. Functions raise gdr.Error, whose status is -GDR_E*, and
ValueError for what can be seen to be wrong before the library is asked. stream: None (at once), or a cudaStream_t, or a
stream of the host device, as a number; 0 is the default one."""
from ._array import TYPES as _TYPES
from ._array import Array, empty, from_dlpack, register, unregister, zeros
from ._host_ops import atomic, atomic_fetch, clear_lock, g, iget, iput, p, set_lock, test, test_lock, wait
from ._job import UNIQUEID_BYTES, finalize, get_uniqueid, init, my_pe, n_pes, on_gpu
from ._library import Error
from ._library import lib as _lib
from ._library import said as _said
from ._team import NODE, SHARED, WORLD, Team, node, shared, world
from ._transfer import (ADD, EQ, GE, GT, LE, LT, NE, SET, barrier_all, get, put, put_signal, quiet, signal,
                        signal_wait)

__all__ = ["ADD", "EQ", "GE", "GT", "LE", "LT", "NE", "NODE", "SET", "SHARED", "UNIQUEID_BYTES", "WORLD",
           "Array", "Error", "Team", "atomic", "atomic_fetch", "barrier_all", "clear_lock", "empty", "finalize", "from_dlpack",
           "g", "get", "get_uniqueid", "iget", "init", "iput", "my_pe", "n_pes", "node", "on_gpu", "p", "put", "put_signal",
           "quiet", "register", "set_lock", "shared", "signal", "signal_wait", "test", "test_lock", "unregister", "wait",
           "world", "zeros"]
