# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The base of both managed embeddings: a table, and torch's module around it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import rmm
import torch

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.pool.build import build_pool
from rmm_uvm.pool.install import current_installation
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes, whole_number
from rmm_uvm.torch.embeddings.lookup_counts import HitStatistics
from rmm_uvm.torch.embeddings.row_order import check_has, follow, state_by_row
from rmm_uvm.torch.embeddings.row_table import RowTable, checked_batches

__all__ = ["ManagedModule", "table_for"]

_ID_TYPES = (torch.int32, torch.int64)


def table_for(
    num_embeddings: object,
    embedding_dim: object,
    *,
    device: torch.device | str | int | None,
    dtype: torch.dtype | None,
    mr: rmm.mr.DeviceMemoryResource | None,
    driver: UvmDriver | str | None,
    hot_bytes: int | str | None,
    **settings: Any,
) -> RowTable:
    """Return the table of an embedding that is made; see `ManagedEmbedding` for what is raised."""
    shape = []
    for name, value in {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim}.items():
        number = whole_number(value)
        if number is None or number < 1:
            raise ConfigurationError(f"{name}={shown(value)}: expected a whole number, > 0")
        shape.append(number)
    num_rows, row_items = shape
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ConfigurationError(f"dtype={shown(dtype)}: rows are of floating-point numbers")
    if hot_bytes is not None and hot_bytes != 0:
        hot_bytes = parse_bytes(hot_bytes, name="hot_bytes")
    pool = _pool_given(mr, driver)
    own_pool = pool is None
    if pool is None:
        pool = _pool_of_its_own(driver, num_rows * row_items * dtype.itemsize)
    info = managed_pools(pool)[0].driver.info
    place = "cpu" if info.simulated else f"cuda:{info.device_id}"
    if device is None and torch.get_default_device().type == "meta":
        device = "meta"  # of a ``with torch.device("meta")``
    if device is not None:
        wanted = torch.device(device)
        if wanted.type != torch.device(place).type or wanted.index not in (None, info.device_id):
            raise ConfigurationError(
                f"device={shown(str(wanted))}: the pool is of {info.name}, and its rows are used "
                f"on {place}; leave device out, or give mr= of another device"
            )
    table = RowTable(num_rows, row_items, dtype, pool, hot_bytes=hot_bytes, **settings)
    table.own_pool = own_pool
    return table


def _pool_given(
    mr: rmm.mr.DeviceMemoryResource | None, driver: UvmDriver | str | None
) -> rmm.mr.DeviceMemoryResource | None:
    """Return the pool that was given, or the installed one; None where there is neither."""
    if mr is not None:
        if driver is not None:
            raise ConfigurationError("driver= and mr=: a pool has its driver; give one of the two")
        # Raises where it is none. A table needs one: the switch that is off keeps none from it.
        return mr if managed_pools(mr) else None
    if driver is None and current_installation() is not None:
        return managed_pools()[0]
    return None


