# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what works on a machine, and why the rest does not.

Stays short on a machine with many devices: pairs that are alike share a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rmm_uvm.doctor.facts import Feature
from rmm_uvm.doctor.report import DoctorReport
from rmm_uvm.doctor.topology import DevicePair, Topology
from rmm_uvm.report.document import (
    Block,
    Document,
    Paragraph,
    Section,
    Span,
    Table,
    TableColumn,
    Words,
)
from rmm_uvm.support.messages import shown_name
from rmm_uvm.support.off_switch import OFF
from rmm_uvm.support.requirements import supported_rmm
from rmm_uvm.support.units import format_bytes

__all__ = ["document", "neighbors"]

_MOST_COLUMNS = 8  # devices of a table of rates: more do not fit 80 columns
_MOST_PAIRS = 4  # named in one line


def document(report: DoctorReport, *, with_links: bool = False) -> Document:
    """Return what is shown of a report.

    Parameters
    ----------
    report : DoctorReport
    with_links : bool
        Show rates of links.
    """
    return Document(tuple(_sections(report, with_links=with_links)))


def neighbors(topology: Topology, *, is_measured: bool = False) -> Iterator[Block]:
    """Yield who has which neighbours, what is idle there, and on request rates.

    Parameters
    ----------
    topology : Topology
    is_measured : bool
        Show rates, and why there are none where there are none.
    """
    if topology.reason:
        yield Paragraph(f"none: {topology.reason}; what leaves a device goes to the host")
    else:
        yield _idle(topology)
        yield from _kinds(topology.pairs)
        if topology.remark:
            yield Paragraph(topology.remark)
    if is_measured and topology.devices:
        yield Paragraph("", fit="keep")
        yield from _rates(topology)


def _sections(report: DoctorReport, *, with_links: bool) -> Iterator[Section]:
    yield _section(
        "Versions", [_grid(("", ""), report.versions.items(), wraps=1), Paragraph(supported_rmm())]
    )
    yield _section("Devices", _devices(report))
    if report.devices:
        yield _section("Neighbours", neighbors(report.topology, is_measured=with_links))
    yield _section("Harvest board", [Paragraph(_harvest_board(report))])
    if not report.simulated_features:
        yield _section("Features", [_features(report.features)])
    else:
        found = [_features(report.simulated_features)]
        yield _section("Features of the simulated device", found)
        if report.devices:
            found = [_features(report.features)]
            yield _section("Features of the GPUs, if they were used", found)
    if report.extras:
        yield _section("Optional packages", [_features(report.extras)])
    yield _section("Host memory", [_host_memory(report)])
    if report.unknown_variables:
        title = "Environment variables that nothing reads"
        yield _section(title, map(Paragraph, _unknown_variables(report)))
    yield _section("What rmm_uvm.reinitialize() would install", _plans(report))


def _section(title: str, blocks: Iterable[Block]) -> Section:
    return Section(title, tuple(blocks), indent="  ")


def _grid(titles: Sequence[str], rows: Iterable[tuple[Words, ...]], wraps: int = -1) -> Table:
    """Return a table; of its columns only the one with the number `wraps` is broken."""
    columns = (
        TableColumn(title, right=False, wraps=place == wraps) for place, title in enumerate(titles)
    )
    return Table(tuple(columns), tuple(rows), gap=2)


def _devices(report: DoctorReport) -> Iterator[Block]:
    size = report.simulated_bytes
    if not report.simulated_features or size is None:
        yield _gpus(report)
        return
    used = f"{_asked(report)}: a simulated device of {format_bytes(size)} is used"
    if not report.devices:
        yield Paragraph(f"{used}; no GPU is needed, and there is none: {report.devices_reason}")
        return
    yield Paragraph(f"{used}, and none of these GPUs")
    yield _gpus(report)


def _asked(report: DoctorReport) -> str:
    return f"RMM_UVM_DRIVER={report.driver_setting}"


def _gpus(report: DoctorReport) -> Block:
    if not report.devices:
        return Paragraph(
            f"none: {report.devices_reason}\n`rmm-uvm mortgage` runs on a simulated device instead"
        )
    rows = (
        (
            str(device.index),
            device.name,
            ".".join(map(str, device.compute_capability)),
            format_bytes(device.total_bytes),
            "unknown" if device.free_bytes is None else format_bytes(device.free_bytes),
        )
        for device in report.devices
    )
    return _grid(("number", "name", "compute", "memory", "free"), rows, wraps=1)


def _harvest_board(report: DoctorReport) -> str:
    """Return one line: where processes agree about idle device memory, and about what."""
    board = report.harvest_board
    if board.reason:
        return f"none: {board.reason}"
    # CUDA writes UUIDs without the kind that nvidia-smi puts before them.
    names = {device.uuid: f"device {device.index}" for device in report.topology.devices}
    parts = []
    for each in board.devices:
        said = [f"{format_bytes(each.claimed_bytes)} claimed"]
        if each.offered_bytes is not None:
            said.insert(0, f"{format_bytes(each.offered_bytes)} offered")
        said += ["links busy"] * each.busy
        parts.append(f"{names.get(each.uuid.removeprefix('GPU-'), each.uuid)} {', '.join(said)}")
    joined = len(board.processes)
    processes = "1 process has joined" if joined == 1 else f"{joined} processes have joined"
    return f"{board.path}: {processes}; {'; '.join(parts) or 'nothing is offered or claimed'}"


