# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fewer samples that draw the same picture: no peak and no low is lost.

A screen has about a thousand columns, a day of samples tens of thousands of rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Averages", "averaged", "thinned"]


@dataclasses.dataclass(frozen=True)
class Averages:
    """Rates over intervals that are longer than that of sampling.

    Parameters
    ----------
    seconds : ndarray of float, shape (n_intervals,)
        Ends of the intervals; each begins where the one before it ends, the first at 0.
    mean, highest : mapping of str to ndarray of float, shape (n_intervals,)
        By name: the average, so that an area is still a number of bytes, and the most of any
        sample. NaN where nothing is known.
    """

    seconds: NDArray[np.float64]
    mean: Mapping[str, NDArray[np.float64]]
    highest: Mapping[str, NDArray[np.float64]]


def averaged(
    seconds: NDArray[np.float64], rates: Mapping[str, NDArray[np.float64]], n_buckets: int
) -> Averages:
    """Return averages and peaks of rates over `n_buckets` intervals; as they are if there are few.

    Parameters
    ----------
    seconds : ndarray of float, shape (n_samples,)
        Times, not descending.
    rates : mapping of str to ndarray of float, shape (n_samples,)
        Each is the rate since the sample before; NaN where it is not known.
    n_buckets : int
        At least 1.
    """
    if len(seconds) <= 2 * n_buckets:
        return Averages(seconds, rates, rates)
    elapsed = np.diff(seconds, prepend=0.0)
    length = max(float(seconds[-1]), 1e-12)
    bucket = np.ceil(seconds * (n_buckets / length)).astype(int)
    first = np.searchsorted(bucket, np.unique(bucket), side="left")
    ends = seconds[np.append(first[1:], len(seconds)) - 1]
    mean, highest = {}, {}
    for name, rate in rates.items():
        known = ~np.isnan(rate)
        moved = np.add.reduceat(np.where(known, rate * elapsed, 0.0), first)
        time = np.add.reduceat(np.where(known, elapsed, 0.0), first)
        mean[name] = np.divide(moved, time, out=np.full(len(time), np.nan), where=time > 0)
        highest[name] = np.fmax.reduceat(rate, first)
    return Averages(ends, mean, highest)


def thinned(
    seconds: NDArray[np.float64],
    columns: Sequence[NDArray[np.float64]],
    n_buckets: int,
    keep_seconds: Sequence[float] = (),
) -> NDArray[np.intp]:
    """Return which samples to keep, in order.

    Time is cut into buckets of equal length. Of each are kept the first sample, the last, and for
    every column the least and the greatest value; so all columns keep their extremes, and the line
    through what is kept covers the same pixels.

    Parameters
    ----------
    seconds : ndarray of float, shape (n_samples,)
        Times, not descending.
    columns : sequence of ndarray of float, shape (n_samples,)
        Values; NaN where one is not known.
    n_buckets : int
        At least 1.
    keep_seconds : sequence of float
        Times at which something else happened: the samples before and after each are kept.

    Returns
    -------
    ndarray of int, shape (n_kept,)
        Positions, ascending; all of them if there are few.

    Examples
    --------
    >>> import numpy as np
    >>> times = np.arange(1000.0)
    >>> values = np.zeros(1000)
    >>> values[777] = 1.0
    >>> kept = thinned(times, [values], 10)
    >>> len(kept) < 50, 777 in kept
    (True, True)
    """
    n_samples = len(seconds)
    if n_samples <= n_buckets * (2 + 2 * len(columns)):
        return np.arange(n_samples)
    length = max(float(seconds[-1] - seconds[0]), 1e-12)
    bucket = np.minimum((seconds - seconds[0]) * (n_buckets / length), n_buckets - 1).astype(int)
    first = np.searchsorted(bucket, np.unique(bucket), side="left")
    last = np.append(first[1:], n_samples) - 1
    kept = [first, last]
    for column in columns:
        kept += _extremes(column, bucket, first, last)
    if len(keep_seconds):
        after = np.searchsorted(seconds, np.asarray(keep_seconds, dtype=np.float64))
        kept += [np.clip(after - 1, 0, n_samples - 1), np.clip(after, 0, n_samples - 1)]
    return np.unique(np.concatenate(kept))


def _extremes(
    column: NDArray[np.float64],
    bucket: NDArray[np.int_],
    first: NDArray[np.intp],
    last: NDArray[np.intp],
) -> list[Any]:
    """Return the positions of the least and of the greatest value in every bucket."""
    # Sorted by bucket, then by value: a bucket's least is at its first place, its greatest at its
    # last. What is not known must be neither.
    low = np.lexsort((np.nan_to_num(column, nan=np.inf, posinf=np.inf), bucket))
    high = np.lexsort((np.nan_to_num(column, nan=-np.inf, neginf=-np.inf), bucket))
    return [low[first], high[last]]
