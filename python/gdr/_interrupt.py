# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C while the main thread waits in the library.

Python runs its handler of SIGINT when the C call has returned, and a wait for other PEs returns after GDR_TIMEOUT. So a thread
reads the file to which Python's C handler writes each signal. A call that still waits half a second later is given up with all
other waits of this PE, by gdr_abort_waits(): it returns, KeyboardInterrupt rises from it, and the PEs that take part in it hear
of that. The job is over then, for one PE alone cannot take back what all have begun, and finalize() ends it without waiting.
What that does not end within LAST seconds, and init(), which waits in calls of the launcher, ends the process, as SIGINT does a
C program.

Nothing of this happens where the program has a handler of its own, or ignores the signal: it knows better."""
from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, Callable

GRACE, LAST = 0.5, 5  # seconds: a call that ends by itself within the first, given up within the second
_inside: object | None = None  # the main thread's call, while it is in one
_pipe: tuple[int, int] | None = None  # the signals, as bytes


def watched(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, a function of C that may wait."""
    def call(*args: Any) -> Any:
        global _inside
        if threading.current_thread() is not threading.main_thread():
            return f(*args)
        _inside = object()
        try:
            return f(*args)
        finally:
            _inside = None
    return call


def _end_process() -> None:
    traceback.print_stack(sys._current_frames()[threading.main_thread().ident or 0])
    print("KeyboardInterrupt: the call cannot be given up, so the process ends", file=sys.stderr)
    sys.stdout.flush()
    ctypes.CDLL(None).signal(signal.SIGINT, None)  # SIG_DFL; Python's own function is the main thread's
    os.kill(os.getpid(), signal.SIGINT)


def _watch(signals: int, give_up: Callable[[], bool]) -> None:
    while came := os.read(signals, 64):
        call = _inside
        if call is None or signal.SIGINT not in came or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            continue
        time.sleep(GRACE)
        if _inside is call and give_up():
            time.sleep(LAST)
        if _inside is call:
            _end_process()


def watch(give_up: Callable[[], bool]) -> None:
    """From init() on. give_up: ends all waits, and says whether there was a job. It is left out beside the main thread, and where
    another one, as an event loop, reads the signals already."""
    global _pipe
    if threading.current_thread() is not threading.main_thread():
        return
    if _pipe is None:
        _pipe = os.pipe()
        os.set_blocking(_pipe[1], False)
        threading.Thread(target=_watch, args=(_pipe[0], give_up), name="gdr interrupt", daemon=True).start()
    before = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if before not in (-1, _pipe[1]):
        signal.set_wakeup_fd(before)


def _forked() -> None:
    """A child has no such thread, and its signals are not the PE's."""
    global _pipe
    if _pipe is not None:
        before = signal.set_wakeup_fd(-1)
        if before not in (-1, _pipe[1]):
            signal.set_wakeup_fd(before)
    _pipe = None


os.register_at_fork(after_in_child=_forked)
