# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm doctor``: print what rmm-uvm can use on this machine, and if it cannot, why not.

With ``--measure`` it measures the machine instead; see `rmm_uvm.cli.measure`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.grid import grid
from rmm_uvm.cli.json_output import write_json
from rmm_uvm.cli.neighbors import render_neighbors
from rmm_uvm.cli.settings import settings_reason
from rmm_uvm.doctor import DoctorReport, Feature, examine
from rmm_uvm.support.messages import shown_name
from rmm_uvm.support.units import format_bytes

__all__ = ["command", "render"]


@click.command("doctor")
@click.option(
    "--json",
    "json_to",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Print the report as JSON, sizes in bytes; with a FILE, write it there.",
)
@click.option(
    "--links",
    "with_links",
    is_flag=True,
    help="Measure the links between the GPUs and to the host, too: some seconds.",
)
@click.option(
    "--measure",
    "is_measuring",
    is_flag=True,
    help="Measure a GPU instead, in under a minute, and keep it as a machine profile.",
)
@click.option("--save", "name", metavar="NAME", help="With --measure: name of the profile.")
@click.option(
    "--device", type=click.IntRange(min=0), help="With --measure: number of the GPU, default 0."
)
def command(
    *,
    json_to: str | None,
    with_links: bool,
    is_measuring: bool,
    name: str | None,
    device: int | None,
) -> None:
    """Tell what works on this machine, and if something does not, why not.

    Exit status: 0 if a managed pool could be installed here, 1 if not. Where RMM_UVM_DRIVER asks
    for a simulated device: on that.

    With --links: move up to 64 MiB of managed memory over every link, which needs a CUDA context on
    every GPU meanwhile.

    With --measure: measure what migrations, page faults and copies take on a GPU, which should be
    idle. At most 1 GiB of managed memory is used. Exit status: 0 if that was done, 1 if not.
    """
    if is_measuring and with_links:
        raise click.UsageError("--links and --measure are two things: choose one")
    if is_measuring:
        # Imports RMM, which the report does without.
        from rmm_uvm.cli.measure import run_measure

        run_measure(device or 0, name, json_to)
        return
    for option, value in (("--save", name), ("--device", device)):
        if value is not None:
            raise click.UsageError(f"{option} goes with --measure")
    report = examine()
    report = replace(report, settings_reason=settings_reason(report))
    with_links = with_links and report.feature("managed_pool").available
    if with_links:
        # Needs the compiled part, without which the report must still be able to come.
        from rmm_uvm.doctor.links import measured
        from rmm_uvm.drivers import cuda_driver

        report = replace(report, topology=measured(report.topology, cuda_driver))
    if json_to is not None:
        write_json(report.to_dict(), json_to)
    else:
        # Names and paths are printed as they are, brackets and colons too.
        make_console().print(render(report, with_links=with_links))
    sys.exit(0 if report.is_installable else 1)


def render(report: DoctorReport, *, with_links: bool = False) -> RenderableType:
    """Return the report for a terminal; legible at 80 columns and without colour.

    Parameters
    ----------
    report : DoctorReport
    with_links : bool
        Show rates of links.
    """
    return Group(
        _section("Versions", _pairs(report.versions.items())),
        _section("Devices", _devices(report)),
        *_neighbors(report, with_links=with_links),
        _section("Harvest board", _harvest_board(report)),
        *_all_features(report),
        *_extras(report),
        _section("Host memory", _host_memory(report)),
        *_unknown_variables(report),
        _section("What rmm_uvm.reinitialize() would install", _plans(report)),
    )


def _section(title: str, content: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), Padding(content, (0, 0, 1, 2), expand=False))


def _pairs(pairs: Iterable[tuple[str, str]]) -> RenderableType:
    table = grid("", "")
    for name, value in pairs:
        table.add_row(name, value)
    return table


def _devices(report: DoctorReport) -> RenderableType:
    found = _gpus(report)
    if not report.simulated_features or report.simulated_bytes is None:
        return found
    used = f"{_asked(report)}: a simulated device of {format_bytes(report.simulated_bytes)} is used"
    if not report.devices:
        return Text(f"{used}; no GPU is needed, and there is none: {report.devices_reason}")
    return Group(Text(f"{used}, and none of these GPUs"), found)


def _asked(report: DoctorReport) -> str:
    return f"RMM_UVM_DRIVER={report.driver_setting}"


