# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whose idle memory a budget may use: what can be asked, and its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes, whole_number
from rmm_uvm.support.variables import setting

__all__ = [
    "LIMIT_VARIABLE",
    "NEIGHBORS_VARIABLE",
    "HarvestLimit",
    "Neighbors",
    "asked_neighbors",
    "check_limited",
    "checked_limit",
    "checked_neighbors",
    "neighbors_for",
    "neighbors_in",
]

NEIGHBORS_VARIABLE: Final = "RMM_UVM_NEIGHBORS"
LIMIT_VARIABLE: Final = "RMM_UVM_HARVEST_LIMIT"

Neighbors: TypeAlias = "str | int | Iterable[int] | None"
"""``"auto"``, one CUDA ordinal, several, or None."""
HarvestLimit: TypeAlias = "int | str | Mapping[int, int | str] | None"
"""A size for each neighbour, or sizes by ordinal."""

_MOST_ORDINAL = 2**31 - 1  # CUDA's ordinals are of C's type int
_MOST_DIGITS = len(str(_MOST_ORDINAL))


def checked_neighbors(value: object, name: str = "neighbors") -> str | tuple[int, ...] | None:
    """Return whose memory may be used: None, "auto", or ordinals, each once.

    Raises
    ------
    ConfigurationError
        If it is something else.

    Examples
    --------
    >>> checked_neighbors([2, 1]), checked_neighbors(1)
    ((2, 1), (1,))
    """
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if (one := _ordinal(value)) is not None:  # YAML and Dask make a number of a single one
        return (one,)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        asked = tuple(value)
        ordinals = tuple(one for one in map(_ordinal, asked) if one is not None)
        if len(set(ordinals)) == len(asked):
            return ordinals
    raise ConfigurationError(
        f"{name}={shown(value)}: use 'auto', CUDA ordinals such as [1, 2], each once, or None"
    )


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
            f"harvest_limit names device {others[0]}, which is no neighbour: neighbors={named}"
        )


def checked_limit(value: object, name: str = "harvest_limit") -> int | dict[int, int] | None:
    """Return the most bytes on each neighbour, or by ordinal.

    Raises
    ------
    ConfigurationError
        If a size cannot be read or is less than a block of 2 MiB, or a key is no ordinal.

    Examples
    --------
    >>> checked_limit("1GiB"), checked_limit({1: "2MiB"})
    (1073741824, {1: 2097152})
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        for key in value:
            if _ordinal(key) is None:
                raise ConfigurationError(f"{name}={shown(value)}: {shown(key)} is no CUDA ordinal")
        return {int(key): _size(one, f"{name}[{key}]") for key, one in value.items()}
    return _size(value, name)


def neighbors_for(
    neighbors: Neighbors, limit: HarvestLimit
) -> tuple[str | tuple[int, ...] | None, int | dict[int, int] | None]:
    """Return what was asked, or what the environment asks where nothing was.

    ``RMM_UVM_NEIGHBORS`` is ``auto``, ``none`` or ordinals with commas; ``RMM_UVM_HARVEST_LIMIT``
    is a size.

    Raises
    ------
    ConfigurationError
        As of `checked_neighbors` and `checked_limit`; a limit without neighbours.
    """
    found: object = neighbors
    name = "neighbors"
    if found is None and (text := setting(NEIGHBORS_VARIABLE)):
        found, name = neighbors_in(text), NEIGHBORS_VARIABLE
    chosen = checked_neighbors(found, name)
    if limit is None and chosen is not None:
        return chosen, checked_limit(setting(LIMIT_VARIABLE) or None, LIMIT_VARIABLE)
    if limit is not None and chosen is None:
        raise ConfigurationError(
            f"harvest_limit={shown(limit)} without neighbours: give neighbors too, 'auto' or "
            "CUDA ordinals"
        )
    return chosen, checked_limit(limit)


def check_neighbor_variables() -> None:
    """Refuse variables that cannot be used, whether or not anybody uses them.

    Raises
    ------
    ConfigurationError
        As of `checked_neighbors` and `checked_limit`.
    """
    if text := setting(NEIGHBORS_VARIABLE):
        checked_neighbors(neighbors_in(text), NEIGHBORS_VARIABLE)
    checked_limit(setting(LIMIT_VARIABLE) or None, LIMIT_VARIABLE)


def neighbors_in(text: str) -> object:
    """Return what a variable or a flag says: "auto", "none", or ordinals with commas."""
    if text.lower() in ("auto", "none"):
        return "auto" if text.lower() == "auto" else None
    parts = [part.strip() for part in text.split(",")]
    # Python makes no number of thousands of digits.
    ordinals = all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts)
    return [int(part) for part in parts] if ordinals else text


def asked_neighbors(text: str | None) -> str | tuple[int, ...] | None:
    """Return what a flag of a command line asks for; None where it was not given.

    Raises
    ------
    ConfigurationError
        As of `checked_neighbors`.
    """
    if text is None:
        return None
    asked = neighbors_in(text.strip())
    if isinstance(asked, str) and asked != "auto":
        raise ConfigurationError(
            f"--neighbors {text}: expected auto, none, or ordinals with commas such as 1,2"
        )
    return checked_neighbors(asked, "--neighbors")


def _size(value: object, name: str) -> int:
    # It refuses what is no size.
    return parse_bytes(value, name, minimum_bytes=VA_BLOCK_BYTES)  # type: ignore[arg-type]


def _ordinal(value: object) -> int | None:
    number = whole_number(value)
    return number if number is not None and 0 <= number <= _MOST_ORDINAL else None
