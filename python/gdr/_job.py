# SPDX-License-Identifier: BSD-3-Clause
"""Bring-up."""
from __future__ import annotations

import ctypes

from . import _interrupt
from ._library import Attr, Error, give_up, ints, lib, records, said, text

UNIQUEID_BYTES = 128


jobs = 0  # that this process has joined


def get_uniqueid() -> bytes:
    """128 bytes that name a job. One process makes them, before init, and hands them to all others; it has to be one of
    the job's PEs, and to live until all are initialised."""
    b = ctypes.create_string_buffer(UNIQUEID_BYTES)
    said("get_uniqueid", lib.gdr_get_uniqueid(b))
    return b.raw


def init(heap_size: int = 0, transports: str | None = None, uniqueid: bytes | None = None, pe: int = 0,
         n_pes: int = 0) -> None:
    """Collective. Joins the job of the launcher (mpirun, srun; torchrun with GDR_BOOTSTRAP=env), or, with a unique id,
    as PE pe of n_pes.

    heap_size: bytes of symmetric memory of this PE; 0: GDR_HEAP_SIZE. transports: as GDR_TRANSPORTS.
    """
    ints("init", pe, n_pes)
    keep = ctypes.create_string_buffer(uniqueid, UNIQUEID_BYTES) if uniqueid else None
    a = Attr(ctypes.sizeof(Attr), heap_size, transports.encode() if transports else None, None,
             ctypes.cast(keep, ctypes.c_char_p) if keep else None, pe, n_pes, None, 0)
    _interrupt.watch(give_up)
    said("init", lib.gdr_init_attr(ctypes.byref(a)))
    global jobs
    jobs += 1


def finalize() -> None:
    """Collective. The symmetric memory is gone behind it, also behind an Error: views of arrays must not be used any more. An
    Error says what failed in the job, if the program caught it then: other PEs were not waited for."""
    failed = records()  # which go with the job
    status = lib.gdr_finalize()
    if status < 0:
        of = [text(r) for r in failed if r.status == status]
        raise Error("finalize", status, f"the job has ended without waiting for other PEs, since {of[0]}" if of else "")


def my_pe() -> int:
    """The number of this PE in the job."""
    return said("my_pe", lib.gdr_host_my_pe())


def n_pes() -> int:
    """The number of PEs of the job."""
    return said("n_pes", lib.gdr_host_n_pes())


def checked(pe: int) -> int:
    """The library trusts its callers."""
    if not 0 <= pe < n_pes():
        raise ValueError(f"there is no PE {pe}, the job has {n_pes()}")
    return pe


def on_gpu() -> bool:
    """Whether arrays are memory of a GPU (GDR_DEVICE=cuda), or of the host device."""
    info = (ctypes.c_char_p * 64)()
    said("query", lib.gdr_query(info))
    return info[0] == b"cuda"
