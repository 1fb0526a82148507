# SPDX-License-Identifier: BSD-3-Clause
"""Messages from PE to PE: each has a box at each other one, into which it puts a message piece by piece, the next one when
the last is taken. Several may be on their way: who waits for one moves all of its own."""
from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from typing import Any, Iterator

import torch
import torch.distributed as dist
from torch import Tensor

import gdr

from ._memory import tensor_of, workspace

_ETIMEOUT = -20
_BITS, _COUNTS = 40, (1 << 23) - 1
_UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}


def bytes_of(x: Tensor) -> Tensor:
    return x.detach().contiguous().view(-1).view(torch.uint8)


def fill(dst: Tensor, out: Tensor) -> None:
    """dst becomes out: the same elements, or bytes of them"""
    with torch.no_grad():
        dst.detach().copy_(out.reshape(-1).view(dst.dtype).view(dst.shape))


def _limit() -> float:
    """GDR_TIMEOUT, which the library took at init, in seconds"""
    number, unit = re.fullmatch(r"(\d+)(\w*)", os.environ.get("GDR_TIMEOUT") or "30s").groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]


class Message(dist.Work):
    def __init__(self, box: Mailbox, what: str, pe: int, steps: Iterator[None]):
        super().__init__()
        self.box, self.what, self.pe, self.steps = box, what, pe, steps
        self.done, self.error = False, None

    def move(self) -> None:
        """as far as it goes"""
        try:
            next(self.steps)
        except StopIteration:
            self.done = True
        except Exception as e:
            self.done, self.error = True, e

    def is_completed(self) -> bool:
        self.box.move()
        return self.done

    def wait(self, timeout: Any = None) -> bool:
        """A message that is sent lies in its reader's box, the last piece of it at least; one that is received is there."""
        if timeout:
            raise NotImplementedError(f"gdr: wait({timeout}): waits end after GDR_TIMEOUT")
        self.box.wait(self)
        if self.error:
            raise self.error
        return True


class Mailbox:
    """Made by all PEs, and so is free(). A word of `arrived` is written by its sender alone: how many pieces it has put, above 40
    bits of how many bytes of the message are left, with this piece. One of `taken` is how many of mine its reader took."""

    def __init__(self) -> None:
        array, memory = workspace()
        n = gdr.n_pes()
        self.device, self.me, self.limit = memory.device, gdr.my_pe(), _limit()
        self.slot = max(64, array.nbytes // (4 * n) // 64 * 64)
        self.arrays = gdr.zeros((n, self.slot), "uint8"), gdr.zeros(n, "int64"), gdr.zeros(n, "int64")
        self.boxes, self.arrived, self.taken = (tensor_of(a) for a in self.arrays)
        self.n_put, self.n_taken, self.moves = [0] * n, [0] * n, 0
        self.on_way: dict[tuple[str, int], deque[Message]] = {}
        self.lock = threading.Lock()

    def end(self) -> None:
        """Refused while messages are on their way."""
        left = [f"{m.what} PE {m.pe}" for q in self.on_way.values() for m in q]
        if left:
            raise RuntimeError(f"gdr: destroy_process_group() before wait() of: {', '.join(left)}")
        del self.boxes, self.arrived, self.taken

    def free(self) -> None:
        """behind end(), where the job stays"""
        for a in self.arrays:
            a.free()

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def _sending(self, raw: Tensor, pe: int) -> Iterator[None]:
        boxes, arrived, taken = self.arrays
        mine, left = boxes[self.me], raw.numel()
        for piece in raw.split(self.slot):
            while int(self.taken[pe]) < self.n_put[pe]:
                yield
            gdr.signal_wait(taken[pe:pe + 1], gdr.GE, self.n_put[pe])  # holds: orders the put behind it
            self.n_put[pe] += 1
            gdr.put_signal(mine[:piece.numel()], piece.data_ptr(), arrived[self.me:self.me + 1],
                           (self.n_put[pe] & _COUNTS) << _BITS | left, gdr.SET, pe)
            left -= piece.numel()
            self.moves += 1

    def _receiving(self, x: Tensor, pe: int) -> Iterator[None]:
        _, arrived, taken = self.arrays
        raw = torch.empty(x.numel() * x.element_size(), dtype=torch.uint8, device=self.device)
        sent = at = 0
        while not at or at < sent:
            while (word := int(self.arrived[pe])) >> _BITS != self.n_taken[pe] + 1 & _COUNTS:
                yield
            gdr.signal_wait(arrived[pe:pe + 1], gdr.EQ, word)  # holds: orders the copy behind it
            left = word & (1 << _BITS) - 1
            sent, n = sent or left, min(left, self.slot)
            if sent == raw.numel():
                raw[at:at + n].copy_(self.boxes[pe, :n])
                self._synchronize()
            self.n_taken[pe] += 1
            gdr.signal(taken[self.me:self.me + 1], 1, gdr.ADD, pe)
            self.moves, at = self.moves + 1, at + n
            if not sent:
                break
        if sent != raw.numel():
            raise ValueError(f"gdr: recv from PE {pe}: {sent} bytes were sent, {raw.numel()} are wanted")
        fill(x, raw)

    def _post(self, message: Message) -> Message:
        self.on_way.setdefault((message.what, message.pe), deque()).append(message)
        self.move()
        return message

    def send(self, x: Tensor, pe: int) -> Message:
        raw = bytes_of(x).to(self.device)
        self._synchronize()
        return self._post(Message(self, "send to", pe, self._sending(raw, pe)))

    def recv(self, x: Tensor, pe: int) -> Message:
        return self._post(Message(self, "recv from", pe, self._receiving(x, pe)))

    def move(self) -> None:
        """The first of each direction and PE, and those behind it when it is done."""
        with self.lock, torch.no_grad():
            for queue in list(self.on_way.values()):
                while queue:
                    queue[0].move()
                    if not queue[0].done:
                        break
                    queue.popleft()

    def wait(self, message: Message) -> None:
        seen, end = self.moves, time.monotonic() + self.limit
        while not message.done:
            self.move()
            if self.moves != seen:
                seen, end = self.moves, time.monotonic() + self.limit
            elif time.monotonic() > end:
                message.done = True
                self.on_way[message.what, message.pe].remove(message)
                raise gdr.Error(f"{message.what} PE {message.pe}", _ETIMEOUT)
            else:
                time.sleep(0)
