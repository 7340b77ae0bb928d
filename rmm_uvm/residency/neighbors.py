# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Checks which devices' idle memory a budget may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rmm_uvm.errors import ConfigurationError

__all__ = ["HarvestLimit", "Neighbors", "check_limited"]

Neighbors: TypeAlias = "str | int | Iterable[int] | None"
"""``"auto"``, one CUDA ordinal, several, or None."""
HarvestLimit: TypeAlias = "int | str | Mapping[int, int | str] | None"
"""A size for each neighbour, or sizes by ordinal."""


def check_limited(
    neighbors: str | Iterable[int] | None, limit: int | Mapping[int, int] | None
) -> None:
    """Refuse limits for devices that are not named: they would bind nothing.

    Raises
    ------
    ConfigurationError
        If there is one. With "auto" any device may be found.
    """
    if not isinstance(limit, Mapping) or neighbors is None or isinstance(neighbors, str):
        return
    named = [*neighbors]
    if others := sorted(set(limit) - set(named)):
        raise ConfigurationError(
            f"harvest_limit names device {others[0]}, which is not a neighbour: "
            f"neighbors={named}; leave it out, or name it there too"
        )
