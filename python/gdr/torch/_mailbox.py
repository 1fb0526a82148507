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
_HEAD = 16  # bytes in front of a message: its key
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
    """Of a group and with a tag, which are its key. pe: -1, of any of the group's"""

    x: Tensor  # that recv fills

    def __init__(self, box: Mailbox, what: str, pe: int, key: tuple[int, int], pes: list[int], limit: float | None):
        super().__init__()
        self.box, self.pe, self.key, self.pes, self.limit = box, pe, key, pes, limit
        self.what = f"{what} {'any PE' if pe < 0 else f'PE {pe}'}" + (f" with tag {key[1]}" if key[1] > 0 else "")
        self.done, self.error = False, None  # type: bool, Exception | None

    def end(self, error: Exception | None = None) -> None:
        self.done, self.error = True, error

    def is_completed(self) -> bool:
        self.box.move()
        return self.done

    def source_rank(self) -> int:
        return self.pes.index(self.pe)

    _source_rank = source_rank

    def wait(self, timeout: Any = None) -> bool:
        """A message that is sent lies in its reader's box, the last piece of it at least; one that is received is there.
        timeout: instead of the group's, or GDR_TIMEOUT; no piece moves for so long."""
        self.box.wait(self, timeout.total_seconds() if timeout else self.limit or self.box.limit)
        if self.error:
            raise self.error
        return True