def _features(features: Iterable[Feature]) -> Table:
    rows: list[tuple[Words, ...]] = []
    for feature in features:
        # A word and not a symbol or a colour: it must tell on any terminal and in a bug report.
        mark = Span("yes", "good") if feature.available else Span("no", "doubtful")
        text: list[str | Span] = [Span(feature.title, "strong"), f": {feature.purpose}"]
        if not feature.available:
            text.append(f"\nwhy not: {feature.reason}")
        elif feature.detail:
            text.append(Span(f"\n{feature.detail}", "faint"))
        rows.append((mark, tuple(text)))
    return _grid(("", ""), rows, wraps=1)


def _host_memory(report: DoctorReport) -> Block:
    memory = report.host_memory
    if memory is None:
        return Paragraph(f"unknown: {report.host_memory_reason}")
    limit = "none" if memory.limit_bytes is None else format_bytes(memory.limit_bytes)
    rows = (
        ("of the machine", format_bytes(memory.total_bytes)),
        *(
            [("of GPUs, left out", format_bytes(memory.device_bytes))]
            if memory.device_bytes
            else []
        ),
        ("container's limit", f"{limit} {memory.limit_source}".rstrip()),
        ("left for this process", format_bytes(memory.available_bytes)),
    )
    return _grid(("", ""), rows, wraps=1)


def _unknown_variables(report: DoctorReport) -> Iterator[str]:
    for name, nearest in report.unknown_variables.items():
        meant = f"is {nearest} meant?" if nearest else "none has such a name"
        yield f"{shown_name(name)}: {meant}"


def _plans(report: DoctorReport) -> Iterator[Block]:
    if report.switched_off:
        yield Paragraph(f"nothing: {OFF}; with RMM_UVM=on:")
    if reason := report.driver_reason or report.settings_reason:
        yield Paragraph(f"nothing: {reason}")
    elif report.simulated_features and report.simulated_bytes is not None:
        size = format_bytes(report.simulated_bytes)
        what = f"a pool on a simulated device of {size}, whatever this machine has"
        yield Paragraph(f"{_asked(report)}: {what}")
    elif not report.is_installable:
        yield Paragraph(f"nothing: {report.feature('managed_pool').reason}")
    elif not report.plans:
        yield Paragraph("a managed pool; its sizes depend on the host memory, which is unknown")
    else:
        names = list(dict.fromkeys(name for plan in report.plans for name in plan.sizes))
        titles = (name.removesuffix("_bytes").replace("_", " ") for name in names)
        rows = (
            (
                str(plan.device),
                *(format_bytes(plan.sizes[name]) if name in plan.sizes else "-" for name in names),
            )
            for plan in report.plans
        )
        yield _grid(("device", *titles), rows)
        for plan in report.plans:
            if plan.reason:
                yield Paragraph(f"device {plan.device}: {plan.reason}")


def _idle(topology: Topology) -> Table:
    """Return who may use whose memory, and how much of that is idle."""
    free_bytes = {device.index: device.free_bytes for device in topology.devices}
    rows = []
    for device in topology.devices:
        there = topology.neighbors(device.index)
        idle = [free_bytes[index] for index in there]
        told = [each for each in idle if each is not None]
        busy = device.kernel_fraction
        found = format_bytes(sum(told)) if len(told) == len(idle) else "unknown"
        rows.append(
            (
                str(device.index),
                _numbers(there) or "none",
                found if idle else "-",
                "unknown" if busy is None else f"{busy:.0%} of the time",
            )
        )
    return _grid(("device", "neighbours", "idle there", "device is busy"), rows, wraps=1)


def _kinds(pairs: Iterable[DevicePair]) -> Iterator[Paragraph]:
    """Yield a line for each kind of pair: what connects it, or why nothing does."""
    kinds: dict[tuple[str, str], list[DevicePair]] = {}
    for pair in pairs:
        kinds.setdefault((pair.link, pair.peer_access.reason), []).append(pair)
    total = sum(map(len, kinds.values()))
    for (link, reason), alike in kinds.items():
        if reason:
            yield Paragraph(f"not neighbours: {_named(alike, total)}: {reason}")
        elif link:  # where nobody tells what connects them, the table says that something does
            yield Paragraph(f"{link}: {_named(alike, total)}")


def _rates(topology: Topology) -> Iterator[Block]:
    """Yield what was measured: a table, or on many devices ranges; and the reasons for gaps."""
    devices = topology.devices
    indexes = [device.index for device in devices]
    said = "GB/s at which managed memory migrates, from (line) to (column)"
    yield Paragraph(Span(said, "faint"))
    rates = _by_direction(topology)
    if len(devices) <= _MOST_COLUMNS:
        ends = [*indexes, None]
        rows = (
            (_end(first), *(rates.get((first, second), "-") for second in ends)) for first in ends
        )
        yield _grid(("", *map(_end, ends)), rows)
    else:
        yield from _ranges(topology)
    yield from _gaps(topology)


def _gaps(topology: Topology) -> Iterator[Paragraph]:
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
        yield Paragraph(f"not measured between {_shortened(ways)}: {reason}")


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


def _ranges(topology: Topology) -> Iterator[Paragraph]:
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
            yield Paragraph(f"{way}: {_rate(min(rates))} to {_rate(max(rates))}")


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
