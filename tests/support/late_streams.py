# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Side streams on the CPU that do everything as late as they may: when somebody waits for it.

What is copied too late, or read before it came, is garbage; memory that is free before its copy
was made is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from rmm_uvm.torch.copied_activations import CopiedActivations

from .announced_uses import Announced, announcing

BUDGET_BYTES = 1024
GARBAGE = 0xAB


@dataclass(eq=False)
class Stream:
    """Work that is not done yet; the program's is done at once."""

    name: str
    work: list[Callable[[], None]] = field(default_factory=list)
    done_total: int = 0
    is_after: int = -1  # the last moment of the program that it waited for

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
    """See `rmm_uvm.torch.side_streams.SideStreams`."""

    out: Stream = field(default_factory=lambda: Stream("out"))
    back: Stream = field(default_factory=lambda: Stream("back"))
    program: Stream = field(default_factory=lambda: Stream("program"))
    host_bytes: int = 1 << 30  # in all
    forgetful: tuple[str, ...] = ()  # names of streams that wait for nothing
    usual: bool = True
    mistakes: list[str] = field(default_factory=list)
    moment: int = 0
    waits: set[tuple[str, str]] = field(default_factory=set)  # who waited for whom

    def current(self) -> Stream:
        return self.program

    def is_usual(self, stream: Stream) -> bool:
        return self.usual and stream is self.program

    def record(self, stream: Stream) -> Event:
        if stream.name == "program":
            self.moment += 1
            return Event(stream, self.moment)
        return Event(stream, stream.done_total + len(stream.work))

    def wait(self, stream: Stream, event: Event) -> None:
        if stream.name in self.forgetful:
            return
        self.waits.add((stream.name, event.stream.name))
        if event.stream.name == "program":
            stream.is_after = event.until
        elif stream.name == "program":
            event.stream.do(event.until)
        else:
            stream.work.append(lambda: event.stream.do(event.until))

    def passed(self, event: Event) -> bool:
        return event.stream.done_total >= event.until

    def copy(self, stream: Stream, target: torch.Tensor, source: torch.Tensor) -> None:
        if stream.is_after != self.moment:
            self.mistakes.append(f"{stream.name} does not wait for the program")
        target.fill_(GARBAGE)
        weak = [StorageWeakRef(one.untyped_storage()) for one in (target, source)]

        def late() -> None:
            # Memory of the device may be used again; that of the host torch keeps for us.
            device, host = weak if stream is self.back else weak[::-1]
            if device.expired():
                self.mistakes.append(f"memory was free before its copy in {stream.name}")
            elif not host.expired():
                there, came = (torch.UntypedStorage._new_with_weak_ptr(one.cdata) for one in weak)
                there.copy_(came)

        stream.work.append(late)

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        if nbytes > self.host_bytes:
            raise RuntimeError("CUDA error: out of memory")
        self.host_bytes -= nbytes
        return torch.empty(nbytes, dtype=torch.uint8)

    def finish(self) -> None:
        """Do what is left."""
        for stream in (self.out, self.back):
            stream.do(1 << 60)


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
) -> Iterator[Copying]:
    """Have what autograd keeps within modules copied: everything, by default."""
    streams = LateStreams() if streams is None else streams
    copies = CopiedActivations(streams, torch.device("cpu"), budget_bytes, live_bytes, small_bytes)
    with announcing(copies=copies) as announced:
        yield Copying(streams, copies, announced)
    streams.finish()
    assert bool(streams.mistakes) is mistakes, streams.mistakes
