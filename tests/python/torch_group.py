# SPDX-License-Identifier: BSD-3-Clause
"""gdr.torch.process_group: each collective beside gloo's, DDP, subgroups, who begins and ends the job, what is refused. As
PEs of a launcher; FOLDER is empty and the same on all."""
import importlib
import os
import re
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import gdr
import gdr.torch as gt

R = dist.ReduceOp
me, n = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
begun = 0


def refused(kind, texts, call, *args, **kw):
    try:
        call(*args, **kw)
    except kind as e:
        assert all(t in str(e) for t in texts), e
        return
    raise AssertionError(f"{call} takes {args}")


def registered():
    """as an installed wheel says it: torch finds the backend by its name"""
    if not hasattr(dist.Backend, "_ensure_backend_registered"):  # before torch 2.15
        importlib.import_module("gdr.torch.process_group")
        return
    with open(os.path.join(os.path.dirname(gdr.__file__), "..", "pyproject.toml")) as f:
        entry = re.search(r'entry-points\.("torch.distributed.backends"\]\n)(gdr = .*\n)', f.read())
    wheel = os.path.join(sys.argv[1], f"of.{me}")
    os.makedirs(os.path.join(wheel, "gdr-0.dist-info"))
    with open(os.path.join(wheel, "gdr-0.dist-info", "entry_points.txt"), "w") as f:
        f.write("[" + entry[1].replace('"', "") + entry[2].replace('"', ""))
    sys.path.insert(0, wheel)
    assert not hasattr(dist.Backend, "GDR")


def begin(**how):
    global begun
    begun += 1
    store = dist.FileStore(os.path.join(sys.argv[1], f"store.{begun}"), n)
    dist.init_process_group("gdr", store=store, rank=me, world_size=n, **how)
    return dist.new_group(backend="gloo")


def same(call, gloo, *tensors, group=None):
    """call changes the tensors by either backend; integers to the last bit"""
    by = {}
    for g in group, gloo:
        by[g] = [t.clone() for t in tensors]
        call(g, *by[g])
    for ours, theirs in zip(by[group], by[gloo]):
        near = {torch.bfloat16: 0.1, torch.float32: 1e-4}.get(ours.dtype, 0)  # the order of sums differs
        torch.testing.assert_close(ours, theirs, rtol=near / 10, atol=near)


def some(m, dtype, of=me):
    g = torch.Generator().manual_seed(97 * of + m)
    if dtype.is_floating_point:
        return torch.randn(m, generator=g).to(dtype)
    return torch.randint(-100, 100, (m,), generator=g).to(dtype)


def reductions(gloo, m):
    for dtype in torch.int32, torch.uint8, torch.float32, torch.bfloat16:
        ops = [R.SUM, R.PRODUCT, R.MIN, R.MAX] + ([] if dtype.is_floating_point else [R.BAND, R.BOR, R.BXOR])
        x, whole = some(m, dtype), some(m * n, dtype)
        for op in ops if dtype != torch.bfloat16 else [R.SUM, R.MAX]:
            same(lambda g, t: dist.all_reduce(t, op, group=g), gloo, x)
        same(lambda g, t: dist.reduce(t, n - 1, group=g) if me == n - 1 else dist.reduce(t.clone(), n - 1, group=g), gloo, x)
        same(lambda g, t, w: dist.reduce_scatter(t, list(w.chunk(n)), group=g), gloo, x, whole)
        same(lambda g, t, w: dist.reduce_scatter_tensor(t, w, R.MAX, group=g), gloo, x, whole)
    x = some(m, torch.float64)
    dist.all_reduce(x, R.AVG)
    torch.testing.assert_close(x, sum(some(m, torch.float64, p) for p in range(n)) / n)


