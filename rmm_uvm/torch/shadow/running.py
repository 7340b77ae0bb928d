# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A torch program on a simulated device: torch computes on the CPU, its memory lies on a card.

For programs without a GPU: what a card of any size, a budget or a policy would mean for them.
Times are modelled, see docs/measure/training-policies.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.planner.trials.uses import Receiver
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.simulator import DriverSettings, load_machine
from rmm_uvm.support.messages import shown
from rmm_uvm.support.settings import SETTINGS, PrefetchMode
from rmm_uvm.support.units import parse_bytes
from rmm_uvm.torch.shadow.roofline import Roofline, roofline_for
from rmm_uvm.trace import TraceWriter

__all__ = ["Shadow", "simulated"]


class Shadow:
    """A torch program's memory on a simulated device; made by `simulated`.

    Attributes
    ----------
    memory : ShadowDevice
        The card.
    """

    def __init__(self, memory: ShadowDevice, mode: Any) -> None:
        self.memory = memory
        self._mode = mode
        self._at_the_end: ShadowStatistics | None = None

    def statistics(self) -> ShadowStatistics:
        """Return what everything took until now; after the end, what it took until then."""
        if self._at_the_end is not None:
            return self._at_the_end
        self._mode.settle()
        return self.memory.statistics()

    def close(self) -> None:
        """Keep the statistics and give all memory back; again, nothing."""
        if self._at_the_end is None:
            self._at_the_end = self.statistics()
            self.memory.observe(None)
            self._mode.close()


@contextmanager
def simulated(
    device_bytes: int | str = "16GiB",
    *,
    device_budget: int | str | float | Budget | None = None,
    policy: str | None = None,
    prefetch: PrefetchMode = "auto",
    machine: str = "h200-pcie5",
    driver: DriverSettings | None = None,
    roofline: Roofline | None = None,
    trace: str | PathLike[str] | None = None,
) -> Iterator[Shadow]:
    """Let torch's tensors on the CPU lie on a simulated device as well, in this thread.

    What torch computes stays as it is. Every storage has an allocation in a managed pool of the
    device for as long as it lives; what each operator reads and writes is announced, and used.

    Parameters
    ----------
    device_bytes : int or str
        Memory of the card, bytes or such as "16GiB"; at least 2 MiB.
    device_budget : int, str, float, Budget or None
        As in `rmm_uvm.managed_pool`, but None by default, whatever the environment says: the kernel
        driver alone evicts.
    policy : str or None
        ``eviction`` of `rmm_uvm.managed_pool`.
    prefetch : {"auto", "always", "never"}
        "never" without a budget: everything comes by page faults.
    machine : str
        Whose rates; see `rmm_uvm.simulator.load_machine`.
    driver : DriverSettings, optional
        Parameters of the kernel driver.
    roofline : Roofline, optional
        How long kernels take; by default `Roofline.of` the machine.
    trace : str or path, optional
        Write a trace of allocations, frees and uses for ``rmm-uvm plan``, to a file that is not
        there or empty. Its times are those of this process, not of the card.

    Yields
    ------
    Shadow
        For its `Shadow.statistics`.

    Raises
    ------
    ConfigurationError
        If a size, mode, policy or machine is unusable.
    AvailabilityError
        If torch is not installed.
    MemoryError
        From an operator, if the pool cannot grow.

    Notes
    -----
    Not thread-safe, and only this thread's operators are seen: data loaders with workers make
    tensors that are seen when they are first used. No tensor lives longer than without it. An
    exception in the middle of a step leaves it usable.

    Examples
    --------
    >>> import torch, rmm_uvm.torch
    >>> with rmm_uvm.torch.simulated("8MiB") as shadow:
    ...     a = torch.zeros(1 << 20)  # 4 MiB each
    ...     b = a + 1
    ...     c = b + 1
    >>> took = shadow.statistics()
    >>> took.kernels, took.peak_bytes >> 20, took.to_host_bytes >> 20
    (3, 12, 4)
    """
    if driver is not None and not isinstance(driver, DriverSettings):
        raise ConfigurationError(
            f"driver={shown(driver)}: expected DriverSettings, the kernel driver's parameters"
        )
    SETTINGS["prefetch"].read(prefetch)
    profile = load_machine(machine)
    size_bytes = parse_bytes(device_bytes, name="device_bytes")
    budget = budget_for(device_budget, policy, size_bytes, policy_name="policy")
    memory = ShadowDevice(size_bytes, profile, budget, prefetch=prefetch, driver=driver)
    mode = mode_for(memory, roofline_for(roofline, profile))
    shadow = Shadow(memory, mode)
    writer = None if trace is None else TraceWriter(trace, _facts(size_bytes))
    try:
        memory.observe(writer)
        with mode:
            yield shadow
    finally:
        shadow.close()
        if writer is not None:
            writer.close()


def mode_for(receiver: Receiver, roofline: Roofline) -> Any:
    """Return the mode of torch that tells a receiver of everything.

    Raises
    ------
    AvailabilityError
        If torch is not installed.
    """
    try:
        from rmm_uvm.torch.shadow.mode import ShadowMode
    except ImportError as error:
        raise AvailabilityError(f"torch cannot be imported ({error}): install it") from error
    return ShadowMode(receiver, roofline)


def _facts(device_bytes: int) -> dict[str, Any]:
    device = RecordedDevice(0, "simulated device", "", device_bytes, device_bytes, simulated=True)
    return {
        "devices": [dataclasses.asdict(device)],
        "settings": {"shadowed": "torch on the CPU"},
    }
