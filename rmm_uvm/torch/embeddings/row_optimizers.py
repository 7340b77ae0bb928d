# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What an optimiser keeps about the rows of a table, where rows change places.

Covers finding it, and saving and loading it in the order of ids, so that a checkpoint is the same
as that of an embedding of torch.
"""

from __future__ import annotations

from typing import Any

import torch

from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown
from rmm_uvm.torch.embeddings.row_order import RowOrder

__all__ = ["check_has", "follow", "state_by_row"]


def check_has(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> None:
    """Refuse an optimiser that has nothing to do with the rows.

    Raises
    ------
    DataError
        If it is none, or the weight is none of its parameters.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise DataError(f"{shown(optimizer)} is no optimiser of torch: give those that update it")
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
