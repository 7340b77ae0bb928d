# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""In which row of its table an id is: hot ids together, so that they fill whole blocks.

Covers the choice of rows to change places, and changing them. Ids of a hashed table are spread
evenly over all blocks, and no block is much hotter than another. What an optimiser keeps about rows
changes places with them, and is saved and loaded in the order of ids, so that a checkpoint is the
same as that of an embedding of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from rmm_uvm.errors import DataError, OutOfRangeError
from rmm_uvm.support.messages import shown

__all__ = ["RowOrder", "check_has", "exchanged_rows", "follow", "state_by_row"]

_CHUNK_BYTES = 64 << 20


def exchanged_rows(
    row_of: torch.Tensor, counts: torch.Tensor, hot_rows: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pairs of rows to change places, after which the hottest ids fill the first rows.

    Parameters
    ----------
    row_of : torch.Tensor
        The row of each id, on the host.
    counts : torch.Tensor
        Lookups of each id, on the host.
    hot_rows : int
        How many rows are first. Ids that were never looked up are left where they are.

    Examples
    --------
    >>> import torch
    >>> pairs = exchanged_rows(torch.arange(6), torch.tensor([0, 1, 0, 0, 5, 7]), hot_rows=2)
    >>> [rows.tolist() for rows in pairs]  # id 1 gives way as well: 4 and 5 are hotter
    [[4, 5], [0, 1]]
    """
    looked_up = counts.nonzero().reshape(-1)
    hottest = counts[looked_up].argsort(descending=True, stable=True)[:hot_rows]
    wanted = row_of[looked_up[hottest]].long()
    taken = torch.zeros(hot_rows, dtype=torch.bool, device="cpu")
    taken[wanted[wanted < hot_rows]] = True
    outside = wanted[wanted >= hot_rows].sort().values
    free = (~taken).nonzero().reshape(-1)[: outside.numel()]
    return outside, free


class RowOrder:
    """The row of each id; at first its own.

    Parameters
    ----------
    num_rows : int
        Of the table.
    device : torch.device
        Where ids are.

    Notes
    -----
    Not thread-safe while rows change places.
    """

    def __init__(self, num_rows: int, device: torch.device) -> None:
        self._num_rows, self._device = num_rows, device
        self._row_of: torch.Tensor | None = None  # takes no memory until something changed places

    @property
    def changed(self) -> bool:
        """Whether any id is elsewhere than in its own row."""
        return self._row_of is not None

    @property
    def row_of(self) -> torch.Tensor:
        """The row of each id."""
        if self._row_of is not None:
            return self._row_of
        kind = torch.int32 if self._num_rows <= 1 << 31 else torch.int64
        return torch.arange(self._num_rows, dtype=kind, device=self._device)

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of ids.

        Raises
        ------
        OutOfRangeError
            If ids are on the host and one is none of the table's. On a GPU the kernel that looks
            them up fails, as torch's own does.
        """
        if not ids.is_cuda and ids.numel():
            for id_ in (int(ids.min()), int(ids.max())):
                if not 0 <= id_ < self._num_rows:
                    raise OutOfRangeError(
                        f"index {id_} is out of range: the table has {self._num_rows} rows, "
                        f"0 to {self._num_rows - 1}"
                    )
        if self._row_of is None:
            return ids
        return self._row_of.index_select(0, ids.reshape(-1)).to(ids.dtype).reshape(ids.shape)

    def exchange(self, outside: torch.Tensor, inside: torch.Tensor) -> None:
        """Note that rows have changed places with others."""
        row_of, id_of = self.row_of.cpu(), self._id_of()
        first, second = id_of[outside], id_of[inside]
        row_of[first] = inside.to(row_of.dtype)
        row_of[second] = outside.to(row_of.dtype)
        self._row_of = row_of.to(self._device)

    def in_id_order(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy on the host of what is ordered by row, ordered by id; sparse as it is."""
        if tensor.is_sparse:
            by_row = tensor.coalesce().cpu()
            ids = self._id_of()[by_row.indices()[0]].unsqueeze(0)
            found = torch.sparse_coo_tensor(ids, by_row.values(), by_row.shape, device="cpu")
            return found.coalesce()
        found = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        for ids in self._pieces(tensor):
            rows = self.row_of[ids].long().to(tensor.device)
            found[ids] = tensor.index_select(0, rows).to("cpu")
        return found

    def in_row_order(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy, where it is, of what is ordered by id, ordered by row."""
        found = torch.empty_like(tensor)
        for ids in self._pieces(tensor):
            found[self.row_of[ids].long().to(tensor.device)] = tensor[ids]
        return found

    def _id_of(self) -> torch.Tensor:
        """Return the id of each row, on the host."""
        id_of = torch.empty(self._num_rows, dtype=torch.int64, device="cpu")
        id_of[self.row_of.cpu().long()] = torch.arange(self._num_rows, device="cpu")
        return id_of

    def _pieces(self, tensor: torch.Tensor) -> Iterator[slice]:
        step = max(_CHUNK_BYTES // max(tensor[0].numel() * tensor.element_size(), 1), 1)
        for first in range(0, self._num_rows, step):
            yield slice(first, min(first + step, self._num_rows))


def exchange_places(tensor: torch.Tensor, outside: torch.Tensor, inside: torch.Tensor) -> None:
    """Have rows of a tensor change places with others, in pieces of at most 64 MiB."""
    step = max(_CHUNK_BYTES // max(tensor[0].numel() * tensor.element_size(), 1), 1)
    for some, others in zip(outside.split(step), inside.split(step), strict=True):
        here, there = some.to(tensor.device), others.to(tensor.device)
        kept = tensor.index_select(0, here)
        tensor.index_copy_(0, here, tensor.index_select(0, there))
        tensor.index_copy_(0, there, kept)


def check_has(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> None:
    """Refuse an optimiser that has nothing to do with the rows.

    Raises
    ------
    DataError
        If it is none, or the weight is none of its parameters.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise DataError(
            f"{shown(optimizer)} is not an optimiser of torch: give those that update it"
        )
    if _number_of(optimizer, weight) is None:
        raise DataError(
            f"{type(optimizer).__name__} does not have this embedding's weight: give the optimiser "
            "that updates it"
        )


def state_by_row(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> list[torch.Tensor]:
    """Return what it keeps for each row: moments, sums of squares."""
    kept = optimizer.state.get(weight, {})
    return [value for value in kept.values() if _is_by_row(value, weight.shape[0])]


def follow(optimizer: torch.optim.Optimizer, weight: torch.Tensor, order: RowOrder) -> None:
    """Have an optimiser save in the order of ids, and load from it; to be called once for each."""
    num_rows = weight.shape[0]

    def changed(document: dict[str, Any], turn: Any) -> dict[str, Any]:
        number = _number_of(optimizer, weight)
        kept = document["state"].get(number)
        if not kept or not order.changed:
            return document
        turned = {
            name: turn(value) if _is_by_row(value, num_rows) else value
            for name, value in kept.items()
        }
        return {**document, "state": {**document["state"], number: turned}}

    def saving(_: object, document: dict[str, Any]) -> dict[str, Any]:
        return changed(document, order.in_id_order)

    def loading(_: object, document: dict[str, Any]) -> dict[str, Any]:
        return changed(document, order.in_row_order)

    optimizer.register_state_dict_post_hook(saving)
    optimizer.register_load_state_dict_pre_hook(loading)


def _number_of(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> int | None:
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    return next((number for number, one in enumerate(parameters) if one is weight), None)


def _is_by_row(value: object, num_rows: int) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and not value.is_sparse
        and value.dim() > 0
        and value.shape[0] == num_rows
    )
