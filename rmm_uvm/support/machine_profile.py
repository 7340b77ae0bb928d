# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A machine as the model knows it: its rates and times, each with the place where it was found.

Covers one machine's values, and what a value of each may be. Does not cover files (see
`rmm_uvm.support.machine_files`), nor measuring (see `rmm_uvm.simulator.measuring`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import parse_bytes

__all__ = ["CHANGED_SOURCE", "CONSTANTS", "NAME_PATTERN", "Constant", "Machine", "ThirdTier"]

# Sizes travel through C as unsigned 64-bit integers.
_MAXIMUM_BYTES = 2**63 - 1

# Wide bounds, which leave room for machines to come and for what-ifs. Past them a file is wrong,
# and times would sum up to infinity, or millions of pages would wait.
_SLOWEST_BYTES_PER_NS, _FASTEST_BYTES_PER_NS = 1e-3, 1e9  # 1 MB/s; as good as no time
_LONGEST_NS = 1e9  # a second for one operation
_FEWEST_BLOCKS, _MOST_BLOCKS = 1e-3, 1e6
_LEAST_DUPLEX_FRACTION = 0.01
_MOST_DUPLICATES_FRACTION = 100.0
_MAXIMUM_COUNT = 2**20


@dataclass(frozen=True)
class Constant:
    """One constant of a machine profile.

    Attributes
    ----------
    name : str
        The same in C++ (``machine_profile``), in machine files and in `Machine`.
    unit : str
        "bytes", "bytes/ns", "ns", "blocks", "fraction", "pages" or "faults".
    meaning : str
        One line.
    is_whole : bool
        The value is an integer.
    minimum, maximum : float
        Smallest and largest value.
    may_be_zero : bool
        0 is a value, too: something takes no time, or does not exist.
    """

    name: str
    unit: str
    meaning: str
    minimum: float
    maximum: float
    is_whole: bool = False
    may_be_zero: bool = False

    def problem(self, value: object) -> str:
        """Return why `value` cannot be this constant's; "" if it can."""
        wanted = self._wanted()
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{shown(value)} is not a number: expected {wanted}"
        # Written so that NaN, which compares false with everything, is refused too.
        is_within = self.minimum <= value <= self.maximum or (self.may_be_zero and value == 0)
        if not is_within:
            return f"{shown(value)}: expected {wanted}"
        if self.is_whole and value != int(value):
            return f"{shown(value)}: expected {wanted}"
        return ""

    def converted(self, value: float) -> float:
        """Return a valid value as an integer or a float, as the constant is."""
        return int(value) if self.is_whole else float(value)

    def _wanted(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        zero = "0 or " if self.may_be_zero and self.minimum > 0 else ""
        return f"{zero}{kind} >= {self.minimum:g} and <= {self.maximum:g}, in {self.unit}"


def _rate(name: str, meaning: str, *, may_be_zero: bool = False) -> Constant:
    bounds = (_SLOWEST_BYTES_PER_NS, _FASTEST_BYTES_PER_NS)
    return Constant(name, "bytes/ns", meaning, *bounds, may_be_zero=may_be_zero)


def _time(name: str, meaning: str) -> Constant:
    return Constant(name, "ns", meaning, 0.0, _LONGEST_NS)


def _count(name: str, unit: str, meaning: str) -> Constant:
    return Constant(name, unit, meaning, 1, _MAXIMUM_COUNT, is_whole=True)


_ALL = (
    Constant(
        *("device_bytes", "bytes", "device memory for programs"),
        *(1, _MAXIMUM_BYTES),
        is_whole=True,
    ),
    _rate("memory_bytes_per_ns", "kernel reading resident memory"),
    _rate("to_device_bytes_per_ns", "copy engine, host to device, one large copy"),
    _rate("to_host_bytes_per_ns", "copy engine, device to host, one large copy"),
    _time("copy_ns", "added by each copy of contiguous pages that somebody waits for"),
    Constant(
        "duplex_fraction",
        "fraction",
        "rate of a direction while the other is busy too, of its rate alone",
        *(_LEAST_DUPLEX_FRACTION, 1.0),
    ),
    _rate("remote_bytes_per_ns", "kernel reading host memory through a mapping"),
    _rate("peer_bytes_per_ns", "migration between two GPUs; 0: no peer access", may_be_zero=True),
    _rate(
        "peer_remote_bytes_per_ns",
        "kernel reading a peer's memory through a mapping; 0: no peer access",
        may_be_zero=True,
    ),
    _time("call_ns", "a prefetch or discard call itself"),
    _time("deferred_call_ns", "a prefetch call behind a busy stream"),
    _time("block_to_device_ns", "migrate a block to the device, beside its copy"),
    _time("block_to_host_ns", "migrate a block to the host, its host pages there, beside its copy"),
    _time("discarded_to_host_ns", "the same with a block that was discarded: nothing is copied"),
    _time("host_page_ns", "each 4 KiB page of host memory that is taken first"),
    _time("resident_block_ns", "a block that a prefetch finds resident, each pass"),
    _time("populate_block_ns", "fresh device memory without a copy, zeroed"),
    _time("refill_block_ns", "device memory that the block kept, contents dead"),
    _time("discard_block_ns", "a block of a discard"),
    _time("discarded_block_ns", "a block on the host that one call discards and prefetches"),
    _time("prefetch_ramp_ns", "what a call to the device takes more than its blocks, at most"),
    Constant(
        *("prefetch_ramp_blocks", "blocks", "blocks after which 63 % of that are reached"),
        *(_FEWEST_BLOCKS, _MOST_BLOCKS),
    ),
    _time("batch_ns", "a batch of GPU faults: interrupt, fetch, replay"),
    _time("fault_ns", "each fault of a batch, duplicates too"),
    _time("fault_block_ns", "each block that a batch touches"),
    _time("unmap_ns", "each of these whose host pages must be unmapped"),
    Constant(
        "duplicate_fraction",
        "fraction",
        "faults reported again, of the distinct ones",
        *(0.0, _MOST_DUPLICATES_FRACTION),
    ),
    _count("outstanding_faults", "pages", "distinct pages that a kernel faults on, then it stalls"),
    _count("batch_faults", "faults", "entries of a batch at most"),
    _time("discarded_fault_ns", "a 4 KiB page written after a discard without a prefetch"),
    _time("cpu_fault_ns", "a fault of the CPU on a page of the device"),
    _time("allocate_managed_ns", "cudaMallocManaged"),
    _time("free_managed_ns", "cudaFree of it"),
    _time("allocate_device_ns", "cudaMalloc"),
    _time("free_device_ns", "cudaFree of it"),
    _time("launch_ns", "a kernel launch"),
)

CONSTANTS: Mapping[str, Constant] = MappingProxyType({one.name: one for one in _ALL})
"""Every constant by name, in the order of the files."""


CHANGED_SOURCE = "set by the program"
"""Source of a constant that `Machine.replace` gave another value."""

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a machine may be called: its name is that of its file, too."""


_OF_TIER = (
    Constant(
        *("capacity_bytes", "bytes", "memory behind the host's"),
        *(1, _MAXIMUM_BYTES),
        is_whole=True,
    ),
    _rate("read_bytes_per_ns", "from it to the host's memory"),
    _rate("write_bytes_per_ns", "to it from the host's memory"),
    _time("operation_ns", "each read or write of pages of a block, before their bytes"),
)


@dataclass(frozen=True)
class ThirdTier:
    """Storage behind a host's memory, such as an SSD; the oldest data go there from a full host.

    Parameters
    ----------
    capacity_bytes : int
        How much it holds, > 0.
    read_bytes_per_ns, write_bytes_per_ns : float
        Rates to the host's memory and from it, bytes per nanosecond (GB/s), > 0.
    operation_ns : float
        What each read or write takes besides, >= 0.
    source : str
        Where the values come from.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.

    Examples
    --------
    >>> from rmm_uvm.simulator import ThirdTier
    >>> ThirdTier.named("2TB@6.8/4.0/80us").operation_ns
    80000.0
    """

    capacity_bytes: int
    read_bytes_per_ns: float
    write_bytes_per_ns: float
    operation_ns: float = 0.0
    source: str = CHANGED_SOURCE

    def __post_init__(self) -> None:
        for constant in _OF_TIER:
            value = getattr(self, constant.name)
            if problem := constant.problem(value):
                raise ConfigurationError(f"third tier: {constant.name}={problem}")
            object.__setattr__(self, constant.name, constant.converted(value))

    @classmethod
    def named(cls, text: str) -> ThirdTier:
        """Return what ``SIZE@READ/WRITE`` means, or ``SIZE@READ/WRITE/80us``; rates are GB/s.

        Raises
        ------
        ConfigurationError
            If it means nothing.
        """
        found = _TIER_PATTERN.fullmatch(text)
        if found is None:
            raise ConfigurationError(
                f"third_tier={shown(text)}: SIZE@READ/WRITE in GB/s and, if known, what an "
                "operation takes, such as 2TB@6.8/4.0 or 2TB@6.8/4.0/80us"
            )
        size, read, write, micros = found.groups()
        return cls(
            parse_bytes(size, "third_tier"), float(read), float(write), float(micros or 0) * 1000
        )

    def constants(self) -> dict[str, float]:
        """Return every value of the model by name."""
        return {one.name: getattr(self, one.name) for one in _OF_TIER}


_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_TIER_PATTERN = re.compile(rf"([^@]+)@{_NUMBER}/{_NUMBER}(?:/{_NUMBER}us)?")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine profile. Rates are bytes per nanosecond (GB/s), times nanoseconds.

    Attributes
    ----------
    name : str
        1 to 64 letters, digits, ``.``, ``_`` and ``-``.
    gpu, link : str
        What it is, in words.
    measured : bool
        The constants were measured on such a machine for this model. Otherwise they are
        published figures, and those of another machine where none are published.
    description, date, driver : str
        What stands for it, when, and on which driver; may be empty.
    sources : mapping of str to str
        Where each constant's value comes from, by its name.
    third_tier : ThirdTier or None
        What lies behind the host's memory, for runs that limit that.
    device_bytes ... launch_ns
        The constants; `CONSTANTS` has their meanings.

    Raises
    ------
    ConfigurationError
        If a constant is out of its bounds, or the name is none.

    Notes
    -----
    Immutable, so safe in any thread.
    """

    name: str
    gpu: str
    link: str
    measured: bool
    description: str = ""
    date: str = ""
    driver: str = ""
    sources: Mapping[str, str] = field(hash=False, repr=False)
    third_tier: ThirdTier | None = None

    device_bytes: int
    memory_bytes_per_ns: float
    to_device_bytes_per_ns: float
    to_host_bytes_per_ns: float
    copy_ns: float
    duplex_fraction: float
    remote_bytes_per_ns: float
    peer_bytes_per_ns: float
    peer_remote_bytes_per_ns: float
    call_ns: float
    deferred_call_ns: float
    block_to_device_ns: float
    block_to_host_ns: float
    discarded_to_host_ns: float
    host_page_ns: float
    resident_block_ns: float
    populate_block_ns: float
    refill_block_ns: float
    discard_block_ns: float
    discarded_block_ns: float
    prefetch_ramp_ns: float
    prefetch_ramp_blocks: float
    batch_ns: float
    fault_ns: float
    fault_block_ns: float
    unmap_ns: float
    duplicate_fraction: float
    outstanding_faults: int
    batch_faults: int
    discarded_fault_ns: float
    cpu_fault_ns: float
    allocate_managed_ns: float
    free_managed_ns: float
    allocate_device_ns: float
    free_device_ns: float
    launch_ns: float

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise ConfigurationError(
                f"machine name {self.name!r}: use 1 to 64 letters, digits, '.', '_' and '-', "
                "the first a letter or digit"
            )
        if not isinstance(self.third_tier, ThirdTier | None):
            raise ConfigurationError(
                f"machine {self.name}: third_tier={shown(self.third_tier)}: a ThirdTier, or None"
            )
        for name, constant in CONSTANTS.items():
            value = getattr(self, name)
            if problem := constant.problem(value):
                raise ConfigurationError(f"machine {self.name}: {name}={problem}")
            object.__setattr__(self, name, constant.converted(value))
        object.__setattr__(self, "sources", dict(self.sources))

    def __str__(self) -> str:
        """Return the name, and unless all of it was measured, the label."""
        return self.name if self.label == "measured" else f"{self.name} ({self.label})"

    @property
    def label(self) -> str:
        """The origin of the figures: "measured" or "published only", and what changed."""
        basis = "measured" if self.measured else "published only"
        changed = self.changed
        if not changed:
            return basis
        listed = ", ".join(changed) if len(changed) <= 3 else f"{len(changed)} constants"
        return f"{basis}, changed: {listed}"

    @property
    def changed(self) -> tuple[str, ...]:
        """Constants that the program set, in the order of the files."""
        return tuple(name for name in CONSTANTS if self.sources.get(name) == CHANGED_SOURCE)

    def behind_host(self) -> dict[str, float] | None:
        """Return the third tier's values for the model; None if there is none."""
        return None if self.third_tier is None else self.third_tier.constants()

    def constants(self) -> dict[str, float]:
        """Return every constant by name; sizes and counts are integers."""
        return {name: getattr(self, name) for name in CONSTANTS}

    def replace(self, **changes: Any) -> Machine:
        """Return this machine with other values.

        Parameters
        ----------
        **changes : object
            Fields by name. A constant that changes gets the source "set by the program", unless
            `sources` is given too, and shows in `label`.

        Raises
        ------
        ConfigurationError
            If there is no such field, or a value is out of bounds.

        Examples
        --------
        >>> from rmm_uvm.support.machine_files import load_machine
        >>> print(load_machine("h200-pcie5").replace(copy_ns=0))
        h200-pcie5 (measured, changed: copy_ns)
        """
        known = {one.name for one in dataclasses.fields(self)}
        if unknown := sorted(set(changes) - known):
            raise ConfigurationError(f"a machine has no {unknown[0]!r}: use {sorted(known)}")
        if "sources" not in changes:
            new = {
                name: CHANGED_SOURCE
                for name in CONSTANTS
                if name in changes and changes[name] != getattr(self, name)
            }
            changes["sources"] = {**self.sources, **new}
        return dataclasses.replace(self, **changes)
