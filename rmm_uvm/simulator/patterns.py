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

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field

from rmm_uvm._lib.model import PATTERN_KINDS
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator.checks import LARGEST_NUMBER, checked_number, checked_whole
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import parse_bytes

PAGE_BYTES = 4096
_MOST_ACCESSES = 2**62 - 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """An access pattern; made by the functions of this module.

    Attributes
    ----------
    kind : str
        Which one: the name of a function, or "random".
    count : int
        Accesses of one page each, 0 to 2^62 - 1; 0 where the range decides.
    stride_bytes : int
        Of `strided`: a multiple of 4 KiB, > 0.
    exponent : float
        Of `zipf`: above 0 and below 100.
    seed : int
        Of those that are random: 0 to 2^64 - 1.
    pages : tuple of int
        Of `recorded`: numbers from 0.

    Raises
    ------
    ConfigurationError
        If there is no such kind, or a value is out of its bounds.
    """

    kind: str
    count: int = 0
    stride_bytes: int = PAGE_BYTES
    exponent: float = 1.1
    seed: int = 0
    pages: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.kind not in PATTERN_KINDS:
            raise ConfigurationError(f"pattern {shown(self.kind)}: use {', '.join(PATTERN_KINDS)}")
        keep = object.__setattr__
        keep(self, "count", checked_whole(self.count, "count", 0, _MOST_ACCESSES))
        keep(self, "seed", checked_whole(self.seed, "seed", 0, LARGEST_NUMBER))
        keep(self, "exponent", checked_number(self.exponent, "exponent", 0, 100, "1.1"))
        stride_bytes = checked_whole(self.stride_bytes, "stride_bytes", 1, 2**63 - 1)
        if stride_bytes % PAGE_BYTES:
            raise ConfigurationError(
                f"stride_bytes={stride_bytes}: use a multiple of 4 KiB, the unit of page faults"
            )
        keep(self, "pages", _listed(self.pages))


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
    return Pattern("strided", stride_bytes=parse_bytes(stride_bytes, name="stride_bytes"))


def random_pages(count: int, *, seed: int = 0) -> Pattern:
    """`count` pages, each as likely as any other."""
    return Pattern("random", count, seed=seed)


def zipf(count: int, *, exponent: float = 1.1, seed: int = 0) -> Pattern:
    """`count` pages, few of them most often: the k-th k^-exponent as often as the first.

    The frequent ones lie scattered over the range.

    Parameters
    ----------
    count : int
        Accesses, >= 0.
    exponent : float
        Above 0 and below 100.
    seed : int
        0 to 2^64 - 1.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.
    """
    return Pattern("zipf", count, exponent=exponent, seed=seed)


def pointer_chase(count: int, *, seed: int = 0) -> Pattern:
    """`count` pages along a cycle through all, far apart; the next is known when one has come.

    Such a kernel has one fault outstanding.
    """
    return Pattern("pointer_chase", count, seed=seed)


def hash_join_probe(count: int, *, seed: int = 0) -> Pattern:
    """`count` buckets of a hash table, each as likely as any other, a few across two pages.

    The rows that are probed with are another access of the kernel, sequential.
    """
    return Pattern("hash_join_probe", count, seed=seed)


def recorded(pages: Iterable[int]) -> Pattern:
    """Pages as listed.

    Parameters
    ----------
    pages : iterable of int
        Page numbers within the range, from 0. Those past its end are refused by the kernel.
    """
    listed = tuple(pages)
    return Pattern("recorded", len(listed), pages=listed)


def _listed(pages: Iterable[int]) -> tuple[int, ...]:
    # There may be millions: checked together.
    try:
        listed = tuple(map(operator.index, pages))
    except TypeError:
        raise ConfigurationError(f"pages={shown(pages)}: list whole numbers of pages") from None
    if listed and min(listed) < 0:
        raise ConfigurationError(f"page {min(listed)}: pages are numbered from 0")
    return listed
