# SPDX-License-Identifier: BSD-3-Clause
"""libgdr, opened: the one that LIBGDR names, else the one that the wheel has, else what the loader finds."""
from __future__ import annotations

import ctypes
import os
import re

from . import _interrupt

# What libgdr is linked with, and Debian's package of it.
_PACKAGES = {"libpmix.so": "libpmix2", "libibverbs.so": "libibverbs1", "libmlx5.so": "ibverbs-providers",
             "libgdr.so": "libgdr0"}


def _path() -> str:
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libgdr.so.0")
    return os.environ.get("LIBGDR") or (own if os.path.exists(own) else "libgdr.so")


def _open(path: str) -> ctypes.CDLL:
    """An ImportError says which package of Debian brings the library that is missing."""
    try:
        return ctypes.CDLL(path)
    except OSError as e:
        missing = re.match(r"(lib\w+\.so)[.\d]*: cannot open shared object file", str(e))
        if not missing or missing[1] not in _PACKAGES:
            raise ImportError(f"gdr: {path}: {e}") from e
        raise ImportError(f"gdr: {path} needs {missing[0].split(':')[0]}, which is not there: install Debian's package "
                          f"{_PACKAGES[missing[1]]}, or name the library's folder in LD_LIBRARY_PATH") from e


lib = _open(_path())


class Record(ctypes.Structure):
    """struct gdr_error"""
    _fields_ = [("status", ctypes.c_int), ("peer", ctypes.c_int), ("waited_for", ctypes.c_int), ("op", ctypes.c_char_p),
                ("qpn", ctypes.c_uint32), ("wqe_index", ctypes.c_uint32), ("opcode", ctypes.c_uint),
                ("syndrome", ctypes.c_uint), ("vendor_syndrome", ctypes.c_uint), ("is_cause", ctypes.c_int),
                ("addr", ctypes.c_uint64), ("len", ctypes.c_uint64), ("time_ns", ctypes.c_uint64),
                ("waited_ns", ctypes.c_uint64), ("text", ctypes.c_char * 320)]


_told_ns = 0


def records(status: int | None = None) -> list[Record]:
    """Of the job, of a status or all, by time."""
    n = lib.gdr_errors(None, 0) if lib.gdr_host_my_pe() >= 0 else 0  # else there is no job that has records
    if n <= 0:
        return []
    every = (Record * n)()
    of = [r for r in every[:lib.gdr_errors(every, n)] if status in (None, r.status)]
    return sorted(of, key=lambda r: r.time_ns)


def _why(status: int) -> str:
    """What the newest record of this status says, once, for an error that leaves none has not the words of an earlier one; else
    what the library logged."""
    global _told_ns
    logged = ctypes.create_string_buffer(512)
    lib.gdri_error_text(logged, len(logged))
    new = [r for r in records(status) if r.time_ns > _told_ns]
    if new:
        _told_ns = new[-1].time_ns
    return text(new[-1]) if new else logged.value.decode(errors="replace")


def text(record: Record) -> str:
    said: bytes = record.text
    return said.decode(errors="replace")


class Error(RuntimeError):
    """A call of the library that failed. The text names the call and why, as the library's log does, and the peer where one is
    to blame."""

    def __init__(self, call: str, status: int, before: str = ""):
        """before: why, where the library does not say it at this call"""
        why = _why(status) or before
        super().__init__(f"{call}: {lib.gdr_strerror(status).decode()}" + (f" ({why})" if why else ""))
        self.status = status
        """-GDR_E*, of gdr/status.h"""


class Attr(ctypes.Structure):
    """struct gdr_init_attr"""
    _fields_ = [("size", ctypes.c_size_t), ("heap_size", ctypes.c_size_t), ("transports", ctypes.c_char_p),
                ("bootstrap", ctypes.c_void_p), ("uniqueid", ctypes.c_char_p), ("pe", ctypes.c_int),
                ("n_pes", ctypes.c_int), ("mpi_comm", ctypes.c_void_p), ("ctx_queues", ctypes.c_uint)]


# What may wait for other PEs, or for kernels.
_WAITS = ("gdr_barrier_all", "gdr_calloc", "gdr_finalize", "gdr_free", "gdr_host_get", "gdr_host_put", "gdr_host_quiet",
          "gdr_init_attr", "gdr_malloc", "gdr_stream_sync", "gdr_symmetric_register", "gdr_symmetric_unregister",
          "gdr_team_create", "gdr_team_destroy", "gdr_team_join", "gdr_team_split_strided", "gdri_host_call",
          "gdri_request_now", "gdri_request_on_stream")


def _declare() -> None:
    p, i, z = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    for name, result, *args in (
            ("gdr_strerror", ctypes.c_char_p, i), ("gdr_init_attr", i, ctypes.POINTER(Attr)),
            ("gdr_malloc", p, z), ("gdr_calloc", p, z, z), ("gdr_free", i, p), ("gdr_host_ptr", p, p, i),
            ("gdr_host_put", i, p, p, z, i), ("gdr_host_get", i, p, p, z, i), ("gdr_symmetric_register", p, p, z),
            ("gdr_symmetric_unregister", i, p), ("gdr_get_uniqueid", i, ctypes.c_char_p),
            ("gdri_request_now", i, p, p), ("gdri_error_text", None, ctypes.c_char_p, z),
            ("gdri_host_call", i, p, ctypes.c_uint64, p), ("gdri_request_on_stream", i, p, p),
            ("gdr_team_split_strided", i, i, i, i, i, p, ctypes.c_long, ctypes.POINTER(ctypes.c_int32)),
            ("gdr_team_create", i, i, ctypes.POINTER(i), i, p, ctypes.c_long, ctypes.POINTER(ctypes.c_int32)),
            ("gdr_team_join", i, ctypes.c_uint64, i, i, p, ctypes.c_long, ctypes.POINTER(ctypes.c_int32)),
            ("gdr_team_new_id", i, ctypes.POINTER(ctypes.c_uint64)), ("gdr_errors", i, p, i),
            ("gdr_host_team_translate_pe", i, i, i, i), ("gdr_query", i, p),
            ("gdr_heap_list", i, p, i), ("gdri_torch_freed", p),
            ("gdri_torch_limit", ctypes.c_uint64, ctypes.c_uint64)):
        f = getattr(lib, name)
        f.restype, f.argtypes = result, args
    for name in _WAITS:
        setattr(lib, name, _interrupt.watched(getattr(lib, name)))


_declare()


def said(call: str, status: int) -> int:
    """The status of a call, or an Error."""
    if status < 0:
        raise Error(call, status)
    return status


def give_up() -> bool:
    """Ends all waits of this PE, and with them the job; False: there is none."""
    return lib.gdr_host_my_pe() >= 0 and not lib.gdr_abort_waits()


def ints(call: str, *numbers: int) -> None:
    """For int of C, to which ctypes would cut them."""
    if any(not -1 << 31 <= n < 1 << 31 for n in numbers):
        raise ValueError(f"{call}: of {numbers} one is beyond 32 bits")
