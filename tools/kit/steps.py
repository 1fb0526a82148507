# SPDX-License-Identifier: BSD-3-Clause
"""What is run, each within a limit: {name: Result}. A program that this tree does not have is said to be missing, and so
is what the machine does not have. PEs are started here, by the variables that torchrun sets: no launcher is needed."""
import ctypes
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

SUITE = ("rma", "amo", "signal", "put_signal", "order", "barrier", "strided", "waits", "coll", "teams")
DOORBELLS = {  # step: options; the first one is what the others are compared with
    "posting, doorbells behind the record": {"GDR_DOORBELL_MODE": "record"},
    "posting, doorbells before the record, too": {"GDR_DOORBELL_MODE": "early"},
    "posting, doorbells without a record": {"GDR_DOORBELL_MODE": "norecord"},
    "posting, doorbells by a host thread": {"GDR_DOORBELL_MODE": "record", "GDR_DOORBELL": "cpu"},
}
FIGURES = ("latency", "put", "get", "signal", "rate", "barrier")  # of gdr_perf, its short form
LIBC = ctypes.CDLL(None)
UNPRIVILEGED = {"GDR_TRANSPORTS": "nic", "GDR_HEAP_SIZE": "16m", "GDR_BOOTSTRAP": "single", "GDR_QUEUE_MEM": "host"}


class Result:
    def __init__(self, state, text="", seconds=0.0):
        self.state, self.text, self.seconds = state, text, seconds  # passed, failed, unseen

    def row(self):
        return {"state": self.state, "text": self.text[-8000:], "seconds": round(self.seconds, 2)}


class Tree:
    """Programs of a built tree, or of an installed one."""

    def __init__(self, kit):
        self.root = kit.parent.parent
        self.prefix = self.root.parent if kit.parent.name == "gdr" else None  # PREFIX/share/gdr/kit
        build = pathlib.Path(os.environ.get("GDR_BUILD", self.root / "build"))
        if self.prefix:
            libs = sorted(self.prefix.glob("lib*/gdr/kit")) + sorted(self.prefix.glob("lib/*/gdr/kit"))
            self.folders = [self.prefix / "bin", *libs]
        else:
            self.folders = [build / "tools", build / "softhca", build / "tests/multi", build / "tests/perf"]

    def find(self, name):
        return next((str(f / name) for f in self.folders if (f / name).exists()), None)