class Mailbox:
    """Made by all PEs, and so is free(). A word of `arrived` is written by its sender alone: how many pieces it has put, above 40
    bits of how many bytes of the message are left, with this piece. One of `taken` is how many of mine its reader took."""

    def __init__(self, room: int) -> None:
        """room: bytes of each sender's messages that are kept, of which no recv has asked. gloo leaves such a message at its
        sender, NCCL does not begin it: send's wait() ends when its recv comes, or at its limit. So does this one's beyond
        `room`: a message stays in its box, those behind it at their sender, and nobody's memory fills. Up to it a recv by
        another tag may overtake them, as with gloo; one whose message lies behind those says so at its limit. At least one
        is kept, of any size."""
        array, memory = workspace()
        n = gdr.n_pes()
        self.device, self.me, self.limit = memory.device, gdr.my_pe(), _limit()
        self.slot = max(64, array.nbytes // (4 * n) // 64 * 64)
        self.arrays = gdr.zeros((n, self.slot), "uint8"), gdr.zeros(n, "int64"), gdr.zeros(n, "int64")
        self.boxes, self.arrived, self.taken = (tensor_of(a) for a in self.arrays)
        self.n_put, self.n_taken, self.moves = [0] * n, [0] * n, 0
        self.sends: dict[int, deque[tuple[Message, Iterator[None]]]] = {}
        self.recvs: list[Message] = []
        self.kept: list[tuple[int, Tensor]] = []  # that came before a recv of theirs
        self.room, self.full = room, {}  # type: int, dict[int, int]  # of whom no more is kept: tag of what lies in the box
        self.readers = [self._reading(pe) for pe in range(n)]
        self.lock = threading.RLock()

    def end(self) -> None:
        """Refused while messages are on their way."""
        left = [m.what for q in self.sends.values() for m, _ in q] + [m.what for m in self.recvs]
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
        for piece in torch.split(raw, self.slot):
            while int(self.taken[pe]) < self.n_put[pe]:
                yield
            gdr.signal_wait(taken[pe:pe + 1], gdr.GE, self.n_put[pe])  # holds: orders the put behind it
            self.n_put[pe] += 1
            gdr.put_signal(mine[:piece.numel()], piece.data_ptr(), arrived[self.me:self.me + 1],
                           (self.n_put[pe] & _COUNTS) << _BITS | left, gdr.SET, pe)
            left -= piece.numel()
            self.moves += 1

    def _reading(self, pe: int) -> Iterator[None]:
        """Message after message of pe, piece by piece."""
        _, arrived, taken = self.arrays
        raw = torch.empty(0, dtype=torch.uint8, device=self.device)
        at = 0
        while True:
            while (word := int(self.arrived[pe])) >> _BITS != self.n_taken[pe] + 1 & _COUNTS:
                yield
            gdr.signal_wait(arrived[pe:pe + 1], gdr.EQ, word)  # holds: orders the copy behind it
            left = word & (1 << _BITS) - 1
            if left != raw.numel() - at:  # another message, also where the sender gave the last one up
                while not self._fits(pe, left):
                    yield
                raw, at = raw.new_empty(left), 0
            n = min(left, self.slot)
            raw[at:at + n].copy_(self.boxes[pe, :n])
            self._synchronize()
            self.n_taken[pe] += 1
            gdr.signal(taken[self.me:self.me + 1], 1, gdr.ADD, pe)
            self.moves, at = self.moves + 1, at + n
            if at == raw.numel():
                self.kept.append((pe, raw))
                self._hand_out()

    def _wanted(self, pe: int, raw: Tensor) -> Message | None:
        """The first recv that asked for it"""
        key = tuple(raw[:_HEAD].view(torch.int64).tolist())
        return next((m for m in self.recvs if m.pe in (pe, -1) and m.key == key), None)

    def _fits(self, pe: int, nbytes: int) -> bool:
        """What begins in the box of pe: a recv asks for it, or it can be kept."""
        kept = [raw.numel() for of, raw in self.kept if of == pe]
        if not kept or sum(kept) + nbytes <= self.room or self._wanted(pe, self.boxes[pe]):
            self.full.pop(pe, None)
            return True
        self.full[pe] = int(self.boxes[pe, 8:_HEAD].view(torch.int64))
        return False

    def _in_the_way(self, message: Message) -> str:
        """Of a recv: what it does not get past."""
        texts = []
        for pe, tag in self.full.items() if any(m is message for m in self.recvs) else ():
            if message.pe in (pe, -1):
                kept = [raw for of, raw in self.kept if of == pe]
                texts.append(f"; {len(kept)} messages of PE {pe} are kept, {sum(raw.numel() for raw in kept)} bytes, of which no "
                             f"recv has asked, the first with tag {int(kept[0][8:_HEAD].view(torch.int64))}, and the next, with "
                             f"tag {tag}, has no room: recv them before, or set gdr.torch.process_group.kept_bytes, now "
                             f"{self.room}, before init_process_group()")
        return "".join(texts)

    def _hand_out(self) -> None:
        """In the order in which they came."""
        for pe, raw in list(self.kept):
            m = self._wanted(pe, raw)
            if m is None:
                continue
            self.recvs.remove(m)
            self.kept = [k for k in self.kept if k[1] is not raw]
            m.pe, wanted = pe, m.x.numel() * m.x.element_size()
            if raw.numel() - _HEAD == wanted:
                fill(m.x, raw[_HEAD:])
                m.end()
            else:
                m.end(ValueError(f"gdr: recv from PE {pe}: {raw.numel() - _HEAD} bytes were sent, {wanted} are wanted"))

    def send(self, x: Tensor, pe: int, *of: Any) -> Message:
        message = Message(self, "send to", pe, *of)
        head = torch.tensor(message.key, dtype=torch.int64).view(torch.uint8)
        raw = torch.cat([head.to(self.device), bytes_of(x).to(self.device)])
        self._synchronize()
        with self.lock:
            self.sends.setdefault(pe, deque()).append((message, self._sending(raw, pe)))
        self.move()
        return message

    def recv(self, x: Tensor, pe: int, *of: Any) -> Message:
        message = Message(self, "recv from", pe, *of)
        message.x = x
        with self.lock:
            self.recvs.append(message)
            self._hand_out()
        self.move()
        return message

    def move(self) -> None:
        """As far as it goes: to each PE the first one, and those behind it when it is done; from those of whom something is
        wanted."""
        with self.lock, torch.no_grad():
            for queue in self.sends.values():
                while queue:
                    try:
                        next(queue[0][1])
                        break
                    except StopIteration:
                        queue.popleft()[0].end()
                    except gdr.Error as e:
                        queue.popleft()[0].end(e)
            for pe, reader in enumerate(self.readers):
                if any(m.pe in (pe, -1) for m in self.recvs):
                    next(reader, None)

    def _drop(self, message: Message) -> None:
        with self.lock:
            self.recvs = [m for m in self.recvs if m is not message]
            for queue in self.sends.values():
                for sent in [sent for sent in queue if sent[0] is message]:
                    queue.remove(sent)

    def wait(self, message: Message, limit: float) -> None:
        seen, end = self.moves, time.monotonic() + limit
        while not message.done:
            self.move()
            if self.moves != seen:
                seen, end = self.moves, time.monotonic() + limit
            elif time.monotonic() > end:
                why = self._in_the_way(message)
                self._drop(message)
                message.end()
                raise gdr.Error(f"{message.what} within {limit:g} s{why}", _ETIMEOUT)
            else:
                time.sleep(0)