def moves(gloo, m):
    for dtype in torch.int64, torch.float32, torch.bfloat16, torch.bool:
        x, whole = some(m, torch.float32).to(dtype), some(m * n, torch.float32).to(dtype)
        parts = [x.clone() for _ in range(n)]
        same(lambda g, t: dist.broadcast(t, n - 1, group=g), gloo, x)
        same(lambda g, t, *p: dist.all_gather(list(p), t, group=g), gloo, x, *parts)
        same(lambda g, t, w: dist.all_gather_into_tensor(w, t, group=g), gloo, x, whole)
        same(lambda g, t, w: dist.all_to_all_single(w, t, group=g), gloo, whole, whole)
        same(lambda g, t, *p: dist.gather(t, list(p) if me == 0 else None, group=g), gloo, x, *parts)
        same(lambda g, t, w: dist.scatter(t, list(w.chunk(n)) if me == n - 1 else None, n - 1, group=g), gloo, x, whole)
        sizes = [(me + 1) * (i + 2) for i in range(n)]  # those to i
        back = [(i + 1) * (me + 2) for i in range(n)]
        w = torch.ones(sum(back), 3, dtype=dtype)
        same(lambda g, t, w: dist.all_to_all_single(w, t, back, sizes, group=g), gloo, some(3 * sum(sizes), torch.float32)
             .to(dtype).view(-1, 3), w)
        dist.all_to_all(list(w.split(back)), [torch.full((k, 3), me + 1).to(dtype) for k in sizes])
        assert torch.equal(w, torch.cat([torch.full((k, 3), i + 1) for i, k in enumerate(back)]).to(dtype))
    across = torch.arange(6.0).view(2, 3).t()  # with gaps
    dist.all_reduce(across)
    assert torch.equal(across, n * torch.arange(6.0).view(2, 3).t())
    work = dist.all_reduce(x := torch.ones(m), async_op=True)
    assert work.wait() and (x == n).all() and torch.equal(work.get_future().wait()[0], x)
    y = functional.wait_tensor(functional.all_reduce(torch.ones(4), "sum", dist.group.WORLD))
    assert (y == n).all()
    gather = getattr(functional, "all_gather_single", functional.all_gather_tensor)  # the name of torch 2.15, else before
    y = functional.wait_tensor(gather(torch.full((2,), float(me)), 0, dist.group.WORLD))
    assert torch.equal(y, torch.arange(float(n)).repeat_interleave(2))
    words = [None] * n
    dist.all_gather_object(words, f"of {me}")
    assert words == [f"of {i}" for i in range(n)]
    dist.barrier()


def messages(m):
    to, before = (me + 1) % n, (me - 1) % n
    y = torch.zeros(m)
    for x in torch.full((m,), 1.0 + me), torch.arange(float(m)):  # all send first, more than a box has room for
        works = [dist.isend(x, to), dist.irecv(y, before)]
        for w in works:
            w.wait()
    assert torch.equal(y, torch.arange(float(m)))
    ops = [dist.P2POp(dist.irecv, y, before), dist.P2POp(dist.isend, torch.full((m,), 5.0 + me), to)]
    for w in dist.batch_isend_irecv(ops):
        w.wait()
    assert (y == 5 + before).all()
    if n > 1 and me < 2:
        dist.send(torch.tensor([7]), 1) if me == 0 else dist.recv(word := torch.tensor([0]), 0)
        assert me == 0 or word == 7
    # by tags, against the order in which they were sent; 1 is longer than a box
    sent = [dist.isend(torch.full((m * k,), 10.0 * k + me), to, tag=k) for k in (1, 2, 2, 3)]
    out = [torch.zeros(m * k) for k in (3, 2, 1, 2)]
    for t, k in zip(out, (3, 2, 1, 2)):
        dist.irecv(t, before, tag=k).wait()
    assert all((t == 10.0 * k + before).all() for t, k in zip(out, (3, 2, 1, 2)))
    for w in sent:
        w.wait()
    # from any: who sent it the work says
    sent = [dist.isend(torch.full((m,), 100.0 + me), pe, tag=7) for pe in range(n)]
    seen = set()
    for _ in range(n):
        work = dist.irecv(y, tag=7)
        work.wait()
        assert (y == 100 + work._source_rank()).all()
        seen.add(work._source_rank())
    assert seen == set(range(n))
    if n > 1 and me < 2:
        assert me or dist.send(torch.full((3,), 4), 1, tag=9) is None
        assert not me or dist.recv(three := torch.zeros(3, dtype=torch.int64), tag=9) == 0 and (three == 4).all()
    for w in sent:
        w.wait()
    sent = dist.isend(torch.zeros(4), to)
    refused(ValueError, [f"recv from PE {before}", "16 bytes", "20 are"], lambda: dist.irecv(torch.zeros(5), before).wait())
    sent.wait()
    dist.barrier()


