# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Side streams on the CPU that do everything as late as they may: when somebody waits for it.

What is copied too late, or read before it came, is garbage; memory that is free before its copy
was made is a mistake.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.recompute.recomputation import Recomputation

from .announced_uses import Announced, announcing

BUDGET_BYTES = 1024
GARBAGE = 0xAB


@dataclass(eq=False)
class Stream:
    """Work that is not done yet; the program's is done at once."""

    name: str
    work: list[Callable[[], None]] = field(default_factory=list)
    done_total: int = 0
    follows: bool = False  # the program, since its last copy

    def do(self, until: int) -> None:
        while self.done_total < until and self.work:
            self.done_total += 1
            self.work.pop(0)()


@dataclass(eq=False)
class Event:
    """A moment of a stream: how much of its work comes before."""

    stream: Stream
    until: int


@dataclass
class LateStreams:
    """See `rmm_uvm.torch.activations.side_streams.SideStreams`."""

    out: Stream = field(default_factory=lambda: Stream("out"))
    back: Stream = field(default_factory=lambda: Stream("back"))
    staging_bytes: int = 0
    program: int = 0  # the stream of now
    host_bytes: int = 1 << 30  # in all
    forgetful: tuple[str, ...] = ()  # names of streams that wait for nothing
    usual: bool = True
    mistakes: list[str] = field(default_factory=list)
    copies_total: int = 0
    out_total: int = 0  # of those
    waits: set[tuple[str, str]] = field(default_factory=set)  # who waited for whom
    followed: list[tuple[str, int]] = field(default_factory=list)  # sides and streams
    buffers: set[int] = field(default_factory=set)  # addresses of all there ever were
    finished_total: int = 0

    def current(self) -> int:
        return self.program

    def is_usual(self, stream: int) -> bool:
        return self.usual and stream == 0

    def follow(self, side: Stream, stream: int) -> None:
        self.followed.append((side.name, stream))
        if side.name not in self.forgetful:
            self.waits.add((side.name, "program"))
            side.follows = True

    def mark(self, side: Stream) -> Event:
        return Event(side, side.done_total + len(side.work))

    def wait(self, stream: int, mark: Event) -> None:
        if "program" in self.forgetful:
            return
        self.waits.add(("program", mark.stream.name))
        mark.stream.do(mark.until)

    def passed(self, mark: Event) -> bool:
        return mark.stream.done_total >= mark.until

    def copy(
        self,
        side: Stream,
        target: torch.UntypedStorage,
        source: torch.UntypedStorage,
        nbytes: int,
    ) -> None:
        if not side.follows:
            self.mistakes.append(f"{side.name} does not wait for the program")
        side.follows = False
        if (source if side is self.back else target).data_ptr() not in self.buffers:
            self.mistakes.append(f"{side.name} copies to or from memory that is not pinned")
        self.copies_total += 1
        self.out_total += side is self.out
        target.fill_(GARBAGE)
        weak = [StorageWeakRef(one) for one in (target, source)]

        def late() -> None:
            if any(one.expired() for one in weak):  # others may have it by now
                self.mistakes.append(f"memory was free before its copy in {side.name}")
                return
            there, came = (torch.UntypedStorage._new_with_weak_ptr(one.cdata) for one in weak)
            ctypes.memmove(there.data_ptr(), came.data_ptr(), nbytes)

        side.work.append(late)

    def finish(self) -> None:
        """Do what is left."""
        self.finished_total += 1
        for stream in (self.out, self.back):
            stream.do(1 << 60)

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        if nbytes > self.host_bytes:
            raise RuntimeError("CUDA error: out of memory")
        self.host_bytes -= nbytes
        buffer = torch.empty(nbytes, dtype=torch.uint8)
        self.buffers.add(buffer.data_ptr())
        return buffer


@dataclass
class Copying:
    """Copies of what autograd keeps on the CPU."""

    streams: LateStreams
    copies: CopiedActivations
    announced: Announced

    def counts(self) -> dict[str, int]:
        """Return bytes copied, returned and returned ahead."""
        names = ("copied_bytes", "returned_bytes", "returned_ahead_bytes")
        return {name: self.copies.statistics()[name] for name in names}


@contextmanager
def copying(
    budget_bytes: int = BUDGET_BYTES,
    live_bytes: Callable[[], int] = lambda: 1 << 40,
    streams: LateStreams | None = None,
    *,
    small_bytes: int = 0,
    mistakes: bool = False,
    evicted_bytes: Callable[[], int] = int,
    confirm: Callable[[], object] = bool,
    confirmed: Callable[[], bool] = bool,
    recompute: Recomputation | None = None,
) -> Iterator[Copying]:
    """Have what autograd keeps within modules copied: everything, by default."""
    streams = LateStreams() if streams is None else streams
    copies = CopiedActivations(
        streams,
        torch.device("cpu"),
        budget_bytes,
        lambda _: (live_bytes(),) * 2,
        small_bytes,
        evicted_bytes,
        confirm,
        None if recompute is None else recompute.on_round,
    )
    with announcing(copies=copies, confirmed=confirmed, recompute=recompute) as announced:
        yield Copying(streams, copies, announced)
    streams.finish()
    assert bool(streams.mistakes) is mistakes, streams.mistakes
