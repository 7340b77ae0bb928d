# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The constants of a machine profile: their names, units, meanings and bounds.

Covers what a value of each may be. Does not cover the values, which are in
``rmm_uvm/simulator/machines/*.toml``, nor the fields that hold them; see
`rmm_uvm.simulator.machine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rmm_uvm.support.messages import shown

__all__ = ["CONSTANTS", "Constant"]

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
