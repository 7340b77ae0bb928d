# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of this process' transfers between workers.

Bytes are of device frames only. "Staged": by way of the IPC pool. "Direct": from or into memory
that CUDA IPC can export. "Overflow": managed memory on the wire path, which is slow; the fallback
when the IPC pool has nothing free for too long, or there is none. Of what is staged, "pulled" is
what the receiver copies out of the sender's chunks itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

__all__ = ["DIRECTIONS", "WAYS", "CommTotals", "Direction", "Way", "bytes_moved", "totals"]

Direction: TypeAlias = Literal["sent", "received"]
Way: TypeAlias = Literal["staged", "direct", "overflow"]

DIRECTIONS: tuple[Direction, ...] = ("sent", "received")
WAYS: tuple[Way, ...] = ("staged", "direct", "overflow")


@dataclasses.dataclass
class CommTotals:
    """Totals since the process began; they only grow.

    Attributes
    ----------
    sent_staged_bytes, sent_direct_bytes, sent_overflow_bytes : int
        Device bytes sent, by way.
    received_staged_bytes, received_direct_bytes, received_overflow_bytes : int
        Device bytes received, by way.
    chunk_waits : int
        How often a transfer had to wait for a staging chunk.
    chunk_wait_seconds : float
        For how long, all together.
    aborted_transfers : int
        Messages with device frames that ended with an error, on either side.
    refused_messages : int
        Messages and handshakes that were refused since they are none of this protocol.
    pulled_bytes : int
        Of the staged bytes, those that were pulled, by this process or from it.
    """

    sent_staged_bytes: int = 0
    sent_direct_bytes: int = 0
    sent_overflow_bytes: int = 0
    received_staged_bytes: int = 0
    received_direct_bytes: int = 0
    received_overflow_bytes: int = 0
    chunk_waits: int = 0
    chunk_wait_seconds: float = 0.0
    aborted_transfers: int = 0
    refused_messages: int = 0
    pulled_bytes: int = 0

    def count(self, direction: Direction, way: Way, nbytes: int) -> None:
        """Add bytes that went some way."""
        name = f"{direction}_{way}_bytes"
        setattr(self, name, getattr(self, name) + nbytes)

    def to_dict(self) -> dict[str, float]:
        """Return the totals by name."""
        return dataclasses.asdict(self)


def bytes_moved(
    told: Mapping[str, float], *ways: Way, directions: Sequence[Direction] = DIRECTIONS
) -> float:
    """Return the bytes that went some ways, of totals by name; a name that is missing counts 0."""
    return sum(told.get(f"{direction}_{way}_bytes", 0) for direction in directions for way in ways)


_totals = CommTotals()


def totals() -> CommTotals:
    """Return the totals of this process; the same object every time, written by the event loop."""
    return _totals
