# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of a machine, as plain values: how many bytes, in how many seconds.

Covers the figures alone. Does not cover how they are taken
(`rmm_uvm.simulator.measuring.procedure`) nor what follows from them
(`rmm_uvm.simulator.measuring.derivation`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["PAGE_BYTES", "MeasuredFigures", "Timing"]

PAGE_BYTES = 4096


class Timing(NamedTuple):
    """Bytes that something was done to, > 0, and the seconds that it took."""

    nbytes: int
    seconds: float

    @property
    def blocks(self) -> float:
        """`nbytes` in blocks of 2 MiB."""
        return self.nbytes / VA_BLOCK_BYTES

    @property
    def bytes_per_ns(self) -> float:
        """Rate; infinite where no time was seen to pass."""
        return self.nbytes / (self.seconds * 1e9) if self.seconds > 0 else float("inf")

    @property
    def block_ns(self) -> float:
        """Nanoseconds for each block."""
        return self.seconds * 1e9 / self.blocks


@dataclass(frozen=True, kw_only=True)
class MeasuredFigures:
    """Everything that is measured; None where a figure could not be taken.

    Times are from the call to completion, unless a "call" is named: that ends when it returns.
    "Fresh" memory was never touched by anybody.

    Attributes
    ----------
    device_bytes : int
        Device memory, total.
    devices : int
        GPUs that the process sees.
    copy_to_device, copy_to_host : Timing
        One copy of pinned memory.
    duplex : Timing
        Two such copies at once, one each way; `nbytes` is that of one.
    small_copy : Timing
        One of many queued copies to the device.
    remote_read, resident_read : Timing
        Kernel reading pinned host memory, and managed memory on the device.
    prefetch_call, discard_call : Timing
        The call for one block that is resident.
    deferred_call : Timing
        The call for a prefetch on a stream that is busy.
    prefetch_fresh, prefetch_resident : Timing
        One prefetch to the device.
    prefetch_to_device, prefetch_to_host, prefetch_to_cold_host : Timing
        One prefetch; cold: the memory had no host pages.
    prefetch_calls : tuple of Timing
        Prefetches to the device of one call each, on an idle stream, from small to large.
    queued_prefetches : tuple of Timing
        The same of calls that follow one another without a wait: the share of one. Only of sizes
        with which a call finds the stream busy with the last one.
    discard : Timing
        Of memory on the device.
    discarded_to_host : Timing
        One prefetch of memory that was discarded on the device, its host pages there.
    discard_and_prefetch_on_device, discard_and_prefetch_on_host : Timing
        To the device, of memory that is there already, and that is not.
    launch : float
        Seconds; an empty kernel, from the call to completion.
    fault, faults : Timing
        Kernel touching one page in one block that lies on the host, and one page in each of many.
    first_touch, first_touches : Timing
        The same with fresh memory.
    fault_stream, first_touch_stream : Timing
        Kernel touching all of a range on the host, and of a fresh one.
    discarded_write : Timing
        Kernel touching all of a range that was discarded on the device.
    cpu_touch : Timing
        CPU writing to each page of a range on the device.
    allocate_managed, free_managed, allocate_device, free_device : Timing
        The calls.
    """

    device_bytes: int
    devices: int = 1
    copy_to_device: Timing | None = None
    copy_to_host: Timing | None = None
    duplex: Timing | None = None
    small_copy: Timing | None = None
    remote_read: Timing | None = None
    resident_read: Timing | None = None
    prefetch_call: Timing | None = None
    discard_call: Timing | None = None
    deferred_call: Timing | None = None
    prefetch_fresh: Timing | None = None
    prefetch_resident: Timing | None = None
    prefetch_to_device: Timing | None = None
    prefetch_to_host: Timing | None = None
    prefetch_to_cold_host: Timing | None = None
    prefetch_calls: tuple[Timing, ...] = ()
    queued_prefetches: tuple[Timing, ...] = ()
    discard: Timing | None = None
    discarded_to_host: Timing | None = None
    discard_and_prefetch_on_device: Timing | None = None
    discard_and_prefetch_on_host: Timing | None = None
    launch: float | None = None
    fault: Timing | None = None
    faults: Timing | None = None
    first_touch: Timing | None = None
    first_touches: Timing | None = None
    fault_stream: Timing | None = None
    first_touch_stream: Timing | None = None
    discarded_write: Timing | None = None
    cpu_touch: Timing | None = None
    allocate_managed: Timing | None = None
    free_managed: Timing | None = None
    allocate_device: Timing | None = None
    free_device: Timing | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them: a timing is {"nbytes": ..., "seconds": ...}."""

        def plain(value: Any) -> Any:
            if isinstance(value, Timing):
                return value._asdict()
            return [plain(one) for one in value] if isinstance(value, tuple) else value

        return {one.name: plain(getattr(self, one.name)) for one in dataclasses.fields(self)}
