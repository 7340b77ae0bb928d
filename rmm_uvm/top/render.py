# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A view for a terminal: pure functions from plain values to a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rmm_uvm.harvest import DeviceHarvest
from rmm_uvm.report.as_text import Printed, lines_of
from rmm_uvm.report.document import Block, Document, Paragraph, Section, Span, Table, TableColumn
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
from rmm_uvm.top.track import HISTORY_SECONDS
from rmm_uvm.top.view import ProcessRow, View

if TYPE_CHECKING:
    from rmm_uvm.watch.sampling.nvml import GpuMemory

__all__ = ["harvest_line", "render", "sparkline"]

_NAME_CHARACTERS = 12  # of a UUID: as many tell GPUs of a machine apart
_MOST_HOLDERS = 3
_BARS = " ▁▂▃▄▅▆▇█"
_BARS_ASCII = " .:-=+*#"

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
) -> Printed:
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
    head = tuple(_head(view, width, live=live, plain_ascii=plain_ascii))
    room = 10_000 if height is None else max(1, height - _lines(head, width) - 4)
    body = tuple(_processes(view, width, room, plain_ascii=plain_ascii))
    return Printed(Document((Section("", body),), head))


def _head(view: View, width: int, *, live: bool, plain_ascii: bool) -> Iterator[Paragraph]:
    narrow = width < NARROW
    yield _title(view, narrow=narrow, live=live)
    harvests = {} if view.harvest is None else {each.uuid: each for each in view.harvest.devices}
    for device in view.devices:
        yield _device(device, narrow=narrow)
        if (agreed := harvests.pop(device.uuid, None)) is not None:
            yield harvest_line(agreed, narrow=narrow)
    for uuid, each in harvests.items():
        yield harvest_line(each, name=uuid[:_NAME_CHARACTERS], narrow=narrow)
    if view.devices_reason:
        yield Paragraph(Span(f"device memory: {view.devices_reason}", "faint"))
    if modelled := sorted({row.pid for row in view.processes if row.simulated}):
        more = (", ..." if plain_ascii else ", …") * (len(modelled) > 8)
        pids = ", ".join(map(str, modelled[:8])) + more
        yield Paragraph(Span(f"simulated, no GPU of this machine: PID {pids}", "faint"))


def _processes(view: View, width: int, room: int, *, plain_ascii: bool) -> Iterator[Block]:
    if not view.processes:
        yield Paragraph(_NOTHING)
        return
    seen = [row for row in view.processes if row.source]
    unseen = [row for row in view.processes if not row.source]
    pid_digits = max(len(str(row.pid)) for row in view.processes)
    if seen:
        yield _table(seen[:room], width, pid_digits, plain_ascii=plain_ascii)
        if room < len(seen):
            yield Paragraph(Span(f"and {len(seen) - room} more that move less", "faint"))
    room -= len(seen)
    for row in unseen:
        text = _unseen(row, pid_digits)
        room -= _lines([text], width)
        if room < 0:
            yield Paragraph(Span("and more that are not seen", "faint"))
            break
        yield text


def _title(view: View, *, narrow: bool, live: bool) -> Paragraph:
    parts = ["rmm-uvm top", view.time[11:19]]
    if live:
        parts += [f"every {view.interval_seconds:g} s", "q quits"]
    text = (" " if narrow else "  ").join(part for part in parts if part)
    return Paragraph(Span(text, "strong"), fit="cut")


def _device(device: GpuMemory, *, narrow: bool) -> Paragraph:
    used = short_bytes(device.used_bytes, narrow=narrow)
    total = short_bytes(device.total_bytes, narrow=narrow)
    name = "" if narrow else f" {device.name}"
    text = f"GPU {device.index}{name}: {used} of {total} in use"
    if device.used_bytes is not None and device.total_bytes:
        text += f", {100 * device.used_bytes / device.total_bytes:.0f} %"
    if device.full:
        text += ", full"
    return Paragraph(Span(text, "doubtful" if device.full else ""), fit="cut")


