# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How often rows and blocks of a table are looked up, and how often they were on the device.

Counted where the ids are, without waiting. Covers counting, decay, and bringing counts to the host.
Does not cover what is decided with them.
"""

from __future__ import annotations

import dataclasses

import torch

from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes

__all__ = ["HitStatistics", "LookupCounts"]

_MOST_OF_BATCH = 1 << 16  # consecutive lookups, from another place each time
_DECAY = 0.5  # of what was counted before, at each look: what was hot some looks ago is forgotten


class LookupCounts:
    """Counts of sampled lookups, on the device of the ids.

    Parameters
    ----------
    num_rows, row_bytes, blocks : int
        Of the table.
    device : torch.device
        Where ids are.
    by_row : bool
        Count every id as well, 4 bytes each: what a new order of the rows is learnt from.

    Notes
    -----
    Nothing here waits for the device, but `totals`. Not thread-safe.
    """

    def __init__(
        self, num_rows: int, row_bytes: int, blocks: int, device: torch.device, *, by_row: bool
    ) -> None:
        self._row_bytes = row_bytes
        self.heat = torch.zeros(blocks, dtype=torch.float32, device=device)
        self.of_ids = torch.zeros(num_rows, dtype=torch.int32, device=device) if by_row else None
        self._resident = torch.zeros(blocks, dtype=torch.bool, device=device)
        self._totals = torch.zeros(2, dtype=torch.int64, device=device)  # lookups, hits
        self._turn = 0
        self._copy: torch.Tensor | None = None
        self._copied: torch.cuda.Event | None = None

    def add(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """Count the lookups of one batch: ids, and the rows that they are in.

        All ids are counted, as hot ids are many. Blocks are few, and much the same ones: counting
        them takes turns at the same addresses, so a part of the batch stands for it.
        """
        if self.of_ids is not None:
            one = torch.ones(1, dtype=torch.int32, device=ids.device)
            self.of_ids.index_add_(0, ids.reshape(-1), one.expand(ids.numel()))
        total = rows.numel()
        part = min(total, _MOST_OF_BATCH)
        first = self._turn * _MOST_OF_BATCH % (total - part + 1)
        self._turn += 1
        blocks = self.blocks_of(rows.reshape(-1)[first : first + part])
        weight = torch.full((1,), total / part, device=ids.device)
        self.heat.index_add_(0, blocks, weight.expand(part))
        self._totals[0] += part
        self._totals[1] += self._resident.index_select(0, blocks).sum()

    def blocks_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the block that each row begins in."""
        return (rows.reshape(-1).long() * self._row_bytes).div_(
            VA_BLOCK_BYTES, rounding_mode="floor"
        )

    def set_resident(self, blocks: set[int]) -> None:
        """Say which blocks are on the device, for the share of hits."""
        mask = torch.zeros(self._resident.numel(), dtype=torch.bool, device="cpu")
        mask[sorted(blocks)] = True
        self._resident.copy_(mask)

    def begin_look(self) -> None:
        """Begin to bring the blocks' heat to the host, and let it decay here."""
        if self.heat.is_cuda:
            self._copy = torch.empty(
                self.heat.shape, dtype=self.heat.dtype, device="cpu", pin_memory=True
            )
            self._copy.copy_(self.heat, non_blocking=True)
            self._copied = torch.cuda.Event()
            self._copied.record()
        else:
            self._copy = self.heat.clone()
        self.heat.mul_(_DECAY)

    def look(self) -> torch.Tensor | None:
        """Return the heat that was asked for; None while it is under way, or where none was."""
        if self._copy is None or (self._copied is not None and not self._copied.query()):
            return None
        found, self._copy, self._copied = self._copy, None, None
        return found

    def recount(self, row_of: torch.Tensor) -> None:
        """Count the blocks' heat anew from that of the ids, whose rows have changed."""
        self._copy = self._copied = None  # what is under way is of the old rows
        if self.of_ids is None:
            return
        self.heat.zero_()
        for ids, rows in zip(self.of_ids.split(1 << 22), row_of.split(1 << 22), strict=True):
            self.heat.index_add_(0, self.blocks_of(rows), ids.float())

    def totals(self) -> tuple[int, int]:
        """Return the lookups that were sampled, and how many of them were in resident blocks."""
        lookups, hits = self._totals.tolist()
        return int(lookups), int(hits)

    def reset_totals(self) -> None:
        """Begin the share of hits anew."""
        self._totals.zero_()


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
