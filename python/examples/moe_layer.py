# SPDX-License-Identifier: BSD-3-Clause
"""A mixture of experts that are spread over PEs, forward and backward:

    GDR_BOOTSTRAP=env torchrun --nproc-per-node 2 moe_layer.py

Each PE has tokens of its own and some of the experts. A token goes to the k experts that the router (the same on all PEs)
likes best: one alltoall takes the rows to their experts (dispatch), another one brings back what they made of them, to be
summed with the router's weights (combine). With GDR_DEVICE=cuda on GPUs. Each PE compares its results, and the gradients of
its tokens, its experts and the router, with those of one computation that has all tokens and experts."""
import os

import torch
from torch import Tensor

import gdr
import gdr.torch

tokens, experts, k, d, hidden = 24, 3, 2, 16, 32  # of each PE: tokens, experts


def route(x: Tensor, router: Tensor) -> tuple[Tensor, Tensor]:
    """[token, choice]: weights and experts"""
    weight, expert = (x @ router).softmax(-1).topk(k)
    return weight / weight.sum(-1, keepdim=True), expert


def mlp(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """rows of zeros stay such"""
    return (x @ up).relu() @ down


def layer(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
    n = gdr.n_pes()
    weight, expert = route(x, router)
    chosen = expert.reshape(-1)
    ones = torch.nn.functional.one_hot(chosen, n * experts)
    place = (ones.cumsum(0) - 1).gather(1, chosen[:, None])[:, 0]  # among my rows for this expert
    room = int(gdr.torch.allreduce(ones.sum(0).max().reshape(1), "max"))  # no PE has more rows for one expert
    row = chosen * room + place

    sent = x.new_zeros(n * experts * room, d).index_copy(0, row, x.repeat_interleave(k, 0))
    came = gdr.torch.alltoall(sent).view(n, experts, room, d)  # of each PE, for each of my experts
    made = mlp(came.transpose(0, 1).reshape(experts, n * room, d), up, down)
    back = gdr.torch.alltoall(made.view(experts, n, room, d).transpose(0, 1).reshape(-1, d))
    return (back[row].view(-1, k, d) * weight[..., None]).sum(1)


def serial(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weight, expert = route(x, router)
    every = mlp(x, up, down)  # [expert, token, d]: each expert of every token
    return (every[expert, torch.arange(len(x))[:, None]] * weight[..., None]).sum(1)


def main() -> None:
    gpu = os.environ.get("GDR_DEVICE") == "cuda"
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    gdr.torch.init()
    me, n = gdr.my_pe(), gdr.n_pes()

    torch.manual_seed(1)  # everybody knows all of it, for the comparison
    shapes = (n * tokens, d), (d, n * experts), (n * experts, d, hidden), (n * experts, hidden, d)
    whole = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]
    mine = [slice(me * tokens, (me + 1) * tokens), slice(None)] + 2 * [slice(me * experts, (me + 1) * experts)]
    own = [w.detach()[part].to("cuda" if gpu else "cpu").requires_grad_() for w, part in zip(whole, mine)]

    y = layer(*own)
    y.square().sum().backward()
    want = serial(*whole)
    want.square().sum().backward()
    own[1].grad = gdr.torch.allreduce(own[1].grad)  # everybody's tokens have a part in the router's

    pairs = [(y, want[mine[0]])] + [(o.grad, w.grad[part]) for o, w, part in zip(own, whole, mine)]
    error = max(((a.cpu() - b).abs().max() / b.abs().max()).item() for a, b in pairs)
    if not error < 1e-9:
        raise SystemExit(f"PE {me}: differs by {error} from the computation that has all of it")
    gdr.torch.finalize()
    if me == 0:
        print(f"moe_layer: right on {n} PEs")


if __name__ == "__main__":
    main()
