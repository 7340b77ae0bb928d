# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A lease of an exported buffer, and its figures.

Does not cover how it ends; see `rmm_uvm.ipc.pool` and `rmm_uvm.ipc.table`.
"""

from __future__ import annotations

import math
import numbers
import operator
import time
from typing import NamedTuple

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown

__all__ = ["Lease", "checked_readers", "expiry_ns"]

_LONGEST_SECONDS = 86_400.0 * 365


class Lease(NamedTuple):
    """The hold that a handle has which was given out.

    Parameters
    ----------
    nbytes : int
        Length of the buffer, bytes.
    readers : int
        How often it may be opened.
    opened : int
        How often it was.
    open_now : bool
        A reader has it open.
    seconds_left : float
        Until it can be opened no longer; 0 and below once that is so.
    """

    nbytes: int
    readers: int
    opened: int
    open_now: bool
    seconds_left: float


def expiry_ns(lease_seconds: float) -> int:
    """Return when a lease that begins now expires, by `time.monotonic_ns`.

    Raises
    ------
    ConfigurationError
        If it is no number of seconds, or none that ends.
    """
    number = isinstance(lease_seconds, numbers.Real) and not isinstance(lease_seconds, bool)
    try:
        seconds = float(lease_seconds) if number else math.nan
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ConfigurationError(f"lease_seconds={shown(lease_seconds)}: use seconds, > 0")
    return time.monotonic_ns() + int(seconds * 1e9)


def checked_readers(readers: int) -> int:
    """Return how often a handle may be opened.

    Raises
    ------
    ConfigurationError
        If that is no number, 1 or more.
    """
    try:
        count = operator.index(readers)
    except TypeError:
        count = 0
    if isinstance(readers, bool) or not 1 <= count < 2**32:
        raise ConfigurationError(
            f"readers={shown(readers)}: use how often it may be opened, 1 or more"
        )
    return count