def _gpus(report: DoctorReport) -> RenderableType:
    if not report.devices:
        return Text(
            f"none: {report.devices_reason}\n`rmm-uvm mortgage` runs on a simulated device instead"
        )
    table = grid("number", "name", "compute", "memory", "free")
    for device in report.devices:
        free = "unknown" if device.free_bytes is None else format_bytes(device.free_bytes)
        table.add_row(
            str(device.index),
            device.name,
            ".".join(map(str, device.compute_capability)),
            format_bytes(device.total_bytes),
            free,
        )
    return table


def _neighbors(report: DoctorReport, *, with_links: bool) -> Iterable[RenderableType]:
    """Return the section about neighbours; none where "Devices" says that there is no device."""
    if report.devices:
        shown = render_neighbors(report.topology, is_measured=with_links)
        yield _section("Neighbours", shown)


def _harvest_board(report: DoctorReport) -> RenderableType:
    """Return one line: where processes agree about idle device memory, and about what."""
    board = report.harvest_board
    if board.reason:
        return Text(f"none: {board.reason}")
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
    return Text(f"{board.path}: {processes}; {'; '.join(parts) or 'nothing is offered or claimed'}")


def _all_features(report: DoctorReport) -> Iterable[RenderableType]:
    """Return the section about features: of the device in use, and of GPUs where there are any."""
    if not report.simulated_features:
        yield _section("Features", _features(report.features))
        return
    yield _section("Features of the simulated device", _features(report.simulated_features))
    if report.devices:
        yield _section("Features of the GPUs, if they were used", _features(report.features))


def _features(features: Iterable[Feature]) -> RenderableType:
    table = grid("", "")
    for feature in features:
        # A word and not a symbol or a colour: it must tell on any terminal and in a bug report.
        mark = Text("yes", style="green") if feature.available else Text("no", style="yellow")
        text = Text.assemble((feature.title, "bold"), f": {feature.purpose}")
        if not feature.available:
            text.append(f"\nwhy not: {feature.reason}")
        elif feature.detail:
            text.append(f"\n{feature.detail}", style="dim")
        table.add_row(mark, text)
    return table


def _extras(report: DoctorReport) -> Iterable[RenderableType]:
    """Return the section about optional packages; none where nothing tells what they are."""
    if report.extras:
        yield _section("Optional packages", _features(report.extras))


def _host_memory(report: DoctorReport) -> RenderableType:
    memory = report.host_memory
    if memory is None:
        return Text(f"unknown: {report.host_memory_reason}")
    limit = "none" if memory.limit_bytes is None else format_bytes(memory.limit_bytes)
    return _pairs(
        [
            ("of the machine", format_bytes(memory.total_bytes)),
            ("container's limit", f"{limit} {memory.limit_source}".rstrip()),
            ("left for this process", format_bytes(memory.available_bytes)),
        ]
    )


def _unknown_variables(report: DoctorReport) -> Iterable[RenderableType]:
    """Return the section about variables that nothing reads; none where there are none."""
    if report.unknown_variables:
        lines = (
            f"{shown_name(name)}: {f'is {nearest} meant?' if nearest else 'none has such a name'}"
            for name, nearest in report.unknown_variables.items()
        )
        yield _section("Environment variables that nothing reads", Text("\n".join(lines)))


def _plans(report: DoctorReport) -> RenderableType:
    if reason := report.driver_reason or report.settings_reason:
        return Text(f"nothing: {reason}")
    if report.simulated_features and report.simulated_bytes is not None:
        size = format_bytes(report.simulated_bytes)
        what = f"a pool on a simulated device of {size}, whatever this machine has"
        return Text(f"{_asked(report)}: {what}")
    if not report.is_installable:
        return Text(f"nothing: {report.feature('managed_pool').reason}")
    if not report.plans:
        return Text("a managed pool; its sizes depend on the host memory, which is unknown")
    names = list(dict.fromkeys(name for plan in report.plans for name in plan.sizes))
    table = grid("device", *(name.removesuffix("_bytes").replace("_", " ") for name in names))
    for plan in report.plans:
        sizes = (format_bytes(plan.sizes[name]) if name in plan.sizes else "-" for name in names)
        table.add_row(str(plan.device), *sizes)
    reasons = [Text(f"device {plan.device}: {plan.reason}") for plan in report.plans if plan.reason]
    return Group(table, *reasons)
