# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A harvest board that is slow and plain, in numbers without end: the fast one has to agree.

The rule is that of ``cpp/include/rmm_uvm/residency/harvest_rule.hpp``, the layout that of
``cpp/src/ipc/board_file.hpp``.
"""

from __future__ import annotations

import struct
import uuid
from typing import NamedTuple

BLOCK = 2 << 20
DEVICES, PROCESSES = 16, 64
HEADER = (int.from_bytes(b"UVMBOARD", "little"), 2)  # magic, version
_UUIDS, _PROCESSES, _OFFERS = 8, 40, 104
CLAIMS = _OFFERS + DEVICES * PROCESSES
WORDS = CLAIMS + 3 * DEVICES * PROCESSES  # with what budgets want and hold
BYTES = 8 * WORDS
_HALF = 2**32 - 1


class Agreed(NamedTuple):
    """What processes say of one device, together."""

    offered_bytes: int | None
    claimed_bytes: int
    coming_bytes: int


class SlowBoard:
    """A board's words, and who has joined it."""

    def __init__(self, contents: bytes, taken: frozenset[int]) -> None:
        self.words = struct.unpack(f"<{WORDS}Q", contents)
        self.taken = taken

    @property
    def valid(self) -> bool:
        return self.words[:3] == (*HEADER, BYTES)

    def uuid(self, row: int) -> str:
        raw = struct.pack("<2Q", *self.words[_UUIDS + 2 * row : _UUIDS + 2 * row + 2])
        return f"GPU-{uuid.UUID(bytes=raw)}"

    def row(self, device: str) -> int | None:
        rows = range(min(self.words[3], DEVICES))
        return next((row for row in rows if self.uuid(row) == device), None)

    def offer(self, row: int, process: int) -> tuple[int | None, bool]:
        word = self.words[_OFFERS + row * PROCESSES + process]
        return (word & _HALF) * BLOCK if word >> 63 else None, bool(word >> 62 & 1)

    def holding(self, row: int, process: int) -> tuple[int, int]:
        word = self.words[CLAIMS + row * PROCESSES + process]
        claimed = (word >> 32) * BLOCK
        return claimed, min(claimed, (word & _HALF) * BLOCK)

    def agreed(self, row: int) -> Agreed:
        holdings = [self.holding(row, process) for process in self.taken]
        offers = [self.offer(row, process)[0] for process in self.taken]
        return Agreed(
            min((each for each in offers if each is not None), default=None),
            sum(claimed for claimed, _ in holdings),
            sum(coming for _, coming in holdings),
        )

    def entries(self) -> list[tuple[int, str, int | None, bool, int, int]]:
        """Return what `rmm_uvm._lib.harvest.look` shows."""
        found = []
        for process in sorted(self.taken):
            for row in range(min(self.words[3], DEVICES)):
                offer, holding = self.offer(row, process), self.holding(row, process)
                if offer != (None, False) or holding[0]:
                    named = self.words[_PROCESSES + process] & _HALF
                    found.append((named, self.uuid(row), *offer, *holding))
        return found

    def claim(self, device: str, me: int, wanted: int, free: int, reserve: int) -> tuple[int, int]:
        """Return what a claim gets, and what is held with it."""
        row = self.row(device)
        if wanted < BLOCK:
            return 0, 0 if row is None else self.holding(row, me)[0]
        if row is None:  # it gets the next row, with whatever stands there
            row = self.words[3]
        if row >= DEVICES:
            return 0, 0
        now, mine = self.agreed(row), self.holding(row, me)[0]
        left = max(free - reserve - now.coming_bytes, 0)
        if now.offered_bytes is not None:
            left = min(left, max(now.offered_bytes - now.claimed_bytes, 0))
        got = min(wanted, left, _HALF * BLOCK - mine) // BLOCK * BLOCK
        return got, mine + got

    def to_give_back(self, row: int, me: int, shortage: int) -> int:
        """Return the least bytes that one claimant has to give back: its share, in blocks."""
        now, mine = self.agreed(row), self.holding(row, me)[0]
        over = 0
        if now.offered_bytes is not None:
            over = max(now.claimed_bytes - now.offered_bytes, 0)
        excess = min(now.claimed_bytes, max(over, shortage))
        if excess == now.claimed_bytes:
            return mine
        blocks = -(-excess // BLOCK)
        return min(mine, -(-mine * blocks // now.claimed_bytes) * BLOCK)

    def changed(self, before: SlowBoard, me: int) -> list[int]:
        """Return the words that somebody may not change who has only a place of its own."""
        found = []
        for number, (old, new) in enumerate(zip(before.words, self.words, strict=True)):
            process = (number - _OFFERS) % PROCESSES if number >= _OFFERS else None
            gone = process is not None and process not in self.taken and new == 0
            own = process == me or number == 3 or _UUIDS <= number < _PROCESSES
            if old != new and not own and not gone:
                found.append(number)
        return found
