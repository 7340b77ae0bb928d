# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A view for a terminal: pure functions from plain values to text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from rmm_uvm.top.columns import (
    NARROW,
    Column,
    choose,
    cut,
    label,
    printable,
    short_bytes,
    short_rate,
)
from rmm_uvm.top.harvested import harvest_line
from rmm_uvm.top.seams import DeviceMemory
from rmm_uvm.top.sparkline import sparkline
from rmm_uvm.top.view import ProcessRow, View

__all__ = ["render"]

_NAME_CHARACTERS = 12  # of a UUID: as many tell GPUs of a machine apart

_NOTHING = (
    "No CUDA process is to be seen, and none publishes. What runs in another container, or belongs "
    "to another user, is seen from there or as root."
)


def render(
    view: View,
    width: int,
    height: int | None = None,
    *,
    live: bool = False,
    plain_ascii: bool = False,
) -> RenderableType:
    """Return a view for a terminal; legible at 40 columns and without colour.

    Parameters
    ----------
    view : View
        What to show.
    width : int
        Of the terminal, characters; 40 or more.
    height : int or None
        Most lines; None is no limit.
    live : bool
        It is shown again and again: say how to leave.
    plain_ascii : bool
        The terminal has no UTF-8.
    """
    narrow = width < NARROW
    head: list[RenderableType] = [_title(view, width, live=live)]
    harvests = {} if view.harvest is None else {each.uuid: each for each in view.harvest.devices}
    for device in view.devices:
        head.append(_device(device, width, narrow=narrow))
        if (agreed := harvests.pop(device.uuid, None)) is not None:
            head.append(harvest_line(agreed, narrow=narrow))
    head += [
        harvest_line(each, name=uuid[:_NAME_CHARACTERS], narrow=narrow)
        for uuid, each in harvests.items()
    ]
    if view.devices_reason:
        head.append(Text(f"device memory: {view.devices_reason}", style="dim"))
    if modelled := sorted({row.pid for row in view.processes if row.simulated}):
        pids = ", ".join(map(str, modelled[:8])) + ", …" * (len(modelled) > 8)
        pids = pids.replace("…", "...") if plain_ascii else pids
        head.append(Text(f"simulated, no GPU of this machine: PID {pids}", style="dim"))
    seen = [row for row in view.processes if row.source]
    unseen = [row for row in view.processes if not row.source]
    body: list[RenderableType] = [Text("")]
    if not view.processes:
        return Group(*head, *body, Text(_NOTHING))
    pid_digits = max(len(str(row.pid)) for row in view.processes)
    room = 10_000 if height is None else max(1, height - _lines(head, width) - 4)
    if seen:
        body.append(_table(seen[:room], width, pid_digits, plain_ascii=plain_ascii))
        if room < len(seen):
            body.append(Text(f"and {len(seen) - room} more that move less", style="dim"))
    room -= len(seen)
    for row in unseen:
        text = _unseen(row, pid_digits)
        room -= _lines([text], width)
        if room < 0:
            body.append(Text("and more that are not seen", style="dim"))
            break
        body.append(text)
    return Group(*head, *body)


def _title(view: View, width: int, *, live: bool) -> Text:
    clock = view.time[11:19]
    parts = ["rmm-uvm top", clock]
    if live:
        parts += [f"every {view.interval_seconds:g} s", "q quits"]
    gap = " " if width < NARROW else "  "
    text = Text(gap.join(part for part in parts if part), style="bold")
    text.truncate(width)
    return text


def _device(device: DeviceMemory, width: int, *, narrow: bool) -> Text:
    used = short_bytes(device.used_bytes, narrow=narrow)
    total = short_bytes(device.total_bytes, narrow=narrow)
    name = "" if narrow else f" {device.name}"
    text = Text(f"GPU {device.index}{name}: {used} of {total} in use")
    if device.used_bytes is not None and device.total_bytes:
        text.append(f", {100 * device.used_bytes / device.total_bytes:.0f} %")
    if device.full:
        text.append(", full")
        text.stylize("yellow")
    text.truncate(width, overflow="ellipsis")
    return text


def _table(rows: list[ProcessRow], width: int, pid_digits: int, *, plain_ascii: bool) -> Table:
    columns = choose(
        width,
        pid_digits=pid_digits,
        name_characters=max(len(label(row)) for row in rows),
        devices=any(row.device_id for row in rows),
        budgets=any(row.budget_bytes is not None for row in rows),
        harvests=any(row.peak_harvested_bytes for row in rows),
        faults=any(row.faults_per_second is not None or row.gpu_faults is not None for row in rows),
    )
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", width=None)
    for column in columns:
        table.add_column(
            column.title,
            width=column.width,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if column.right else "left",
        )
    for row in rows:
        table.add_row(
            *(_cell(row, column, width < NARROW, plain_ascii) for column in columns),
            style=Style(dim=True) if row.exited else None,
        )
    return table


def _cell(row: ProcessRow, column: Column, narrow: bool, plain_ascii: bool) -> Text:  # noqa: FBT001
    def size(value: float | None) -> str:
        return short_bytes(value, narrow=narrow)

    match column.key:
        case "pid":
            return Text(str(row.pid))
        case "name":
            return Text(cut(label(row), column.width, plain_ascii=plain_ascii))
        case "device":
            return Text("-" if row.device_id is None else str(row.device_id))
        case "footprint":
            over = (row.footprint_bytes or 0) > (row.capacity_bytes or float("inf"))
            return Text(size(row.footprint_bytes), style="bold yellow" if over else "")
        case "resident":
            return Text(size(row.resident_bytes))
        case "budget":
            return Text(size(row.budget_bytes), style="yellow" if row.overshoot_bytes else "")
        case "harvested":
            return Text(size(row.harvested_bytes), style="yellow" if row.given_back_bytes else "")
        case "capacity":
            return Text(size(row.capacity_bytes))
        case "in":
            return Text(short_rate(row.in_bytes_per_second, narrow=narrow))
        case "out":
            return Text(short_rate(row.out_bytes_per_second, narrow=narrow))
        case "evicted":
            text = size(row.evicted_bytes_estimate)
            return Text(text, style="yellow" if row.evicted_bytes_estimate else "")
        case "faults":
            return Text(_count(row.faults_per_second))
        case _:
            line = sparkline(row.history, column.width, plain_ascii=plain_ascii)
            return Text(line, style="cyan")


def _count(number: float | None) -> str:
    """Return a number in at most 5 characters.

    Examples
    --------
    >>> _count(12.0), _count(123_456.0), _count(None)
    ('12', '123k', '-')
    """
    if number is None:
        return "-"
    for unit in ("", "k", "M", "G"):
        if round(number) < 1000:
            return f"{number:.0f}{unit}" if number >= 10 or not unit else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.0f}T"


def _unseen(row: ProcessRow, pid_digits: int) -> Text:
    name = f" {label(row)}" if row.name else ""
    return Text(f"{row.pid:>{pid_digits}}{name}: {printable(row.reason)}", style="dim")


def _lines(parts: list[RenderableType], width: int) -> int:
    """Return how many lines texts take."""
    return sum(-(-max(1, len(part)) // width) for part in parts if isinstance(part, Text))
