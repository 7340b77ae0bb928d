# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two reports that were kept as JSON, side by side: whole runs, stages and lines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rmm_uvm.errors import DataError
from rmm_uvm.recording.line_traffic import ProgramLine
from rmm_uvm.recording.values import value_of
from rmm_uvm.report import words
from rmm_uvm.report.as_dict import FORMAT, FORMAT_VERSION
from rmm_uvm.report.by_line import line_title
from rmm_uvm.report.document import Document, Paragraph, Section, Table, TableColumn
from rmm_uvm.report.figures import OUTSIDE, Figures
from rmm_uvm.report.presented import Presented
from rmm_uvm.support.units import format_bytes

__all__ = ["Compared", "KeptReport", "kept_report"]

_Of: TypeAlias = tuple[Literal["whole", "stage", "outside"], str]
"""What figures are of, and what that is called: a stage may have any name."""

_WHOLE: _Of = ("whole", "whole run")
_OUTSIDE: _Of = ("outside", OUTSIDE)
_KINDS = ("seconds", "host_to_device_bytes", "device_to_host_bytes")
_TITLES = ("time", "to device", "to host")
_WIDTHS = (9, 11, 11)
_NAME_WIDTH = 18
_LINE_WIDTH = 40
_MOST_LINES = 10
_LINE_TITLES = ("to device", "evicted")
_TIMES_NOTE = "times: how many times as much as in the report that it is compared with"
_MOST_BYTES = 1 << 28
_FIELDS = tuple(field.name for field in dataclasses.fields(Figures))


@dataclasses.dataclass(frozen=True)
class KeptLine:
    """Traffic of the memory that a line of the program allocated.

    Parameters
    ----------
    line : ProgramLine or None
        None: of no known line.
    to_device_bytes, evicted_bytes : int
        Brought or faulted in, and sent away to make room.
    """

    line: ProgramLine | None
    to_device_bytes: int
    evicted_bytes: int


_LinePair: TypeAlias = tuple[KeptLine | None, KeptLine | None]


@dataclasses.dataclass(frozen=True)
class KeptReport:
    """A kept report, as far as reports are compared.

    Parameters
    ----------
    name : str
        Of its file.
    simulated : bool
        A device was a model.
    about : mapping of str to str
        As `rmm_uvm.recording.recorded.Recording.about` has it.
    rows : mapping of int to mapping
        Figures by device, and by what they are of: all of the run, each stage in their order, and
        the time outside of stages.
    lines : tuple of KeptLine or None
        By line of the program; None where nobody asked for that.
    """

    name: str
    simulated: bool
    about: Mapping[str, str]
    rows: Mapping[int, Mapping[_Of, Figures]]
    lines: tuple[KeptLine, ...] | None = None


