# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of ``rmm-uvm doctor`` about neighbours: who has which, what is idle there, rates.

Stays short on a machine with many devices: pairs that are alike share a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rmm_uvm.cli.grid import grid
from rmm_uvm.doctor.topology import DevicePair, Topology
from rmm_uvm.support.units import format_bytes

__all__ = ["render_neighbors"]

_MOST_COLUMNS = 8  # devices of a table of rates: more do not fit 80 columns
_MOST_PAIRS = 4  # named in one line


def render_neighbors(topology: Topology, *, is_measured: bool = False) -> RenderableType:
    """Return the section for a terminal; legible at 80 columns and without colour.

    Parameters
    ----------
    topology : Topology
    is_measured : bool
        Show rates, and why there are none where there are none.
    """
    parts: list[RenderableType] = []
    if topology.reason:
        parts.append(Text(f"none: {topology.reason}; what leaves a device goes to the host"))
    else:
        parts.append(_idle(topology))
        parts.extend(_kinds(topology.pairs))
        if topology.remark:
            parts.append(Text(topology.remark))
    if is_measured and topology.devices:
        parts.append(Text())
        parts.extend(_rates(topology))
    return Group(*parts)


def _idle(topology: Topology) -> RenderableType:
    """Return who may use whose memory, and how much of that is idle."""
    free_bytes = {device.index: device.free_bytes for device in topology.devices}
    table = grid("device", "neighbours", "idle there", "device is busy")
    for device in topology.devices:
        neighbors = topology.neighbors(device.index)
        idle = [free_bytes[index] for index in neighbors]
        told = [each for each in idle if each is not None]
        busy = device.kernel_fraction
        table.add_row(
            str(device.index),
            _numbers(neighbors) or "none",
            "-" if not idle else format_bytes(sum(told)) if len(told) == len(idle) else "unknown",
            "unknown" if busy is None else f"{busy:.0%} of the time",
        )
    return table


def _kinds(pairs: Iterable[DevicePair]) -> Iterable[Text]:
    """Yield a line for each kind of pair: what connects it, or why nothing does."""
    kinds: dict[tuple[str, str], list[DevicePair]] = {}
    for pair in pairs:
        kinds.setdefault((pair.link, pair.peer_access.reason), []).append(pair)
    total = sum(map(len, kinds.values()))
    for (link, reason), alike in kinds.items():
        if reason:
            yield Text(f"not neighbours: {_named(alike, total)}: {reason}")
        elif link:  # where nobody tells what connects them, the table says that something does
            yield Text(f"{link}: {_named(alike, total)}")


def _rates(topology: Topology) -> Iterable[RenderableType]:
    """Yield what was measured: a table, or on many devices ranges; and the reasons for gaps."""
    devices = topology.devices
    indexes = [device.index for device in devices]
    yield Text("GB/s at which managed memory migrates, from (line) to (column)", style="dim")
    rates = _by_direction(topology)
    if len(devices) <= _MOST_COLUMNS:
        ends = [*indexes, None]
        table = grid("", *(_end(index) for index in ends))
        for first in ends:
            table.add_row(_end(first), *(rates.get((first, second), "-") for second in ends))
        yield table
    else:
        yield from _ranges(topology)
    yield from _gaps(topology)


def _gaps(topology: Topology) -> Iterable[Text]:
    """Yield why something was not measured, once for each reason."""
    reasons: dict[str, list[str]] = {}
    hosts: dict[str, list[int]] = {}
    for device in topology.devices:
        if device.host_rates is None:
            hosts.setdefault(device.host_rates_reason, []).append(device.index)
    for reason, indexes in hosts.items():
        reasons.setdefault(reason, []).append(f"the host and {_numbers(indexes)}")
    for pair in topology.pairs:
        if pair.peer_access and pair.rates is None:
            reasons.setdefault(pair.rates_reason, []).append(f"{pair.first} and {pair.second}")
    for reason, ways in reasons.items():
        yield Text(f"not measured between {_shortened(ways)}: {reason}")


def _by_direction(topology: Topology) -> dict[tuple[int | None, int | None], str]:
    """Return rates as text by their ends; None is the host."""
    found: dict[tuple[int | None, int | None], str] = {}
    for device in topology.devices:
        if host := device.host_rates:
            found[None, device.index] = _rate(host.to_device_bytes_per_second)
            found[device.index, None] = _rate(host.to_host_bytes_per_second)
    for pair in topology.pairs:
        if pair.rates:
            found[pair.first, pair.second] = _rate(pair.rates.to_second_bytes_per_second)
            found[pair.second, pair.first] = _rate(pair.rates.to_first_bytes_per_second)
    return found


def _ranges(topology: Topology) -> Iterable[Text]:
    """Yield the least and the most of each kind of way."""
    hosts = [device.host_rates for device in topology.devices if device.host_rates]
    pairs = [pair.rates for pair in topology.pairs if pair.rates]
    ways = {
        "host to device": [each.to_device_bytes_per_second for each in hosts],
        "device to host": [each.to_host_bytes_per_second for each in hosts],
        "device to device": [
            rate
            for each in pairs
            for rate in (each.to_first_bytes_per_second, each.to_second_bytes_per_second)
        ],
    }
    for way, rates in ways.items():
        if rates:
            yield Text(f"{way}: {_rate(min(rates))} to {_rate(max(rates))}")


def _rate(bytes_per_second: int) -> str:
    return f"{bytes_per_second / 1e9:.3g}"


def _end(index: int | None) -> str:
    return "host" if index is None else str(index)


def _numbers(numbers: Sequence[int]) -> str:
    """Return ascending numbers, runs of three and more as ``0-3``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def _named(pairs: Sequence[DevicePair], total: int) -> str:
    if len(pairs) == total:
        return f"{pairs[0].first} and {pairs[0].second}" if total == 1 else f"all {total} pairs"
    return _shortened([f"{pair.first} and {pair.second}" for pair in pairs])


def _shortened(items: Sequence[str]) -> str:
    rest = len(items) - _MOST_PAIRS
    return ", ".join(items[:_MOST_PAIRS]) + (f" (and {rest} more)" if rest > 0 else "")
