# SPDX-License-Identifier: BSD-3-Clause
"""A product of matrices whose rows and columns are spread over PEs, with an all-gather that goes on beneath it:

    GDR_BOOTSTRAP=env torchrun --nproc-per-node 2 tensor_parallel.py

x [rows, k] is spread by rows, w [k, columns] by columns. Each PE puts its rows into everybody's copy of x, with a signal, and
multiplies what is there by its own columns: its own rows first, then each peer's when the signal has come. With
GDR_DEVICE=cuda on GPUs. PE 0 compares all of it with the product of the whole matrices."""
import os

import torch

import gdr
import gdr.torch

rows, k, columns = 64, 128, 96  # of each PE: rows of x, columns of w


def main() -> None:
    gpu = os.environ.get("GDR_DEVICE") == "cuda"
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    gdr.torch.init()
    me, n = gdr.my_pe(), gdr.n_pes()
    device = "cuda" if gpu else "cpu"

    torch.manual_seed(1)  # everybody knows all of it, for the comparison
    whole_x, whole_w = (torch.randn(s, dtype=torch.float64) for s in ((n * rows, k), (k, n * columns)))
    own_x = whole_x[me * rows:(me + 1) * rows].to(device)
    own_w = whole_w[:, me * columns:(me + 1) * columns].to(device)

    x = gdr.torch.empty(n, rows, k, dtype=torch.float64)
    arrived = gdr.torch.zeros(n, dtype=torch.int64)
    for step in range(1, n):
        gdr.torch.put_signal(x[me], own_x, arrived[me:me + 1], 1, gdr.ADD, (me + step) % n)
    y = torch.empty(n, rows, columns, dtype=torch.float64, device=device)
    torch.matmul(own_x, own_w, out=y[me])
    for step in range(1, n):
        pe = (me - step) % n
        gdr.torch.signal_wait(arrived[pe:pe + 1], gdr.GE, 1, x)
        torch.matmul(x[pe], own_w, out=y[pe])

    all_y = gdr.torch.allgather(y.view(1, n * rows, columns))  # [PE, row, column of the PE]
    error = (all_y.permute(1, 0, 2).reshape(n * rows, n * columns).cpu() - whole_x @ whole_w).abs().max().item()
    if not error < 1e-9:
        raise SystemExit(f"PE {me}: differs by {error} from the product of the whole matrices")
    gdr.torch.finalize()
    if me == 0:
        print(f"tensor_parallel: right on {n} PEs")


if __name__ == "__main__":
    main()
