# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From measured figures to the constants of a machine profile.

Pure: figures in, values with their sources out. A constant whose figure is missing, or comes out
where no value can be, is taken from another machine, and its source says so.

Covers the arithmetic, which is that of the model read backwards: what an operation costs there
(``cpp/src/sim/uvm_commands.cpp``, ``uvm_faults.cpp``, ``timeline.cpp``) is solved for the one
constant that is asked for. Does not cover the measuring; see
`rmm_uvm.simulator.measuring.procedure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rmm_uvm.simulator.constants import CONSTANTS
from rmm_uvm.simulator.measuring.figures import PAGE_BYTES, MeasuredFigures, Timing
from rmm_uvm.simulator.measuring.ramp import (
    RAMP_ONLY_WHEN_QUEUED,
    Call,
    PrefetchCost,
    fitted_ramp,
)
from rmm_uvm.simulator.profile import Machine
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["Derived", "derive", "prefetches_to_device"]

_PAGES = VA_BLOCK_BYTES // PAGE_BYTES

# A kernel that streams with 100 pages outstanding faults three times on a block; the driver's own
# prefetcher brings 128, 128 and 256 pages with it (density above 51 % doubles what comes).
_STREAM_SERVICES = 3
_STREAM_FAULTS = 100

# A CPU that goes upwards through a block faults six times: 16, 16, 32, 64, 128 and 256 pages come.
_CPU_FAULTS = 6

# Where the driver's work hides behind the copies, the time is that of the copies and little more.
_HIDDEN = 1.03

# Figures of H200s differ so much from run to run; what is left of two may come out below nothing.
_NOISE = 0.4


class Derived(NamedTuple):
    """A constant's value, and where it is from."""

    value: float
    source: str


class _Known:
    """The constants so far; one that is not there yet is the other machine's."""

    def __init__(self, base: Machine) -> None:
        self.base = base
        self.derived: dict[str, Derived] = {}

    def __getitem__(self, name: str) -> float:
        found = self.derived.get(name)
        value: float = getattr(self.base, name) if found is None else found.value
        return value

    def set(self, name: str, value: float | None, source: str) -> None:
        """Keep a value if there is one and it is possible, otherwise take the other machine's."""
        if value is None:
            self.take(name, "not measured")
        elif CONSTANTS[name].problem(value):
            self.take(name, f"the measurement gave {value:.4g}")
        else:
            self.derived[name] = Derived(CONSTANTS[name].converted(value), source)

    def take(self, name: str, reason: str) -> None:
        """Take the other machine's value."""
        value = getattr(self.base, name)
        self.derived[name] = Derived(value, f"taken from {self.base.name}: {reason}")


def derive(figures: MeasuredFigures, base: Machine) -> Mapping[str, Derived]:
    """Return every constant of a machine, as its figures have it.

    Parameters
    ----------
    figures : MeasuredFigures
        What was measured.
    base : Machine
        Gives what was not, or cannot be measured safely.

    Returns
    -------
    mapping of str to Derived
        All constants, in the order of `rmm_uvm.simulator.constants.CONSTANTS`.
    """
    known = _Known(base)
    known.set("device_bytes", figures.device_bytes, "measured: total memory, as CUDA reports it")
    # In this order: later ones are solved with what the earlier ones gave.
    for step in (_links, _peers, _calls, _migrations, _discards, _faults, _allocations):
        step(figures, known)
    for name in CONSTANTS:
        if name not in known.derived:
            known.take(name, "not measured")
    return {name: known.derived[name] for name in CONSTANTS}


def _links(figures: MeasuredFigures, known: _Known) -> None:
    launch_seconds = figures.launch or 0.0
    rate = _when(figures.copy_to_device, lambda t: t.bytes_per_ns)
    known.set("to_device_bytes_per_ns", rate, "measured: one copy of pinned memory")
    rate = _when(figures.copy_to_host, lambda t: t.bytes_per_ns)
    known.set("to_host_bytes_per_ns", rate, "measured: one copy of pinned memory")
    known.set(
        "copy_ns",
        _when(
            figures.small_copy,
            lambda t: max(t.seconds * 1e9 - t.nbytes / known["to_device_bytes_per_ns"], 0.0),
        ),
        "derived: many queued small copies, less their bytes at to_device_bytes_per_ns",
    )
    both = known["to_device_bytes_per_ns"] + known["to_host_bytes_per_ns"]
    known.set(
        "duplex_fraction",
        _when(figures.duplex, lambda t: min(2 * t.bytes_per_ns / both, 1.0)),
        "measured: two copies at once, one each way",
    )
    rate = _when(
        figures.remote_read, lambda t: Timing(t.nbytes, t.seconds - launch_seconds).bytes_per_ns
    )
    known.set("remote_bytes_per_ns", rate, "measured: kernel reading pinned host memory")
    rate = _when(
        figures.resident_read, lambda t: Timing(t.nbytes, t.seconds - launch_seconds).bytes_per_ns
    )
    known.set("memory_bytes_per_ns", rate, "measured: kernel reading managed memory on the device")


def _peers(figures: MeasuredFigures, known: _Known) -> None:
    for name in ("peer_bytes_per_ns", "peer_remote_bytes_per_ns"):
        if figures.devices < 2:
            known.set(name, 0.0, "one GPU is visible: there is no peer")
        else:
            known.take(name, "other GPUs are left alone; set it for the link between yours")


def _calls(figures: MeasuredFigures, known: _Known) -> None:
    known.set(
        "call_ns",
        _when(figures.prefetch_call, lambda t: t.seconds * 1e9),
        "measured: the call of a prefetch of a block that is resident",
    )
    known.set(
        "deferred_call_ns",
        _when(figures.deferred_call, lambda t: t.seconds * 1e9),
        "measured: the call of a prefetch on a busy stream",
    )
    known.set(
        "launch_ns",
        None if figures.launch is None else figures.launch * 1e9,
        "measured: an empty kernel from the call to completion, called from Python",
    )


def _migrations(figures: MeasuredFigures, known: _Known) -> None:
    known.set(
        "resident_block_ns",
        _when(figures.prefetch_resident, lambda t: t.block_ns / 2),
        "measured: prefetch of resident memory, for each block in two passes",
    )
    passes_ns = 2 * known["resident_block_ns"]
    known.set(
        "populate_block_ns",
        _when(figures.prefetch_fresh, lambda t: t.block_ns - passes_ns),
        "measured: prefetch of fresh memory, less two passes, for each block",
    )
    calls = prefetches_to_device(figures)
    copy_ns = known["copy_ns"] + VA_BLOCK_BYTES / known["to_device_bytes_per_ns"]
    cost = PrefetchCost(known["call_ns"], known["resident_block_ns"], copy_ns)
    ramp = fitted_ramp(calls, cost)
    how = f"measured: prefetches to the device, {len(calls)} kinds of calls, fitted together"
    known.set("block_to_device_ns", ramp.block_ns if ramp else None, how)
    known.set("prefetch_ramp_ns", ramp.ramp_ns if ramp else None, how)
    known.set("prefetch_ramp_blocks", ramp.ramp_blocks if ramp else None, how)
    _to_host(figures, known)


def prefetches_to_device(figures: MeasuredFigures) -> list[Call]:
    """Return the calls that tell what a block takes and what a ramp is."""
    calls = [Call(timing, has_ramp=True) for timing in figures.queued_prefetches]
    if figures.prefetch_to_device:
        calls.append(Call(figures.prefetch_to_device, has_ramp=not RAMP_ONLY_WHEN_QUEUED))
    if RAMP_ONLY_WHEN_QUEUED:
        calls += [Call(timing, has_ramp=False) for timing in figures.prefetch_calls]
    return calls


def _to_host(figures: MeasuredFigures, known: _Known) -> None:
    """Prefetches to the host show the driver's work only where the copies do not take longer."""
    copy_ns = known["copy_ns"] + VA_BLOCK_BYTES / known["to_host_bytes_per_ns"]
    warm, cold = figures.prefetch_to_host, figures.prefetch_to_cold_host
    if warm and warm.block_ns < _HIDDEN * copy_ns and known["block_to_host_ns"] < copy_ns:
        known.take("block_to_host_ns", "hidden behind the copies here")
    else:
        known.set(
            "block_to_host_ns",
            _when(warm, lambda t: t.block_ns - known["resident_block_ns"]),
            "measured: prefetch to the host, host pages there, for each block",
        )
    if warm and cold and cold.block_ns < _HIDDEN * copy_ns:
        known.take("host_page_ns", "hidden behind the copies here")
        return
    work_ns = known["resident_block_ns"] + known["block_to_host_ns"]
    known.set(
        "host_page_ns",
        _more(cold.block_ns, work_ns) / _PAGES if warm and cold else None,
        "measured: prefetch to the host without host pages, the time more, for each page",
    )


def _discards(figures: MeasuredFigures, known: _Known) -> None:
    passes_ns = 2 * known["resident_block_ns"]
    known.set(
        "discard_block_ns",
        _when(figures.discard, lambda t: t.block_ns),
        "measured: discard of memory on the device, for each block",
    )
    known.set(
        "discarded_to_host_ns",
        _when(figures.discarded_to_host, lambda t: t.block_ns - known["resident_block_ns"]),
        "measured: prefetch to the host of memory that was discarded, for each block",
    )
    known.set(
        "refill_block_ns",
        _when(figures.discard_and_prefetch_on_device, lambda t: _more(t.block_ns, passes_ns)),
        "measured: discard-and-prefetch of memory on the device, less two passes, for each block",
    )
    known.set(
        "discarded_block_ns",
        _when(
            figures.discard_and_prefetch_on_host,
            lambda t: t.block_ns - known["refill_block_ns"] - passes_ns,
        ),
        "measured: discard-and-prefetch of memory on the host, less refilling and two passes, "
        "for each block",
    )


def _faults(figures: MeasuredFigures, known: _Known) -> None:
    """Two streams give what a service takes, two sparse kernels what of it is the block's."""
    one, many = figures.first_touch, figures.first_touches
    if one and many and many.blocks > one.blocks:
        each_ns = (many.seconds - one.seconds) * 1e9 / (many.blocks - one.blocks)
        known.set(
            "fault_block_ns",
            each_ns - known["fault_ns"],
            "derived: kernels touching a page in one and in many fresh blocks, the time more for "
            "each, less fault_ns",
        )
    else:
        known.take("fault_block_ns", "not measured")
    fresh, host = figures.first_touch_stream, figures.fault_stream
    fixed_ns = _STREAM_FAULTS * known["fault_ns"] * (1 + known["duplicate_fraction"])
    read_ns = VA_BLOCK_BYTES / known["memory_bytes_per_ns"]
    known.set(
        "batch_ns",
        _when(
            fresh,
            lambda t: (
                (t.block_ns - read_ns) / _STREAM_SERVICES - fixed_ns - known["fault_block_ns"]
            ),
        ),
        "derived: kernel touching fresh memory in order, three batches a block, less its faults "
        "and fault_block_ns",
    )
    copies_ns = (
        VA_BLOCK_BYTES / known["to_device_bytes_per_ns"] + _STREAM_SERVICES * known["copy_ns"]
    )
    known.set(
        "unmap_ns",
        _more(host.block_ns, copies_ns + fresh.block_ns) / _STREAM_SERVICES
        if host and fresh
        else None,
        "derived: the same kernel on memory of the host, the time more, less the copies",
    )
    known.set(
        "cpu_fault_ns",
        _when(
            figures.cpu_touch,
            lambda t: (
                (t.block_ns - VA_BLOCK_BYTES / known["to_host_bytes_per_ns"]) / _CPU_FAULTS
                - known["copy_ns"]
            ),
        ),
        "derived: CPU touching memory on the device in order, six faults a block, less the copies",
    )
    # Discarded pages fault a hundred at a time too, and then are served one by one.
    shared_ns = (known["batch_ns"] + known["fault_block_ns"] + fixed_ns) / _STREAM_FAULTS
    known.set(
        "discarded_fault_ns",
        _when(figures.discarded_write, lambda t: t.block_ns / _PAGES - shared_ns),
        "measured: kernel writing memory after a discard, for each page, less its batch",
    )
    for name in ("fault_ns", "duplicate_fraction", "outstanding_faults"):
        known.take(name, "not told apart by what is measured")
    known.take("batch_faults", "a parameter of the kernel driver")


def _allocations(figures: MeasuredFigures, known: _Known) -> None:
    for name, call in (
        ("allocate_managed", "cudaMallocManaged"),
        ("free_managed", "cudaFree of managed memory"),
        ("allocate_device", "cudaMalloc"),
        ("free_device", "cudaFree of cudaMalloc memory"),
    ):
        timing: Timing | None = getattr(figures, name)
        size = f", {timing.nbytes >> 20} MiB" if timing else ""
        value = _when(timing, lambda t: t.seconds * 1e9)
        known.set(f"{name}_ns", value, f"measured: {call}{size}")


def _more(block_ns: float, known_ns: float) -> float:
    """Return what a block takes more than is known; 0 where that is lost in the figures' noise."""
    more_ns = block_ns - known_ns
    return 0.0 if -_NOISE * block_ns < more_ns < 0 else more_ns


def _when(timing: Timing | None, value: Callable[[Timing], float]) -> float | None:
    return None if timing is None else value(timing)
