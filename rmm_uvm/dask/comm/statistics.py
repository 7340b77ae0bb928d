# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What this process' transfers between workers have done so far.

Bytes are of device frames only. "Staged": by way of the IPC pool. "Direct": from or into memory
that CUDA IPC can export. "Overflow": managed memory on the wire path, which is slow; the fallback
when the IPC pool has nothing free for too long, or there is none.
"""

from __future__ import annotations

import dataclasses

__all__ = ["CommTotals", "totals"]


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

    def to_dict(self) -> dict[str, float]:
        """Return the totals by name."""
        return dataclasses.asdict(self)


_totals = CommTotals()


def totals() -> CommTotals:
    """Return the totals of this process; the same object every time, written by the event loop."""
    return _totals