def bounded(gloo):
    """What no recv asks for is kept up to kept_bytes, and then waits at its sender; a recv behind it says so."""
    to, before, box = (me + 1) % n, (me - 1) % n, gdr.torch.process_group._box
    assert box.room == gdr.torch.process_group.kept_bytes
    box.room = 100000
    sent = [dist.isend(torch.full((10000,), float(k)), to, tag=1) for k in range(6)] + [dist.isend(torch.full((4,), 9.0), to, tag=2)]
    x, nine = torch.zeros(10000), torch.zeros(4)
    refused(gdr.Error, [f"recv from PE {before} with tag 2 within 1 s; 2 messages of PE {before} are kept, 80032 bytes",
                        "first with tag 1, and the next, with tag 1", "kept_bytes, now 100000"],
            lambda: dist.irecv(nine, before, tag=2).wait(timedelta(seconds=1)))
    dist.barrier(group=gloo)  # all are here
    assert sum(raw.numel() for _, raw in box.kept) <= box.room and not sent[-1].is_completed()
    dist.barrier(group=gloo)
    for k in range(6):
        dist.recv(x, before, tag=1)
        assert (x == k).all()
    dist.recv(nine, before, tag=2)
    for w in sent:
        w.wait()
    assert (nine == 9).all() and not box.kept
    box.room = gdr.torch.process_group.kept_bytes
    dist.barrier(group=gloo)


def subgroups(gloo):
    for ranks in [list(range(0, n, 2)), list(range(n))[::-1]]:
        g = dist.new_group(ranks)
        theirs = dist.new_group(ranks, backend="gloo")
        if me in ranks:
            same(lambda g, t: dist.all_reduce(t, group=g), theirs, some(33, torch.int64), group=g)
            same(lambda g, t: dist.broadcast(t, ranks[-1], group=g), theirs, some(33, torch.int64), group=g)
            same(lambda g, t, w: dist.all_gather_into_tensor(w, t, group=g), theirs, some(3, torch.int64),
                 some(3 * len(ranks), torch.int64), group=g)
            out = [torch.zeros(2) for _ in ranks]
            dist.gather(torch.full((2,), float(me)), out if me == ranks[-1] else None, ranks[-1], group=g)
            assert me != ranks[-1] or [int(t[0]) for t in out] == sorted(ranks, key=ranks.index) or \
                [int(t[0]) for t in out] == sorted(ranks)
            dist.destroy_process_group(g)


def ddp(gloo):
    """two steps, with buckets of 1 KiB, so that several are on their way"""
    after = {}
    for g in None, gloo:
        torch.manual_seed(me)  # DDP takes the parameters of rank 0
        net = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.BatchNorm1d(50), torch.nn.ReLU(), torch.nn.Linear(50, 4))
        model = torch.nn.parallel.DistributedDataParallel(net, process_group=g, bucket_cap_mb=1 / 1024)
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(2):
            step.zero_grad()
            model(some(60, torch.float32).view(3, 20) + i).square().sum().backward()
            step.step()
        after[g] = [p.detach() for p in net.parameters()]
    torch.testing.assert_close(after[None], after[gloo], rtol=1e-4, atol=1e-4)
    everybody = [torch.zeros_like(after[None][0]) for _ in range(n)]
    dist.all_gather(everybody, after[None][0])
    assert all(torch.equal(t, everybody[0]) for t in everybody)