def kept_report(path: Path) -> KeptReport:
    """Return what ``rmm-uvm run --json`` or `Report.save_json` kept.

    Raises
    ------
    DataError
        If the file cannot be read, or holds no report, or one that this version does not know.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(text) > _MOST_BYTES:
        raise DataError(
            f"{path} is too large for a report: it has more than {format_bytes(_MOST_BYTES)}"
        )
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise DataError(f"{path} is not a report: give what `rmm-uvm run --json FILE` wrote")
    if told.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"{path} is a report of version {words.plain_name(str(told.get('format_version')))}, "
            f"and this rmm-uvm reads version {FORMAT_VERSION}"
        )
    try:
        devices = value_of(tuple[Any, ...], told.get("devices"), "devices")
        return KeptReport(
            path.name,
            value_of(bool, told.get("simulated"), "simulated"),
            value_of(Mapping[str, str], told.get("about", {}), "about"),
            {value_of(int, each.get("device_id"), "device_id"): _rows(each) for each in devices},
            _lines(value_of(Mapping[str, Any] | None, told.get("lines"), "lines")),
        )
    except (DataError, AttributeError) as error:
        raise DataError(f"{path} is a damaged report: {error}") from error


def _rows(device: Mapping[str, Any]) -> dict[_Of, Figures]:
    rows = {_WHOLE: _figures(device)}
    for stage in value_of(tuple[Any, ...], device.get("by_stage"), "by_stage"):
        rows["stage", value_of(str, stage.get("name"), "name")] = _figures(stage)
    if (outside := device.get("outside_stages")) is not None:
        rows[_OUTSIDE] = _figures(outside)
    return rows


def _figures(told: Mapping[str, Any]) -> Figures:
    seconds = value_of(float, told.get("seconds"), "seconds")
    known = {
        name: value_of(int | None, told.get(name), name) for name in _FIELDS if name != "seconds"
    }
    return Figures(seconds, **known)


def _lines(told: Mapping[str, Any] | None) -> tuple[KeptLine, ...] | None:
    if told is None:
        return None
    return tuple(map(_line, value_of(tuple[Any, ...], told.get("by_line"), "by_line")))


def _line(told: Mapping[str, Any]) -> KeptLine:
    file = value_of(str | None, told.get("file"), "file")
    brought, faulted, evicted = (
        value_of(int, told.get(name), name)
        for name in ("brought_bytes", "faulted_bytes", "evicted_bytes")
    )
    line = None
    if file is not None:
        function, text = (value_of(str, told.get(name), name) for name in ("function", "text"))
        line = ProgramLine(file, value_of(int, told.get("line"), "line"), function, text)
    return KeptLine(line, brought + faulted, evicted)


class Compared(Presented):
    """A run beside another one: how many times as much of everything.

    Parameters
    ----------
    report : KeptReport
        The run in question.
    against : KeptReport
        What it is compared with.
    """

    _called = "the comparison"

    def __init__(self, report: KeptReport, against: KeptReport) -> None:
        self.report, self.against = report, against

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of both, by device and what they are of; None: only one has it."""
        return {
            "format": "rmm_uvm comparison",
            "format_version": 1,
            "simulated": self.report.simulated or self.against.simulated,
            "report": {"name": self.report.name, "about": dict(self.report.about)},
            "against": {"name": self.against.name, "about": dict(self.against.about)},
            "devices": [
                {
                    "device_id": device_id,
                    "rows": [
                        {"of": of, "name": name, "report": _plain(ours), "against": _plain(theirs)}
                        for (of, name), ours, theirs in self._pairs(device_id)
                    ],
                }
                for device_id in self._devices()
            ],
            "lines": self._lines_dict(),
        }

    def _lines_dict(self) -> list[dict[str, Any]] | None:
        pairs = self._line_pairs()
        if pairs is None:
            return None
        return [
            {
                "report": None if ours is None else dataclasses.asdict(ours),
                "against": None if theirs is None else dataclasses.asdict(theirs),
            }
            for ours, theirs in pairs
        ]

    def _line_pairs(self) -> list[_LinePair] | None:
        """Return the lines of both, those first that differ most; None unless both have lines."""
        if self.report.lines is None or self.against.lines is None:
            return None
        return sorted(_paired(self.report.lines, self.against.lines), key=_difference, reverse=True)

    def _devices(self) -> list[int]:
        return list({**self.report.rows, **self.against.rows})

    def _pairs(self, device_id: int) -> list[tuple[_Of, Figures | None, Figures | None]]:
        ours, theirs = (each.rows.get(device_id, {}) for each in (self.report, self.against))
        of_both = dict.fromkeys([*ours, *theirs])
        in_order = sorted(of_both, key=lambda of: of == _OUTSIDE)  # last, whoever has later stages
        return [(of, ours.get(of), theirs.get(of)) for of in in_order]

    def _summary(self) -> Document:
        said = []
        for role, one in (("", self.report), ("against ", self.against)):
            told = f": {words.program(one.about)}" if "program" in one.about else ""
            model = ", simulated" * one.simulated
            said.append(Paragraph(f"{role}{words.plain_name(one.name, 60)}{told}{model}", most=3))
        sections = [Section(self._title(each), (self._table(each),)) for each in self._devices()]
        if pairs := self._line_pairs():
            sections.append(Section("Lines that differ most", (_table_of_lines(pairs),)))
        sections.append(Section("", (Paragraph(_TIMES_NOTE, most=2),)))
        return Document(tuple(sections), tuple(said), title="Two runs")

    _page = _summary

    def _title(self, device_id: int) -> str:
        return f"device {device_id}" if len(self._devices()) > 1 else ""

    def _table(self, device_id: int) -> Table:
        columns = _columns(_NAME_WIDTH, _TITLES, _WIDTHS)
        rows = []
        for (_, name), *both in self._pairs(device_id):
            cells = [words.plain_name(name)]
            for kind in _KINDS:
                here, there = (None if one is None else getattr(one, kind) for one in both)
                text = words.clock_text if kind == "seconds" else words.size
                cells += [words.UNKNOWN if here is None else text(here), _times(here, there)]
            rows.append(tuple(cells))
        return Table(columns, tuple(rows))


