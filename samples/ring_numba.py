# SPDX-License-Identifier: BSD-3-Clause
"""ring_put.c as a kernel of Numba: each PE puts its number into the memory of the next one.
GDR_DEVICE=cuda mpirun -n 2 python3 samples/ring_numba.py, with python/ and the python/ of the build in PYTHONPATH."""
import sys

if sys.argv[1:] in (["-h"], ["--help"]):  # before anything is imported that may not be there
    sys.exit(print(__doc__))

from numba import cuda

import gdr
import gdr_numba


@cuda.jit
def ring_put(to, arrived, status):
    me, n = gdr_numba.my_pe(), gdr_numba.n_pes()
    gdr_numba.int32_p(to, me, (me + 1) % n)
    gdr_numba.fence()  # the signal says that the number is there
    gdr_numba.signal_set(arrived, 1, (me + 1) % n)
    status[0] = gdr_numba.signal_wait_until_from(arrived, gdr.EQ, 1, (me + n - 1) % n)
    status[1] = gdr_numba.quiet()  # what became of the puts


gdr.init(heap_size=16 << 20)
me, n = gdr.my_pe(), gdr.n_pes()
to, arrived, status = map(cuda.as_cuda_array, (gdr.zeros(1, "int32"), gdr.zeros(1, "uint64"), gdr.zeros(2, "int32")))
ring_put[1, 1](to, arrived, status)
assert status.copy_to_host().tolist() == [0, 0]
print(f"PE {me} of {n} has the number of PE {to.copy_to_host()[0]}")
assert to.copy_to_host()[0] == (me + n - 1) % n
gdr.barrier_all()
gdr.finalize()