def _pool_of_its_own(
    driver: UvmDriver | str | None, table_bytes: int
) -> rmm.mr.DeviceMemoryResource:
    """Return a pool that holds one table and nothing else."""
    whole_bytes = (-(-table_bytes // VA_BLOCK_BYTES) + 1) * VA_BLOCK_BYTES
    pool = build_pool(
        initial_pool_size=whole_bytes,
        maximum_pool_size=whole_bytes,
        driver=driver,
        device_budget=None,
    )
    return UvmResourceAdaptor(pool, prefetch="auto")


class ManagedModule(torch.nn.Module):
    """A module of torch whose `weight` is a table in managed memory; see `ManagedEmbedding`."""

    weight: torch.nn.Parameter
    padding_idx: int | None
    _table: RowTable
    _padding_row: int | None
    _followed: weakref.WeakSet[torch.optim.Optimizer]

    def _adopt(self, table: RowTable, values: torch.Tensor | None) -> None:
        """Use a table whose tensor is the weight; fill it with values, or as torch does."""
        self._table = table
        self._followed = weakref.WeakSet()
        self._padding_row = self.padding_idx
        self._where = self.weight.data_ptr()
        if values is None:
            self.reset_parameters()
        elif values.shape != self.weight.shape:
            raise ConfigurationError(
                f"_weight has the shape {tuple(values.shape)}: expected {tuple(self.weight.shape)}"
            )
        else:
            self._fill_from(values.detach())
        table.settle()

    def hit_statistics(self) -> HitStatistics:
        """Return how lookups were served: shares of hits, bytes through the link, hot bytes.

        Returns
        -------
        HitStatistics
            A copy. Prints as text.

        Notes
        -----
        Waits for the device. Thread-safe.
        """
        return self._table.statistics()

    @property
    def sample_every(self) -> int:
        """One of so many batches is counted. Set it to 1 to learn an order from fewer batches."""
        return self._table.sample_every

    @sample_every.setter
    def sample_every(self, batches: int) -> None:
        self._table.sample_every = checked_batches("sample_every", batches)

    def reset_statistics(self) -> None:
        """Begin the statistics anew; what was learnt, and where rows are, stays."""
        self._table.reset_statistics()

    def place(self) -> int:
        """Choose the hot blocks now, by what was counted; return the bytes that were told to move.

        It happens by itself, a few batches after it is due; call it before a measurement.
        """
        return self._table.place()

    def reorder(self, *optimizers: torch.optim.Optimizer) -> int:
        """Put the ids that were looked up most together, so that they fill whole blocks.

        Parameters
        ----------
        *optimizers : torch.optim.Optimizer
            All that update this embedding: what they keep for each row moves along. They save and
            load in the order of ids from then on.

        Returns
        -------
        int
            Rows that changed places with as many others.

        Raises
        ------
        ConfigurationError
            If ids are not counted.
        DataError
            If there is a gradient, which is of the old order: call it after ``zero_grad``; or if an
            optimiser does not have this weight.

        Notes
        -----
        For a quiet moment: no other thread may use the module, and the rows that change places move
        through the link. Afterwards ``weight`` is in the order of rows; lookups, ``state_dict`` and
        loading go by ids as before. `in_id_order` translates.
        """
        if self.weight.grad is not None:
            raise DataError("there is a gradient, in the old order: call zero_grad() before")
        self.follow(*optimizers)
        kept = [tensor for one in optimizers for tensor in state_by_row(one, self.weight)]
        count = self._table.reorder([self.weight.data, *kept])
        if self.padding_idx is not None and count:
            self._padding_row = int(self._table.order.row_of[self.padding_idx])
        return count

    def follow(self, *optimizers: torch.optim.Optimizer) -> None:
        """Have optimisers save in the order of ids, where they are made after `reorder`.

        Raises
        ------
        DataError
            If one does not have this weight.
        """
        for optimizer in optimizers:
            check_has(optimizer, self.weight)
        for optimizer in optimizers:
            if optimizer not in self._followed:
                follow(optimizer, self.weight, self._table.order)
                self._followed.add(optimizer)

    def in_id_order(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy on the host, by id, of what is by row: the weight, or a gradient."""
        return self._table.order.in_id_order(tensor.detach())

    def _rows(self, ids: torch.Tensor) -> torch.Tensor:
        if self.weight.data_ptr() != self._where:
            raise DataError(
                "the weight of this embedding was replaced: its rows are in managed memory; use "
                "weight.data.copy_ or load_state_dict"
            )
        if not isinstance(ids, torch.Tensor) or ids.dtype not in _ID_TYPES:
            what = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
            raise DataError(f"ids are of {what}: expected a tensor of int32 or int64")
        return self._table.rows(ids)

    def _fill(self, write: Callable[[torch.Tensor, slice], object]) -> None:
        """Write all rows, piece by piece, each on the device meanwhile."""
        with torch.no_grad():
            for rows in self._table.memory.chunks():
                write(self.weight.data[rows], rows)

    def _fill_from(self, values: torch.Tensor) -> None:
        order = self._table.order
        self._fill_by_row(order.in_row_order(values) if order.changed else values)

    def _fill_by_row(self, values: torch.Tensor) -> None:
        self._fill(lambda piece, rows: piece.copy_(values[rows]))

    def reset_parameters(self) -> None:
        """Fill with random numbers, as torch's embedding does; the padding row with zeros."""
        self._fill(lambda piece, rows: piece.normal_())
        if self._padding_row is not None:
            with torch.no_grad():
                self.weight[self._padding_row].fill_(0)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:  # noqa: FBT001
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._table.order.changed:
            destination[prefix + "weight"] = self.in_id_order(self.weight)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        values = state_dict.get(prefix + "weight")
        if isinstance(values, torch.Tensor) and values.shape == self.weight.shape:
            self._fill_from(values.detach())
            # What is left to do about it, whether it is copied or assigned, is nothing.
            state_dict = {**state_dict, prefix + "weight": self.weight}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], *rest: Any, **words: Any) -> Any:
        """Change what torch's ``to`` and its kin change, without a second table beside this one."""
        weight = self.weight
        probe = fn(torch.empty(0, dtype=weight.dtype, device=weight.device))
        if probe.device != weight.device:
            raise ConfigurationError(
                f"{type(self).__name__} cannot go to {probe.device}: its rows are in managed "
                f"memory used on {weight.device}; load its state_dict into a torch.nn.Embedding"
            )
        if probe.dtype != weight.dtype:
            self._convert(probe.dtype)
        grad, weight.grad = weight.grad, None
        if grad is not None:
            weight.grad = fn(grad)
        others = {**self._parameters}
        del self._parameters["weight"]
        try:
            super()._apply(fn, *rest, **words)
        finally:
            self._parameters.update({**others, **self._parameters, "weight": weight})
        return self

    def _convert(self, dtype: torch.dtype) -> None:
        old, before = self._table, self.weight.data
        mr = old.memory.mr
        if old.own_pool:  # it holds this table only
            mr = _pool_of_its_own(old.memory.driver, before.numel() * dtype.itemsize)
        table = RowTable(
            *old.memory.shape,
            dtype,
            mr,
            hot_bytes=old.hot_bytes,
            sample_every=old.sample_every,
            place_every=old.place_every,
            count_ids=old.count_ids,
        )
        table.order, table.own_pool = old.order, old.own_pool
        if table.counts.of_ids is not None and old.counts.of_ids is not None:
            table.counts.of_ids.copy_(old.counts.of_ids)
        table.counts.recount(table.order.row_of)
        self._table = table
        self.weight.data = table.tensor
        self._where = self.weight.data_ptr()
        self._fill_by_row(before)
        del old, before  # and with them what they have on the device
        table.settle()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            f"{type(self).__name__} can be neither copied nor pickled, as its memory is a pool's: "
            "save its state_dict"
        )
