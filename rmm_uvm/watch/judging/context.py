# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a policy must know besides samples, as frozen values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.residency.statistics import ResidencyStatistics

__all__ = ["Context", "worth_telling"]

# Another source takes the place of these, or nothing that is found depends on them.
_DISPENSABLE = frozenset({"nvml", "rmm_chain", "own_resources", "board"})
# How a reason begins when nothing is broken: somebody wished it so, or there is nothing to see.
_NO_FAULT = ("switched off", "not asked for", "without concurrent managed access")


@dataclasses.dataclass(frozen=True)
class Context:
    """The surroundings of one device.

    Parameters
    ----------
    device : RecordedDevice
        The device.
    host_available_bytes : int or None
        What the host, or the container's limit, still allows; None when it is not known or does
        not matter, as on a simulated device.
    host_limit_source : str
        The file with the container's limit; empty when there is none.
    prefetch : {"auto", "always", "never"} or None
        How our resource on this device prefetches; None when there is none of ours.
    budget : ResidencyStatistics or None
        How the budget of our pool on this device is kept; None when it has none.
    interval_seconds : float
        Usual time between two samples. Intervals of less than half of it, as between samples taken
        where a stage begins or ends, are put together until they are as long. 0: each counts.
    unavailable : mapping of str to str
        Sources that ought to work and do not, with the reason; see `worth_telling`.
    """

    device: RecordedDevice
    host_available_bytes: int | None = None
    host_limit_source: str = ""
    prefetch: str | None = None
    budget: ResidencyStatistics | None = None
    interval_seconds: float = 0.0
    unavailable: Mapping[str, str] = dataclasses.field(default_factory=dict)


def worth_telling(sources: Mapping[str, Availability], *, simulated: bool) -> dict[str, str]:
    """Return the sources whose absence a user should hear of, with the reason.

    Not those that were switched off or never asked for (their reason begins with these words),
    that another source replaces, or that a simulated device has no need of. Of several that are
    absent for one reason, the first.

    Parameters
    ----------
    sources : mapping of str to Availability
        All sources, by name.
    simulated : bool
        Whether the device is a model.

    Examples
    --------
    >>> found = {
    ...     "kernel_counters": Availability(False, "no /dev/nvidia-uvm-tools"),
    ...     "faults": Availability(False, "not asked for"),
    ... }
    >>> worth_telling(found, simulated=False)
    {'kernel_counters': 'no /dev/nvidia-uvm-tools'}
    """
    absent = {
        name: source.reason
        for name, source in sources.items()
        if not source and name not in _DISPENSABLE and not source.reason.startswith(_NO_FAULT)
    }
    if simulated:  # there is no NVIDIA library that could know of it
        absent = {name: why for name, why in absent.items() if name == "kernel_counters"}
    first = {why: name for name, why in reversed(absent.items())}
    return {name: why for name, why in absent.items() if first[why] == name}