def not_there(gloo):
    x = torch.ones(4)
    refused(NotImplementedError, ["AVG", "int32"], dist.all_reduce, x.int(), R.AVG)
    refused(NotImplementedError, ["PREMUL"], dist.all_reduce, x, dist._make_nccl_premul_sum(2.0))
    refused(NotImplementedError, ["all_gather", "differ", "(5,)"], dist.all_gather, [torch.ones(5)] * n, x)
    refused(NotImplementedError, ["allgather_coalesced"], dist.group.WORLD.allgather_coalesced, [[x]], [x])
    refused(ValueError, ["torch.bool"], dist.all_reduce, x.bool())
    refused(ValueError, ["all_gather_single", "(3,)"], dist.group.WORLD.all_gather_single, torch.ones(3), torch.ones(4))
    refused(NotImplementedError, ["pg_options"], dist.new_group, list(range(n)), pg_options=object())
    late = dist.irecv(x, (me + 1) % n)
    refused(RuntimeError, [f"recv from PE {(me + 1) % n}"], dist.group.WORLD.shutdown)
    dist.barrier(group=gloo)
    dist.isend(torch.zeros(4), (me - 1) % n)
    late.wait()


def limits(gloo):
    """timeout= of the call, of the group, of set_timeout; messages by a group's tags are its own"""
    g = dist.new_group(list(range(n)), timeout=timedelta(seconds=1))
    started, none = time.monotonic(), torch.ones(4)
    refused(gdr.Error, ["recv from PE 0 with tag 6 within 0.5 s", "time limit"],
            lambda: dist.irecv(none, 0, tag=6).wait(timedelta(seconds=0.5)))
    sent = dist.isend(torch.zeros(4), (me + 1) % n, tag=5)
    refused(gdr.Error, ["recv from any PE with tag 5 within 1 s"], dist.recv, none, group=g, tag=5)
    dist.recv(none, tag=5) if n > 1 else dist.irecv(none, tag=5).wait()
    sent.wait()
    assert (none == 0).all() and time.monotonic() - started < 15
    g = dist.new_group(list(range(n)))
    getattr(dist, "set_timeout", dist.distributed_c10d._set_pg_timeout)(timedelta(seconds=0.25), g)
    refused(gdr.Error, ["recv from PE 0 within 0.25 s"], lambda: dist.irecv(none, 0, group=g).wait())
    dist.barrier(group=gloo)


def ends(gloo):
    """The job of the group is gone with it; that of the program is not, nor its workspace."""
    dist.destroy_process_group()
    refused(gdr.Error, ["not initialised"], gdr.my_pe)
    gt.init(workspace=8192, heap_size=32 << 20)
    gloo = begin()
    reductions(gloo, 3000)  # several rounds
    moves(gloo, 3000)
    messages(3000)
    dist.destroy_process_group()
    assert (gt.allreduce(torch.ones(3)) == n).all()
    gt.finalize()
    gdr.init(heap_size=64 << 20)
    begin()
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()
    refused(RuntimeError, ["gdr.torch.init()"], gt.barrier)
    gdr.barrier_all()
    gdr.finalize()


def too_late():
    """Rank 0 waits for those that do not come."""
    os.environ["GDR_TIMEOUT"] = "5s"
    gloo = begin(timeout=timedelta(seconds=1))
    if me == 0:
        refused(gdr.Error, ["recv from PE 1 within 1 s", "time limit"], dist.recv, torch.ones(4), 1)
        refused(gdr.Error, ["reduce", "PE 1", "expired after 1."], dist.all_reduce, torch.ones(4))
    dist.barrier(group=gloo)
    if me == 0:  # what its job failed of
        refused(gdr.Error, ["finalize", "time limit"], dist.destroy_process_group)
    else:
        try:
            dist.destroy_process_group()
        except gdr.Error:  # where it hears of rank 0's failure
            pass
    refused(gdr.Error, ["not initialised"], gdr.my_pe)


registered()
gloo = begin()
for m in 1, 600:
    reductions(gloo, m)
    moves(gloo, m)
    messages(m)
bounded(gloo)
subgroups(gloo)
ddp(gloo)
not_there(gloo)
limits(gloo)
ends(gloo)
if n > 1:
    too_late()
if me == 0:
    print(f"torch_group: all right on {n} PEs")