def _columns(
    name_width: int, titles: tuple[str, ...], widths: tuple[int, ...]
) -> tuple[TableColumn, ...]:
    """Return columns of names, and of figures with their times: the first always stand."""
    columns = [TableColumn("", right=False, most=name_width)]
    for place, (title, width) in enumerate(zip(titles, widths, strict=True)):
        columns.append(TableColumn(title, width=width, spare=place > 0))
        columns.append(TableColumn("times", width=6, spare=place > 0))
    return tuple(columns)


def _paired(ours: tuple[KeptLine, ...], theirs: tuple[KeptLine, ...]) -> list[_LinePair]:
    """Return which line is which: the same place, or else the same text in the same function."""
    pairs: list[_LinePair] = []
    for key in (_place, _text):
        waiting: dict[Hashable, list[KeptLine]] = {}
        for one in theirs:
            waiting.setdefault(key(one), []).append(one)
        alone = []
        for one in ours:
            if same := waiting.get(key(one)):
                pairs.append((one, same.pop(0)))
            else:
                alone.append(one)
        ours, theirs = tuple(alone), tuple(one for each in waiting.values() for one in each)
    return [*pairs, *((one, None) for one in ours), *((None, one) for one in theirs)]


def _place(one: KeptLine) -> Hashable:
    return one.line and (_text(one), one.line.number)


def _text(one: KeptLine) -> Hashable:
    line = one.line
    return line and (Path(line.file).name, line.function, line.text or line.number)


def _difference(pair: _LinePair) -> int:
    here, there = ((0, 0) if one is None else _moved(one) for one in pair)
    return sum(abs(ours - theirs) for ours, theirs in zip(here, there, strict=True))


def _moved(one: KeptLine) -> tuple[int, int]:
    return one.to_device_bytes, one.evicted_bytes


def _table_of_lines(pairs: list[_LinePair]) -> Table:
    rows = []
    for pair in pairs[:_MOST_LINES]:
        known = next(one for one in pair if one is not None)
        cells = [line_title(known.line)]
        for number in range(len(_LINE_TITLES)):
            here, there = (None if one is None else _moved(one)[number] for one in pair)
            cells += [words.UNKNOWN if here is None else words.size(here), _times(here, there)]
        rows.append(tuple(cells))
    return Table(_columns(_LINE_WIDTH, _LINE_TITLES, _WIDTHS[1:]), tuple(rows))


def _plain(figures: Figures | None) -> dict[str, Any] | None:
    return None if figures is None else dataclasses.asdict(figures)


def _times(here: float | None, there: float | None) -> str:
    """Return how many times as much as there; in a word where that is no number.

    Examples
    --------
    >>> _times(3, 2), _times(0, 0), _times(3, 0), _times(None, 2), _times(3, None)
    ('1.50', '1.00', 'new', 'gone', 'new')
    """
    if here is None:
        return words.UNKNOWN if there is None else "gone"
    if there is None or (there == 0 and here > 0):
        return "new"
    return f"{here / there:.2f}" if there else "1.00"
