# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A line of small bars: the last minute in a few characters."""

from __future__ import annotations

from collections.abc import Iterable

from rmm_uvm.top.track import HISTORY_SECONDS

__all__ = ["sparkline"]

_BARS = " ▁▂▃▄▅▆▇█"
_BARS_ASCII = " .:-=+*#"


def sparkline(
    history: Iterable[tuple[float, float]], width: int, *, plain_ascii: bool = False
) -> str:
    """Return bars, oldest first, the highest as high as the busiest moment.

    Parameters
    ----------
    history : iterable of (float, float)
        Age in seconds, 0 now, and a rate, >= 0.
    width : int
        Characters for the last minute, > 0. Each shows the highest rate in its share.
    plain_ascii : bool
        For terminals without UTF-8.

    Examples
    --------
    >>> sparkline([(59.0, 1.0), (31.0, 0.0), (1.0, 8.0)], 4)
    '▁  █'
    """
    most = [0.0] * width
    for age_seconds, rate in history:
        place = width - 1 - int(age_seconds / HISTORY_SECONDS * width)
        if 0 <= place < width:
            most[place] = max(most[place], rate)
    bars = _BARS_ASCII if plain_ascii else _BARS
    highest = max(most, default=0.0)
    steps = len(bars) - 1
    # Anything that moved is seen: only nothing is a blank.
    return "".join(
        bars[max(1, round(rate / highest * steps))] if rate > 0 else bars[0] for rate in most
    )