def on_softhca(tree, device, nic):
    """Environment of this process without softhca, and the words that start a program on it. nic: gdr_info's text of the
    NIC: what of it is the site's (link layer, MTU) softhca is told."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTHCA_") and k != "LD_PRELOAD"}
    mtu = re.search(r"MTU (\d+)", nic)
    env.update({"SOFTHCA_LINK": "ib" if "InfiniBand" in nic else "eth", **({"SOFTHCA_MTU": mtu.group(1)} if mtu else {})})
    launcher = tree.find("softhca")
    return env, [launcher, f"--device={device}"] if launcher else None


def end_with(parent):
    """In a process that was just started: it ends with the kit, however that ends. Its session hears no Ctrl-C."""
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


class Runner:
    def __init__(self, tree, env=None, before=(), limit=60, end=None):
        self.tree, self.before, self.limit, self.end = tree, list(before), limit, end
        self.no_nic = False  # then PEs of one node still have mapped memory
        self.env = dict(os.environ if env is None else env)
        self.env.pop("GDR_BUILD", None)  # the kit's; gdr would say that it is none of its options

    def time_left(self):
        return self.limit if self.end is None else max(1.0, min(self.limit, self.end - time.monotonic()))

    def ended(self, state, text, start, limit, statuses):
        """What became of a run: one that all runs' limit cut off has shown nothing."""
        if 124 in statuses and limit < self.limit:
            state, text = "unseen", "the limit of time (--limit) came first\n" + text
        return Result(state, text, time.monotonic() - start)

    def _start(self, command, env):
        return subprocess.Popen(self.before + command, env={**self.env, **env}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                start_new_session=True, preexec_fn=lambda parent=os.getpid(): end_with(parent))

    @staticmethod
    def _end(job, limit):
        try:
            return job.communicate(timeout=limit)[0], job.returncode
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            return job.communicate()[0] + f"\n(ended after {limit:.0f} s)", 124

    def run(self, program, *args, accept=(0,), **env):
        path = self.tree.find(program) or (program if program.startswith("/") else None)
        if not path:
            return Result("unseen", f"this tree has no {program}")
        if self.no_nic:
            return Result("unseen", "no NIC can be used")
        start, limit = time.monotonic(), self.time_left()
        text, status = self._end(self._start([path, *args], {**UNPRIVILEGED, **env}), limit)
        if status == 77:
            return Result("unseen", text, time.monotonic() - start)
        if status not in accept:
            text += f"\n(status {status})"
        return self.ended("passed" if status in accept else "failed", text, start, limit, [status])

    def pes(self, n, program, *args, judge=None, **env):
        """n PEs; judge: from the list of their exit statuses to whether it is as it should be."""
        path = self.tree.find(program)
        if not path:
            return Result("unseen", f"this tree has no {program}")
        start, limit, jobs = time.monotonic(), self.time_left(), []
        with socket.socket() as store:
            store.bind(("127.0.0.1", 0))
            port = store.getsockname()[1]
        common = {**UNPRIVILEGED, "GDR_BOOTSTRAP": "env", "WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(port - 1), "GDR_ENV_SECRET": os.urandom(8).hex(), "LOCAL_WORLD_SIZE": str(n), **env}
        if self.no_nic:
            common["GDR_TRANSPORTS"] = "p2p"
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(n):
                own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "TMPDIR": folder}
                jobs.append(self._start([path, *args], {**common, **own}))
            end = start + limit
            ends = [self._end(job, max(0.1, end - time.monotonic())) for job in jobs]
        status = [e[1] for e in ends]
        text = "".join(e[0] for e in ends) + ("" if not any(status) else f"\n(statuses {status})")
        if 77 in status:
            return Result("unseen", text, time.monotonic() - start)
        good = judge(status) if judge else not any(status)
        return self.ended("passed" if good else "failed", text, start, limit, status)


def captured(run, folder, name="every"):
    """The operations with their commands and queues written to a file: (result, text)."""
    path, lib = os.path.join(folder, "capture.txt"), run.tree.find("libgdr_kit_capture.so")
    if not lib:
        return Result("unseen", "this tree has no libgdr_kit_capture.so"), ""
    # In front of what the launcher of softhca preloads, which is there only behind it.
    inner = Runner(run.tree, run.env, [*run.before, "/bin/sh", "-c",
                   'LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}"; export LD_PRELOAD; exec "$@"', lib], run.limit, run.end)
    inner.no_nic = run.no_nic
    result = inner.run("gdr_kit_ops", name, KIT_CAPTURE=path)
    text = open(path).read() if os.path.exists(path) else ""
    return result, text


def killed(status):
    return len(status) == 2 and status[0] == 0 and status[1] in (-9, 137)


def all_steps(run, fast):
    """(name, function) in order; each gives a Result."""
    yield "bring-up and link check", lambda: run.run("gdr_info", GDR_LOG="info")
    for name, how in DOORBELLS.items():
        how = {"GDR_DOORBELL": "auto", "GDR_LOG": "info", **how}
        yield name, lambda h=how: run.run("gdr_kit_ops", "rate", **h)
    yield "bad key", lambda: run.run("gdr_kit_ops", "bad-key")
    yield "killed PE", lambda: run.pes(2, "gdr_kit_ops", "killed", judge=killed, GDR_ACK_TIMEOUT="14", GDR_TIMEOUT="10s")
    for order in ("auto", "relaxed"):
        rounds = ["20"] if fast else []
        yield f"litmus, order {order}", lambda o=order: run.pes(2, "multi_litmus", *rounds, GDR_ORDER=o)
    if fast:
        return
    for name in SUITE:
        yield f"suite: {name}", lambda n=name: run.pes(2, f"multi_{n}")
    for name in FIGURES:
        yield f"gdr_perf {name}", lambda n=name: run.pes(2, "gdr_perf", "short", n, GDR_HEAP_SIZE="256m")
