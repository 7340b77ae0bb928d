# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What came of keeping hot rows on the device: hits, and what was read through the link."""

from __future__ import annotations

import dataclasses

from rmm_uvm.support.units import format_bytes

__all__ = ["HitStatistics"]


@dataclasses.dataclass(frozen=True)
class HitStatistics:
    """How a table's lookups were served, since it was made or `reset` was asked for.

    Attributes
    ----------
    lookups : int
        Ids that were looked up.
    sampled_lookups : int
        Of those, what was counted.
    hit_fraction : float or None
        Share of the sampled lookups that were in blocks on the device; None where none was sampled.
    link_bytes : int
        Read through the link: an estimate, as if every lookup missed as often as the sampled ones,
        and each miss read its row once. Caches of the device make it less; writes are not in it.
    hot_bytes, table_bytes : int
        Of blocks that are kept on the device now, and of all blocks of the table.
    moved_bytes : int
        Told to move between device and host, for placement.
    exchanged_rows : int
        Rows that have changed places with others, by `reorder`.
    reason : str
        Why cold rows are not read through a mapping; empty where they are. They come by page
        faults then.
    """

    lookups: int
    sampled_lookups: int
    hit_fraction: float | None
    link_bytes: int
    hot_bytes: int
    table_bytes: int
    moved_bytes: int
    exchanged_rows: int
    reason: str = ""

    def __str__(self) -> str:
        share = "unknown" if self.hit_fraction is None else f"{self.hit_fraction:.1%}"
        lines = [
            f"on the device  {format_bytes(self.hot_bytes)} of {format_bytes(self.table_bytes)}",
            f"lookups        {self.lookups}, hits {share} of {self.sampled_lookups} sampled",
            f"through link   about {format_bytes(self.link_bytes)} (estimated)",
            f"moved          {format_bytes(self.moved_bytes)} for placement, "
            f"{self.exchanged_rows} rows changed places",
        ]
        return "\n".join([*lines, *([f"no mapping     {self.reason}"] if self.reason else [])])
