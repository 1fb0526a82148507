# SPDX-License-Identifier: BSD-3-Clause
"""usage: interrupt.py [CALL PE]
SIGINT while a call of PE 0 waits for PE 1, which does not come. By itself it starts both, call by call."""
import os
import signal
import subprocess
import sys
import threading
import time

os.environ["GDR_TIMEOUT"] = os.environ["GDR_INIT_TIMEOUT"] = "1h"  # nothing ends by them
import gdr  # noqa: E402
import gdr_kernel  # noqa: E402

SOON = 0.3  # the signal comes while the call waits; one that comes before it would be heard in any case


def job(uniqueid, pe):
    gdr.init(heap_size=16 << 20, uniqueid=uniqueid, pe=pe, n_pes=2)
    return gdr.zeros(4, "int32"), gdr.zeros(1, "int64")


CALLS = {
    "zeros": lambda a, word: gdr.zeros(4),
    "free": lambda a, word: a.free(),
    "barrier": lambda a, word: gdr.barrier_all(),
    "reduce": lambda a, word: gdr.world.reduce(a, a),
    "split": lambda a, word: gdr.world.split(0, 1, 2),
    "wait": lambda a, word: gdr.wait(word, gdr.EQ, 1),
    "signal_wait": lambda a, word: gdr.signal_wait(word, gdr.EQ, 1),
    "sync": lambda a, word: [gdr.signal_wait(word, gdr.EQ, 1, stream=0), gdr_kernel.sync()],
    "lock": lambda a, word: [gdr.set_lock(word), gdr.set_lock(word)],
    "finalize": lambda a, word: gdr.finalize(),
}
ENDED = "init", "finalize"  # in PE 0's thread the PEs meet: it waits for them where no wait of gdr's is


def told():
    print("sent", flush=True)  # and PE 1 comes


def interrupt(then=lambda: None):
    time.sleep(SOON)
    os.kill(os.getpid(), signal.SIGINT)
    then()


def raised(call, a, word):
    threading.Thread(target=interrupt).start()
    try:
        CALLS[call](a, word)
    except KeyboardInterrupt:
        told()
    else:
        raise AssertionError(f"{call}: no KeyboardInterrupt")
    try:
        gdr.finalize()
        raise AssertionError("the job goes on")
    except gdr.Error as e:
        assert "aborted" in str(e), e


def handler(a, word):
    """the program's own one runs behind the call, and the call is not given up"""
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(1))
    threading.Thread(target=interrupt, args=(lambda: [time.sleep(1.5), told()],)).start()
    gdr.barrier_all()
    assert came == [1], came
    gdr.finalize()


def child(a, word):
    """a process that a PE forks is none: its signal does not end the PE's call"""
    if not os.fork():
        try:
            interrupt(lambda: time.sleep(60))
        except KeyboardInterrupt:
            time.sleep(1.5)
            told()
            os._exit(0)
    gdr.barrier_all()
    gdr.finalize()
    assert os.wait()[1] == 0


def pe_0(call):
    uniqueid = gdr.get_uniqueid()
    print(uniqueid.hex(), flush=True)
    if call == "init":
        threading.Thread(target=interrupt).start()
    own = job(uniqueid, 0)
    {"handler": handler, "child": child}.get(call, lambda a, word: raised(call, a, word))(*own)


def pe_1(call):
    uniqueid = bytes.fromhex(sys.stdin.readline())
    if call == "init":
        return
    job(uniqueid, 1)
    sys.stdin.read()
    try:
        gdr.barrier_all()
        gdr.finalize()
        assert call in ("handler", "child")
    except gdr.Error as e:
        assert "PE 0" in str(e) and call not in ("handler", "child"), e


def pair(call):
    here = [sys.executable, __file__, call]
    pipe = subprocess.PIPE
    with subprocess.Popen([*here, "0"], stdout=pipe, stderr=pipe, text=True) as p, \
            subprocess.Popen([*here, "1"], stdin=pipe, text=True) as q:
        q.stdin.write(p.stdout.readline())
        q.stdin.flush()
        p.stdout.readline()
        q.communicate()
        said = p.communicate()[1]
    assert (p.returncode, q.returncode) == (-signal.SIGINT if call in ENDED else 0, 0), (call, p.returncode, said)
    assert call not in ENDED or (f"gdr.{call}" in said and "KeyboardInterrupt" in said), said



if sys.argv[1:]:
    {"0": pe_0, "1": pe_1}[sys.argv[2]](sys.argv[1])
else:
    for call in "init", *CALLS, "handler", "child":
        pair(call)
        print(call, flush=True)
    print("interrupt: all right")
