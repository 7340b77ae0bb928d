# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A table of rows that may be larger than the device: memory, order, counts and placement.

Covers what happens at each batch of lookups. Does not cover modules of torch; see
`rmm_uvm.torch.embeddings.modules`.
"""

from __future__ import annotations

import threading
import weakref

import rmm
import torch

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, whole_number
from rmm_uvm.torch.embeddings.hot_blocks import allowed_bytes, become, chosen, most_pinned_bytes
from rmm_uvm.torch.embeddings.lookup_counts import HitStatistics, LookupCounts
from rmm_uvm.torch.embeddings.row_memory import RowMemory
from rmm_uvm.torch.embeddings.row_order import RowOrder, exchange_places, exchanged_rows

__all__ = ["RowTable", "checked_batches"]

_EAGER_BATCHES = 8  # all of these are counted, so that the first choice has something to go by
_MOST_MOVES = 512  # blocks that come in one go: at 25 GB/s a batch waits 40 ms at most

_tables: weakref.WeakSet[RowTable] = weakref.WeakSet()
_placing = threading.RLock()  # one table of a pool goes by what the others have pinned


class RowTable:
    """Rows in managed memory, of which the hot ones stay on the device.

    Parameters
    ----------
    num_rows, row_items : int
        Shape, both > 0.
    dtype : torch.dtype
        Of the items.
    mr : rmm.mr.DeviceMemoryResource
        A managed pool.
    hot_bytes : int or None
        Most bytes on the device; None for what the budget or free memory allows.
    sample_every : int
        Of so many batches one is counted, after the first eight; > 0.
    place_every : int
        After so many batches, and at powers of two before, hot blocks are chosen anew; > 0.
    count_ids : bool
        Count ids too, 4 bytes each on the device: what `reorder` learns from.

    Raises
    ------
    ConfigurationError
        If a size or an interval is out of its bounds.
    MemoryError, AvailabilityError
        As `RowMemory`.

    Notes
    -----
    `rows` may be called by several threads; the counts of one of them may be skipped.
    """

    def __init__(
        self,
        num_rows: int,
        row_items: int,
        dtype: torch.dtype,
        mr: rmm.mr.DeviceMemoryResource,
        *,
        hot_bytes: int | None,
        sample_every: int,
        place_every: int,
        count_ids: bool,
    ) -> None:
        sample_every = checked_batches("sample_every", sample_every)
        place_every = checked_batches("place_every", place_every)
        self.memory = RowMemory(num_rows, row_items, dtype, mr)
        self.tensor = self.memory.tensor()
        self.hot_bytes = hot_bytes
        self.own_pool = False  # whether the pool was made for this table alone
        self.sample_every, self.place_every, self.count_ids = sample_every, place_every, count_ids
        device = self.memory.device
        self.order = RowOrder(num_rows, device)
        self.counts = LookupCounts(
            num_rows, self.memory.row_bytes, self.memory.blocks, device, by_row=count_ids
        )
        self._looking = threading.Lock()
        self._batches = self._lookups = self._moved_bytes = self._exchanged_rows = 0
        _tables.add(self)

    def settle(self) -> None:
        """Say what belongs where once all rows are written: on the device, if everything fits."""
        self.memory.settle()
        if self.allowed_bytes() // VA_BLOCK_BYTES >= self.memory.blocks:
            self.place()

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of a batch of ids, and see to it that hot rows are on the device.

        Raises
        ------
        OutOfRangeError
            As `RowOrder.rows`.
        """
        rows = self.order.rows(ids)
        if torch.compiler.is_compiling() or (
            ids.is_cuda and torch.cuda.is_current_stream_capturing()
        ):
            return rows  # a graph that is recorded would count again and again, and place nothing
        if ids.numel() and self._looking.acquire(blocking=False):
            try:
                with torch.no_grad():
                    self._see(ids, rows)
            finally:
                self._looking.release()
        return rows

    def allowed_bytes(self) -> int:
        """Return how much of the table may be on the device, now."""
        pool = self.memory.pool
        others = [one.memory for one in _tables if one is not self and one.memory.pool is pool]
        wanted_bytes = self.hot_bytes
        if wanted_bytes is None:
            wanted_bytes = allowed_bytes(self.memory, sum(one.nbytes for one in others))
        pinned_bytes = sum(len(one.pinned) for one in others) * VA_BLOCK_BYTES
        return min(wanted_bytes, most_pinned_bytes(self.memory, pinned_bytes))

    def place(self, heat: torch.Tensor | None = None, most_moves: int | None = None) -> int:
        """Choose the hot blocks by what was counted, and move; return the bytes told to move."""
        heat = self.counts.heat.cpu() if heat is None else heat
        with _placing:
            room_blocks = self.allowed_bytes() // VA_BLOCK_BYTES
            return self._become(chosen(heat, self.memory.pinned, room_blocks, most_moves))

    def reorder(self, tensors: list[torch.Tensor]) -> int:
        """Put the hottest ids in the first rows, and these on the device; return rows exchanged.

        Parameters
        ----------
        tensors : list of torch.Tensor
            What is ordered by row: the rows themselves, and what an optimiser keeps about them.

        Raises
        ------
        ConfigurationError
            If ids are not counted.
        """
        if self.counts.of_ids is None:
            raise ConfigurationError("count_ids=False: there is nothing to learn an order from")
        with self._looking, _placing, torch.no_grad():
            room_blocks = min(self.allowed_bytes() // VA_BLOCK_BYTES, self.memory.blocks)
            hot_rows = min(room_blocks * VA_BLOCK_BYTES // self.memory.row_bytes, self.num_rows)
            self._become(set(range(room_blocks)))
            outside, inside = exchanged_rows(
                self.order.row_of.cpu(), self.counts.of_ids.cpu(), hot_rows
            )
            if outside.numel():
                for tensor in tensors:
                    exchange_places(tensor, outside, inside)
                self.order.exchange(outside, inside)
                self._exchanged_rows += outside.numel()
            self.counts.recount(self.order.row_of)
            self.place()
            return int(outside.numel())

    def statistics(self) -> HitStatistics:
        """Return how lookups were served; waits for the device."""
        sampled, hits = self.counts.totals()
        missed = (sampled - hits) / sampled if sampled else 0.0
        return HitStatistics(
            lookups=self._lookups,
            sampled_lookups=sampled,
            hit_fraction=hits / sampled if sampled else None,
            link_bytes=int(missed * self._lookups * self.memory.row_bytes),
            hot_bytes=len(self.memory.pinned) * VA_BLOCK_BYTES,
            table_bytes=self.memory.blocks * VA_BLOCK_BYTES,
            moved_bytes=self._moved_bytes,
            exchanged_rows=self._exchanged_rows,
            reason=self.memory.advice_refused,
        )

    def reset_statistics(self) -> None:
        """Begin the statistics anew; what was learnt, and where rows are, stays."""
        self._lookups = self._moved_bytes = 0
        self.counts.reset_totals()

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.memory.shape[0]

    def _see(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        self._batches += 1
        self._lookups += ids.numel()
        if self._batches <= _EAGER_BATCHES or self._batches % self.sample_every == 0:
            self.counts.add(ids, rows)
        if (heat := self.counts.look()) is not None:  # what was asked for a batch ago or more
            self.place(heat, _MOST_MOVES)
        if self._batches % self.place_every == 0 or (
            self._batches < self.place_every and self._batches & (self._batches - 1) == 0
        ):
            self.counts.begin_look()
        self.memory.used(rows)

    def _become(self, wanted: set[int]) -> int:
        if wanted == self.memory.pinned:
            return 0
        moved_bytes = become(self.memory, wanted)
        self.counts.set_resident(self.memory.pinned)
        self._moved_bytes += moved_bytes
        return moved_bytes


def checked_batches(name: str, value: object) -> int:
    """Return a number of batches that can be one.

    Raises
    ------
    ConfigurationError
        If it is no whole number, or below 1.
    """
    number = whole_number(value)
    if number is None or number < 1:
        raise ConfigurationError(f"{name}={shown(value)}: expected a number of batches, > 0")
    return number
