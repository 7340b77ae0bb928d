# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The least that a recorded torch program has to move on a card, and the least time for it.

Belady's rule over the whole order: what is needed last leaves first, byte by byte, and what is dead
leaves without a copy. What leaves alive is copied, as the kernel driver always does. A kernel that
uses a part of an allocation finds as much of it as there is of the allocation: no way of keeping
memory moves less. The least time has every transfer behind computing or another transfer.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Any

from rmm_uvm.simulator import Machine
from rmm_uvm.torch.shadow.program import Free, Given, Kernel, Make, Program


@dataclass(frozen=True)
class Least:
    """Bytes each way, bytes wanted and of them there, and the least time."""

    to_device_bytes: int
    to_host_bytes: int
    wanted_bytes: int
    present_bytes: int
    compute_seconds: float

    def seconds(self, machine: Machine) -> float:
        """Return the larger of computing and the link's time, both ways at once where it can."""
        inward, outward = self.to_device_bytes, self.to_host_bytes
        rates = (machine.to_device_bytes_per_ns, machine.to_host_bytes_per_ns)
        link_ns = max(
            inward / rates[0],
            outward / rates[1],
            (inward + outward) / (sum(rates) * machine.duplex_fraction),
        )
        return max(self.compute_seconds, link_ns / 1e9)


class _Card:
    def __init__(self, program: Program, device_bytes: int) -> None:
        self.room_bytes = device_bytes
        self.on_card: dict[int, int] = {}
        self.contents: dict[int, int] = {}
        self.total_bytes = 0
        self.out_bytes = self.in_bytes = self.wanted_bytes = self.present_bytes = 0
        self.moments: dict[int, list[int]] = {}
        self.freed: set[int] = set()
        for number, event in enumerate(program.events):
            if isinstance(event, Kernel):
                for use in event.uses:
                    self.moments.setdefault(use.allocation, []).append(number)
            elif isinstance(event, Free):
                self.freed.add(event.allocation)

    def next_use(self, allocation: int, now: int) -> float:
        moments = self.moments.get(allocation, [])
        place = bisect.bisect_right(moments, now)
        return moments[place] if place < len(moments) else math.inf

    def make_room(self, now: int, staying: set[int]) -> None:
        """Let what is needed last leave, until the rest has room; what stays only at the end."""
        if self.total_bytes <= self.room_bytes:
            return

        def lateness(one: int) -> tuple[bool, float]:
            return one not in staying, self.next_use(one, now)

        order = sorted(self.on_card, key=lateness, reverse=True)
        for allocation in order:
            leaving = min(self.on_card[allocation], self.total_bytes - self.room_bytes)
            self.on_card[allocation] -= leaving
            self.total_bytes -= leaving
            dead = self.next_use(allocation, now) == math.inf and allocation in self.freed
            if not dead:
                self.out_bytes += min(leaving, self.contents.get(allocation, 0))
            if not self.on_card[allocation]:
                del self.on_card[allocation]
            if self.total_bytes <= self.room_bytes:
                return

    def use(self, allocation: int, nbytes: int, *, fresh: bool, writes: bool) -> None:
        there = self.on_card.get(allocation, 0)
        missing = max(min(nbytes, self.contents.get(allocation, 0)) - there, 0)
        if not fresh:
            self.wanted_bytes += nbytes
            self.present_bytes += nbytes - missing
        self.in_bytes += missing
        self.total_bytes += max(nbytes - there, 0)
        self.on_card[allocation] = max(there, nbytes)
        if writes:
            self.contents[allocation] = max(self.contents.get(allocation, 0), nbytes)

    def free(self, allocation: int) -> None:
        self.total_bytes -= self.on_card.pop(allocation, 0)
        self.contents.pop(allocation, None)

    def counts(self) -> tuple[int, int, int, int]:
        return self.in_bytes, self.out_bytes, self.wanted_bytes, self.present_bytes


def least(program: Program, device_bytes: int, first: int, end: int) -> Least:
    """Return the least for events `first` to `end`; those before and after are known."""
    card = _Card(program, device_bytes)
    before: Any = (0, 0, 0, 0)
    compute_seconds = 0.0
    for number, event in enumerate(program.events[:end]):
        if number == first:
            before = card.counts()
        match event:
            case Kernel(uses, seconds):
                for one in uses:
                    card.use(one.allocation, one.nbytes, fresh=one.fresh, writes=one.writes)
                card.make_room(number, {one.allocation for one in uses})
                compute_seconds += seconds if number >= first else 0.0
            case Given(one):
                card.use(one.allocation, one.nbytes, fresh=True, writes=True)
                card.make_room(number, set())
            case Free(allocation):
                card.free(allocation)
            case Make():
                pass
    counts = (now - then for now, then in zip(card.counts(), before, strict=True))
    return Least(*counts, compute_seconds)
