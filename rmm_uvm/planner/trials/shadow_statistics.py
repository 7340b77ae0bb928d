# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The time and memory that a torch program took on a simulated device."""

from __future__ import annotations

import dataclasses

from rmm_uvm.support.units import format_bytes

__all__ = ["ShadowStatistics"]


@dataclasses.dataclass(frozen=True)
class ShadowStatistics:
    """Statistics of a torch program on a simulated device until now, or between two moments.

    Attributes
    ----------
    seconds : float
        Modelled time until the last kernel's end. A kernel waits for what it faults in or asked
        for; what the budget moves ahead of need moves beside kernels, and waits for nobody but the
        link, and only those wait for it that use it.
    compute_seconds : float
        That kernels take with everything on the card, see `Roofline`.
    migration_seconds : float
        Of the kernel driver's work.
    to_device_bytes, to_host_bytes : int
        Copied each way.
    dropped_bytes : int
        Left the device without a copy, since nobody needed them.
    wanted_bytes, present_bytes : int
        Used by kernels, but for what was allocated for them; and of that on the card already.
    kernels : int
        Kernels until now.
    gpu_faults : int
        Page faults of kernels, those that are reported twice included.
    to_third_tier_bytes, from_third_tier_bytes : int
        Written to a third tier behind the host, and read from it.
    used_bytes : int
        Sum of what each kernel uses.
    most_used_bytes : int
        Most that one kernel uses; since the beginning.
    live_bytes, peak_bytes : int
        Allocated now, and at most since the beginning.
    """

    seconds: float
    compute_seconds: float
    migration_seconds: float
    to_device_bytes: int
    to_host_bytes: int
    dropped_bytes: int
    wanted_bytes: int
    present_bytes: int
    kernels: int
    gpu_faults: int
    to_third_tier_bytes: int
    from_third_tier_bytes: int
    used_bytes: int
    most_used_bytes: int
    live_bytes: int
    peak_bytes: int

    @property
    def hit_rate(self) -> float:
        """Share of `wanted_bytes` that was there; 1 where nothing was wanted."""
        return self.present_bytes / self.wanted_bytes if self.wanted_bytes else 1.0

    @property
    def mean_used_bytes(self) -> float:
        """The bytes that a kernel uses on average; 0 without kernels."""
        return self.used_bytes / self.kernels if self.kernels else 0.0

    def since(self, earlier: ShadowStatistics) -> ShadowStatistics:
        """Return what was added since `earlier`; levels and maxima stay as they are."""
        levels = ("most_used_bytes", "live_bytes", "peak_bytes")
        added = {
            field.name: getattr(self, field.name) - getattr(earlier, field.name)
            for field in dataclasses.fields(self)
            if field.name not in levels
        }
        return dataclasses.replace(self, **added)

    def __str__(self) -> str:
        """Return four lines."""
        return (
            f"time      {self.seconds:.4f} s, of which computing {self.compute_seconds:.4f} s\n"
            f"moved     {format_bytes(self.to_device_bytes)} to the device, "
            f"{format_bytes(self.to_host_bytes)} to the host, "
            f"{format_bytes(self.dropped_bytes)} dropped\n"
            f"memory    {format_bytes(self.peak_bytes)} at most; of what kernels used "
            f"{self.hit_rate:.1%} was there\n"
            f"kernels   {self.kernels}, of {format_bytes(int(self.mean_used_bytes))} on average "
            f"and {format_bytes(self.most_used_bytes)} at most"
        )
