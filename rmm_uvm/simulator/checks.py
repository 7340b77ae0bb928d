# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of what the simulator is given: one message for every number that cannot be used.

Numbers travel through C, where what is too large becomes something else; so they are checked here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown

__all__ = [
    "LARGEST_NUMBER",
    "checked_links",
    "checked_number",
    "checked_seconds",
    "checked_stream",
    "checked_whole",
    "shown_address",
]

LARGEST_NUMBER = 2**64 - 1
"""Of addresses, streams and seeds."""

_MOST_SECONDS = 1e9


def checked_whole(value: object, name: str, least: int, most: int) -> int:
    """Return a whole number within its bounds, both included.

    Raises
    ------
    ConfigurationError
        If it is none (a boolean is none either), or out of bounds.

    Examples
    --------
    >>> checked_whole(2, "gpus", 1, 8)
    2
    """
    if type(value) is int and least <= value <= most:  # the usual case, in every call
        return value
    # Not asked first: an `isinstance` of a protocol takes as long as the model does for a call.
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = operator.index(value)
        if least <= number <= most:
            return number
    raise ConfigurationError(f"{name}={shown(value)}: use a whole number, {least} to {most}")


def checked_links(links: Iterable[object] | None, gpus: int) -> list[int]:
    """Return the link of each GPU; none where none are named. Raises as `checked_whole`."""
    if links is None:
        return []
    listed = [checked_whole(link, "link", 0, gpus - 1) for link in links]
    if len(listed) != gpus:
        raise ConfigurationError(
            f"links={shown(listed)}: name for each of {gpus} GPUs a link, 0 to {gpus - 1}"
        )
    return listed


def checked_number(value: object, name: str, least: float, most: float, example: str) -> float:
    """Return a number above `least` and below `most`; errors as in `checked_whole`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and least < value < most:
        return float(value)
    raise ConfigurationError(
        f"{name}={shown(value)}: use a number above {least:g} and below {most:g}, such as {example}"
    )


def checked_seconds(value: object, name: str) -> float:
    """Return a time, 0 to 10^9 seconds; errors as in `checked_whole`."""
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value < _MOST_SECONDS
    ):
        return float(value)
    raise ConfigurationError(f"{name}={shown(value)}: use seconds, 0 or more and below 1e9")


def checked_stream(stream: object) -> int:
    """Return the number of a stream, 0 to 2^64 - 1; errors as in `checked_whole`."""
    return checked_whole(stream, "stream", 0, LARGEST_NUMBER)


def shown_address(address: object) -> str:
    """Return an address as a message shows it, whatever it is."""
    return hex(address) if isinstance(address, int) else shown(address)
