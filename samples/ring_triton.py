# SPDX-License-Identifier: BSD-3-Clause
"""A ring as a kernel of Triton: each PE's program makes 1024 numbers and puts them, with a signal, into the memory of the
next one. GDR_DEVICE=cuda mpirun -n 2 python3 samples/ring_triton.py, with python/ and the python/ of the build in PYTHONPATH."""
import sys

if sys.argv[1:] in (["-h"], ["--help"]):  # before anything is imported that may not be there
    sys.exit(print(__doc__))

import torch
import triton
import triton.language as tl

import gdr
import gdr_triton

N = 1024


@triton.jit
def ring_put(mine, to, arrived, status, size: tl.constexpr):
    me = gdr_triton.my_pe()
    n = gdr_triton.n_pes()
    i = tl.arange(0, size)
    tl.store(mine + i, me * 10000.0 + i)
    gdr_triton.float_put_signal_block(to, mine, size, arrived, 1, gdr_triton.SET, (me + 1) % n)
    tl.store(status, gdr_triton.signal_wait_until_from(arrived, gdr_triton.EQ, 1, (me + n - 1) % n))
    tl.store(status + 1, gdr_triton.quiet())  # what became of the put


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
mine, to, arrived, status = (torch.as_tensor(gdr.zeros(k, t), device="cuda") for k, t in (
    (N, "float32"), (N, "float32"), (1, "int64"), (2, "int32")))
ring_put[(1,)](mine, to, arrived, status, N)
assert status.tolist() == [0, 0]
print(f"PE {me} of {n} has the numbers of PE {int(to[0]) // 10000}")
assert to.tolist() == [(me + n - 1) % n * 10000.0 + i for i in range(N)]
gdr.barrier_all()
gdr.finalize()
