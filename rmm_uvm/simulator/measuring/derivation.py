# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From measured figures to the constants of a machine profile.

Pure: figures in, values with their sources out. A constant whose figure is missing, or comes out
where no value can be, is taken from another machine, and its source says so.

Covers the arithmetic, which is that of the model read backwards: what an operation costs there
(``cpp/src/sim/page_commands.cpp``, ``fault_service.cpp``, ``timeline.cpp``) is solved for the one
constant that is asked for. Does not cover the measuring; see
`rmm_uvm.simulator.measuring.procedure`.

How long a prefetch to the device takes is three constants, fitted to a few calls of different
sizes. As the model has it: the driver's thread works on block after block, copies run behind it on
their engine, a second pass goes over the range, and the end of all that is followed by a ramp of
``ramp * (1 - exp(-blocks / ramp_blocks))``. Calls that follow one another without a wait have that
ramp; whether a call on an idle stream has it, `RAMP_ONLY_WHEN_QUEUED` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rmm_uvm.simulator.measuring.figures import PAGE_BYTES, MeasuredFigures, Timing
from rmm_uvm.support.machine_profile import CONSTANTS, Machine
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = [
    "RAMP_ONLY_WHEN_QUEUED",
    "Call",
    "Derived",
    "PrefetchCost",
    "Ramp",
    "derive",
    "fitted_ramp",
    "prefetches_to_device",
]

RAMP_ONLY_WHEN_QUEUED = True
"""As the model in C++ has it (``page_commands.cpp``)."""

_FEWEST_SIZES = 3
# Candidates for the blocks of the ramp: less than half a block is no ramp, hundreds are a slope.
_LEAST_BLOCKS, _MOST_BLOCKS = 0.5, 200.0
# A grid of so many steps each way, laid again and again around its best point.
_STEPS, _GRIDS = 24, 6


class Ramp(NamedTuple):
    """The driver's time for a block, and what a call takes more: `ramp_ns`, 63 % after so many."""

    block_ns: float
    ramp_ns: float
    ramp_blocks: float


class Call(NamedTuple):
    """A prefetch, and whether it has a ramp."""

    timing: Timing
    has_ramp: bool


@dataclass(frozen=True)
class PrefetchCost:
    """The cost of a prefetch, as far as it is known before its ramp is.

    Attributes
    ----------
    call_ns, pass_ns : float
        The call; each block in each of two passes, unless it is a lone one.
    copy_ns : float
        Copy of a block, on an idle engine.
    """

    call_ns: float
    pass_ns: float
    copy_ns: float

    def without_ramp_ns(self, blocks: float, block_ns: float) -> float:
        """Return what a call takes up to its ramp."""
        pass_ns = self.pass_ns if blocks > 1 else 0.0
        worked_ns = blocks * (block_ns + pass_ns)
        copied_ns = max(worked_ns + self.copy_ns, block_ns + pass_ns + blocks * self.copy_ns)
        return self.call_ns + max(worked_ns + blocks * pass_ns, copied_ns)

    def total_ns(self, blocks: float, ramp: Ramp) -> float:
        """Return what a call with a ramp takes."""
        return self.without_ramp_ns(blocks, ramp.block_ns) + ramp.ramp_ns * _rise(
            blocks, ramp.ramp_blocks
        )


def fitted_ramp(calls: Sequence[Call], cost: PrefetchCost) -> Ramp | None:
    """Fit the calls; each counts by its relative error.

    Parameters
    ----------
    calls : sequence of Call
        Prefetches.
    cost : PrefetchCost
        The rest of what they take.

    Returns
    -------
    Ramp or None
        None if there are fewer than three sizes with a ramp, or one took no time.
    """
    if len({call.timing.nbytes for call in calls if call.has_ramp}) < _FEWEST_SIZES:
        return None
    if min(call.timing.seconds for call in calls) <= 0:
        return None
    fewest_ns, most_ns = 0.0, min(call.timing.block_ns for call in calls)
    fewest_log, most_log = math.log(_LEAST_BLOCKS), math.log(_MOST_BLOCKS)
    best = (math.inf, Ramp(0.0, 0.0, _LEAST_BLOCKS))
    for _ in range(_GRIDS):
        step_ns, step_log = (most_ns - fewest_ns) / _STEPS, (most_log - fewest_log) / _STEPS
        for column in range(_STEPS + 1):
            blocks = math.exp(fewest_log + column * step_log)
            rises = [_rise(call.timing.blocks, blocks) if call.has_ramp else 0.0 for call in calls]
            for row in range(_STEPS + 1):
                block_ns = fewest_ns + row * step_ns
                error, ramp_ns = _fitted(calls, cost, block_ns, rises)
                if error < best[0]:
                    best = (error, Ramp(block_ns, ramp_ns, blocks))
        block_ns, log = best[1].block_ns, math.log(best[1].ramp_blocks)
        fewest_ns, most_ns = max(block_ns - 2 * step_ns, 0.0), block_ns + 2 * step_ns
        fewest_log, most_log = log - 2 * step_log, log + 2 * step_log
    return best[1]


def _rise(blocks: float, ramp_blocks: float) -> float:
    """Return how much of a ramp so many blocks have, 0 to 1."""
    return 1 - math.exp(-blocks / ramp_blocks)


def _fitted(
    calls: Sequence[Call], cost: PrefetchCost, block_ns: float, rises: Sequence[float]
) -> tuple[float, float]:
    """Return the squared relative errors and the ramp that makes them least, >= 0."""
    xx = xy = yy = 0.0
    for call, rise in zip(calls, rises, strict=True):
        total_ns = call.timing.seconds * 1e9
        # Divided by the total, so that a call of 2 MiB weighs as much as one of 2 GiB.
        x = rise / total_ns
        y = 1 - cost.without_ramp_ns(call.timing.blocks, block_ns) / total_ns
        xx, xy, yy = xx + x * x, xy + x * y, yy + y * y
    ramp_ns = max(xy / xx, 0.0)
    return yy - 2 * ramp_ns * xy + ramp_ns * ramp_ns * xx, ramp_ns


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
        All constants, in the order of `rmm_uvm.support.machine_profile.CONSTANTS`.
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
