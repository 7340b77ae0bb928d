# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""In what order a simulated kernel goes over memory: access patterns, as values.

All count in pages of 4 KiB, the unit in which a GPU faults. What is random is drawn by a generator
of our own, so that equal seeds give equal pages everywhere.

Examples
--------
>>> from rmm_uvm.simulator import zipf
>>> zipf(1_000_000, exponent=1.2, seed=7)
Pattern(kind='zipf', count=1000000, stride_bytes=4096, exponent=1.2, seed=7)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.units import parse_bytes

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Pattern:
    """An access pattern; made by the functions of this module.

    Attributes
    ----------
    kind : str
        Which one.
    count : int
        Accesses of one page each; 0 where the range decides.
    stride_bytes : int
        Of `strided`.
    exponent : float
        Of `zipf`.
    seed : int
        Of those that are random.
    pages : tuple of int
        Of `recorded`.
    """

    kind: str
    count: int = 0
    stride_bytes: int = PAGE_BYTES
    exponent: float = 1.1
    seed: int = 0
    pages: tuple[int, ...] = field(default=(), repr=False)


def sequential() -> Pattern:
    """Every page of the range once, upwards: as kernels that stream over an array do."""
    return Pattern("sequential")


def strided(stride_bytes: int | str) -> Pattern:
    """Every page of the range once, in steps: column by column over rows.

    Parameters
    ----------
    stride_bytes : int or str
        Step, a multiple of 4 KiB, > 0, such as "64KiB". After the end comes the page after the
        one that the last round began with.

    Raises
    ------
    ConfigurationError
        If it is none.
    """
    parsed_bytes = parse_bytes(stride_bytes, name="stride_bytes")
    if parsed_bytes <= 0 or parsed_bytes % PAGE_BYTES:
        raise ConfigurationError(
            f"stride_bytes={stride_bytes!r}: use a multiple of 4 KiB, the unit of page faults"
        )
    return Pattern("strided", stride_bytes=parsed_bytes)


def random_pages(count: int, *, seed: int = 0) -> Pattern:
    """`count` pages, each as likely as any other."""
    return Pattern("random", _counted(count), seed=_seeded(seed))


def zipf(count: int, *, exponent: float = 1.1, seed: int = 0) -> Pattern:
    """`count` pages, few of them most often: the k-th k^-exponent as often as the first.

    The frequent ones lie scattered over the range.

    Parameters
    ----------
    count : int
        Accesses, >= 0.
    exponent : float
        > 0.
    seed : int
        0 to 2^64 - 1.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.
    """
    if not 0 < exponent < 100:
        raise ConfigurationError(f"exponent={exponent!r}: use a number above 0, such as 1.1")
    return Pattern("zipf", _counted(count), exponent=float(exponent), seed=_seeded(seed))


def pointer_chase(count: int, *, seed: int = 0) -> Pattern:
    """`count` pages along a cycle through all, far apart; the next is known when one has come.

    Such a kernel has one fault outstanding.
    """
    return Pattern("pointer_chase", _counted(count), seed=_seeded(seed))


def hash_join_probe(count: int, *, seed: int = 0) -> Pattern:
    """`count` buckets of a hash table, each as likely as any other, a few across two pages.

    The rows that are probed with are another access of the kernel, sequential.
    """
    return Pattern("hash_join_probe", _counted(count), seed=_seeded(seed))


def recorded(pages: Iterable[int]) -> Pattern:
    """Pages as listed.

    Parameters
    ----------
    pages : iterable of int
        Page numbers within the range, from 0. Those past its end are refused by the kernel.
    """
    listed = tuple(int(page) for page in pages)
    if any(page < 0 for page in listed):
        raise ConfigurationError(f"page {min(listed)}: pages are numbered from 0")
    return Pattern("recorded", len(listed), pages=listed)


def _counted(count: int) -> int:
    if not 0 <= count < 1 << 62:
        raise ConfigurationError(f"count={count!r}: use a number of accesses, 0 or more")
    return int(count)


def _seeded(seed: int) -> int:
    if not 0 <= seed < 1 << 64:
        raise ConfigurationError(f"seed={seed!r}: use a number from 0 to 2^64 - 1")
    return int(seed)
