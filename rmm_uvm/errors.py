# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings that rmm-uvm raises.

Exceptions of the project derive from `UvmError`, so that one ``except`` clause (and the command
line) catches them. A message says what was asked, what there was, and what to do, in one or two
lines. Building blocks called directly (`rmm_uvm.mr`, drivers, contexts that are entered twice) also
raise Python's own `ValueError`, `TypeError` and `RuntimeError` for misuse.

Running out of memory is not in this file: allocations raise `MemoryError`, as RMM's do.

See Also
--------
rmm_uvm.cli.main : prints a `UvmError` as one line and exits with a status other than 0.
"""

from __future__ import annotations

__all__ = [
    "AmplificationWarning",
    "AvailabilityError",
    "BudgetWarning",
    "CapacityWarning",
    "ConfigurationError",
    "DataError",
    "DeviceTakenWarning",
    "DoubleFreeError",
    "DriverError",
    "EvictionWarning",
    "FindingWarning",
    "HostMemoryWarning",
    "IpcPoolWarning",
    "MonitorWarning",
    "NeighborWarning",
    "NotEnteredWarning",
    "OutOfRangeError",
    "OversubscriptionWarning",
    "PredictionWarning",
    "PrefetchEvictionWarning",
    "ReplacedResourceWarning",
    "UvmError",
    "UvmWarning",
]


class UvmError(Exception):
    """Root of all exceptions of this package."""


class ConfigurationError(UvmError, ValueError):
    """An argument, option or environment variable has a value that cannot be used."""


class AvailabilityError(UvmError, RuntimeError):
    """Something that was asked for does not exist here: a GPU, a library, a driver feature."""


class DriverError(UvmError, RuntimeError):
    """A call to the CUDA driver, or to the simulated device, failed.

    Only for calls other than allocation; a failed allocation is a `MemoryError`.
    """


class DoubleFreeError(UvmError, ValueError):
    """A free whose pointer and size match no live allocation. Nothing was freed."""

    @classmethod
    def at(cls, address: int, nbytes: int) -> DoubleFreeError:
        """Return the error for a free of `nbytes` at `address`."""
        return cls(
            f"no live allocation of {nbytes} bytes begins at {address:#x}: "
            "it was freed before, or the size is not the one it was allocated with"
        )


class DataError(UvmError, ValueError):
    """A data file is missing, broken, truncated or not in the expected format."""


class OutOfRangeError(DataError, IndexError):
    """An id that a table of embeddings does not have."""


class UvmWarning(UserWarning):
    """Root of all warnings of this package."""


class ReplacedResourceWarning(UvmWarning):
    """A memory resource took the place of another: ours of the user's, or the reverse."""


class CapacityWarning(UvmWarning):
    """Less memory can be used than was asked for or expected, or no budget of it can be kept."""


class NeighborWarning(CapacityWarning):
    """The idle memory of another device was asked for, and cannot be used."""


class NotEnteredWarning(UvmWarning):
    """Something that works in a ``with`` block only was called without one, and did nothing."""


class FindingWarning(UvmWarning):
    """Root of what a monitor warns of; each has the figure, the threshold and one remedy."""


class OversubscriptionWarning(FindingWarning):
    """The footprint is larger than the managed capacity."""


class EvictionWarning(FindingWarning):
    """Pages are evicted, and go on being evicted."""


class AmplificationWarning(FindingWarning):
    """The same bytes are moved again and again: the program thrashes."""


class HostMemoryWarning(FindingWarning):
    """The host has too little memory for what would be evicted; the kernel may end the process."""


class DeviceTakenWarning(FindingWarning):
    """Other allocations hold device memory and push managed pages out."""


class PrefetchEvictionWarning(FindingWarning):
    """Prefetches evict what others need."""


class BudgetWarning(FindingWarning):
    """A request is larger than the budget of device memory, or much is waited to keep it."""


class PredictionWarning(FindingWarning):
    """An eviction policy foresaw too little, and was turned off; it may be on again by now."""


class IpcPoolWarning(FindingWarning):
    """Transfers between workers wait for the IPC pool, or go past it."""


class MonitorWarning(FindingWarning):
    """Something cannot be watched, or no longer."""