def harvest_line(device: DeviceHarvest, *, name: str = "", narrow: bool = False) -> Paragraph:
    """Return what is agreed about one device; yellow while something is to be given back.

    Parameters
    ----------
    device : DeviceHarvest
        Its offers and claims.
    name : str
        Of the device; empty where the line stands below it.
    narrow : bool
        Few columns: sizes are abbreviated, and owners not named.

    Examples
    --------
    >>> from rmm_uvm.harvest import Claim, Offer
    >>> of = DeviceHarvest("GPU-0", (Offer(7, 3 << 30, False),), (Claim(8, 2 << 30, 0),))
    >>> harvest_line(of).words.text
    'held by PID 8 2.00 GiB; 3.00 GiB offered by PID 7'
    >>> harvest_line(of, narrow=True).words.text
    'held by 8 2.0G; 3.0G offered'
    """

    def size(nbytes: int) -> str:
        return short_bytes(nbytes, narrow=narrow)

    parts = []
    pid = "" if narrow else "PID "
    claims = sorted(device.claims, key=lambda claim: (-claim.claimed_bytes, claim.process))
    if claims:
        held = [f"{each.process} {size(each.claimed_bytes)}" for each in claims[:_MOST_HOLDERS]]
        rest = claims[_MOST_HOLDERS:]
        more = sum(each.claimed_bytes for each in rest)
        held += [f"{len(rest)} more {size(more)}"] * bool(rest)
        parts.append(f"held by {pid}{', '.join(held)}")
    offered = device.offered_bytes
    if offered is not None:
        owners = _owners([o.process for o in device.offers if o.offered_bytes is not None])
        parts.append(f"{size(offered)} offered{'' if narrow else f' by {owners}'}")
    excess = 0 if offered is None else max(0, device.claimed_bytes - offered)
    if excess:
        parts.append(f"{size(excess)} to give back")
    if device.busy:
        parts.append("busy" if narrow else "its links are busy")
    said = Span("; ".join(parts), "doubtful" if excess else "")
    return Paragraph(said, lead=f"{name}: " if name else "  ", indent="    ")


def _owners(processes: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(processes)[:_MOST_HOLDERS]))
    more = len(processes) - _MOST_HOLDERS
    return f"PID {shown}" + (f" and {more} more" if more > 0 else "")


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
    narrow = width < NARROW
    return Table(
        tuple(TableColumn(each.title, each.right, each.width, each.width) for each in columns),
        tuple(
            tuple(_shown(row, _cell(row, column, narrow, plain_ascii)) for column in columns)
            for row in rows
        ),
    )


def _shown(row: ProcessRow, cell: Span) -> Span:
    return Span(cell.text, "faint") if row.exited and not cell.tone else cell


def _cell(row: ProcessRow, column: Column, narrow: bool, plain_ascii: bool) -> Span:  # noqa: FBT001
    def size(value: float | None) -> str:
        return short_bytes(value, narrow=narrow)

    match column.key:
        case "pid":
            return Span(str(row.pid))
        case "name":
            return Span(cut(label(row), column.width, plain_ascii=plain_ascii))
        case "device":
            return Span("-" if row.device_id is None else str(row.device_id))
        case "footprint":
            over = (row.footprint_bytes or 0) > (row.capacity_bytes or float("inf"))
            return Span(size(row.footprint_bytes), "alarming" if over else "")
        case "resident":
            return Span(size(row.resident_bytes))
        case "budget":
            return Span(size(row.budget_bytes), "doubtful" if row.overshoot_bytes else "")
        case "harvested":
            return Span(size(row.harvested_bytes), "doubtful" if row.given_back_bytes else "")
        case "capacity":
            return Span(size(row.capacity_bytes))
        case "in":
            return Span(short_rate(row.in_bytes_per_second, narrow=narrow))
        case "out":
            return Span(short_rate(row.out_bytes_per_second, narrow=narrow))
        case "evicted":
            text = size(row.evicted_bytes_estimate)
            return Span(text, "doubtful" if row.evicted_bytes_estimate else "")
        case "faults":
            return Span(_count(row.faults_per_second))
        case _:
            line = sparkline(row.history, column.width, plain_ascii=plain_ascii)
            return Span(line, "moving")


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


def _unseen(row: ProcessRow, pid_digits: int) -> Paragraph:
    name = f"{label(row)}: " if row.name else ""
    pid = f"{row.pid:>{pid_digits}}"
    return Paragraph(
        Span(f"{name}{printable(row.reason)}", "faint"), lead=f"{pid} " if name else f"{pid}: "
    )


def _lines(blocks: Iterable[Block], width: int) -> int:
    """Return how many lines texts take."""
    return len(lines_of(Document((), tuple(blocks)), width))


def sparkline(
    history: Iterable[tuple[float, float]], width: int, *, plain_ascii: bool = False
) -> str:
    """Return bars, oldest first, the highest as high as the busiest moment.

    Parameters
    ----------
    history : iterable of (float, float)
        Age in seconds, 0 now, and a rate, >= 0.
    width : int
        Characters for the last minute, > 0. Each shows the highest rate in its share.
    plain_ascii : bool
        For terminals without UTF-8.

    Examples
    --------
    >>> sparkline([(59.0, 1.0), (31.0, 0.0), (1.0, 8.0)], 4)
    '▁  █'
    """
    most = [0.0] * width
    for age_seconds, rate in history:
        place = width - 1 - int(age_seconds / HISTORY_SECONDS * width)
        if 0 <= place < width:
            most[place] = max(most[place], rate)
    bars = _BARS_ASCII if plain_ascii else _BARS
    highest = max(most, default=0.0)
    steps = len(bars) - 1
    # Anything that moved is seen: only nothing is a blank.
    return "".join(
        bars[max(1, round(rate / highest * steps))] if rate > 0 else bars[0] for rate in most
    )
