# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A document as lines of a terminal: one way to break text, one to lay out a table.

Widths are cells of the terminal: a Chinese letter takes two. Charts are left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from rmm_uvm.report.document import (
    Answers,
    Block,
    Bullets,
    Code,
    Document,
    FigureGrid,
    Paragraph,
    Section,
    Table,
    TableColumn,
    Tasks,
    Wide,
    Words,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

__all__ = ["WIDTH", "Printed", "as_text", "lines_of"]

WIDTH = 80
"""Columns of a terminal."""

_TONES = {
    "": "",
    "strong": "bold",
    "faint": "dim",
    "good": "green",
    "doubtful": "yellow",
    "alarming": "bold yellow",
    "moving": "cyan",
}
_ANSWER_INDENT = "  "
_FEWEST_CELLS = 20  # of a column that is broken, however narrow the terminal
_CUT = " …"


def as_text(document: Document, width: int = WIDTH) -> str:
    """Return a document as text without colours, and without a newline at its end.

    Parameters
    ----------
    document : Document
        What to show.
    width : int
        Columns of the terminal; tables keep what they need.
    """
    return "\n".join(line.plain for line in lines_of(document, width))


@dataclasses.dataclass(frozen=True)
class Printed:
    """A document that a console of rich prints, in its width and colours."""

    document: Document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from lines_of(self.document, options.max_width)


def lines_of(document: Document, width: int = WIDTH) -> list[Text]:
    """Return the lines of a document; no line ends with a space."""
    found = [line for block in document.opening for line in _lines(block, width)]
    for section in document.sections:
        if found:
            found.append(Text())
        found += _lines(section, width)
    for line in found:
        line.plain = line.plain.replace("\u00a0", " ")
        line.rstrip()
    return found


def _lines(block: Block, width: int) -> Iterable[Text]:
    match block:
        case Section():
            return _section(block, width)
        case Paragraph():
            return _paragraph(block, width)
        case Table():
            return _table(block, width)
        case Tasks():
            return _tasks(block, width)
        case Bullets(items):
            return [line for one in items for line in _wrapped(one, width, "- ", "  ")]
        case Answers(items):
            said = (f"{question} {answer}" for question, answer in items)
            return [line for one in said for line in _wrapped(one, width, "", _ANSWER_INDENT)]
        case Code(text, lines):
            return [Text(text)] if len(text) <= width else [Text(line) for line in lines]
        case FigureGrid(items):
            rows = tuple((one.name, f"{one.value} {one.note}".rstrip()) for one in items)
            columns = (TableColumn(right=False), TableColumn(right=False, wraps=True))
            return _table(Table(columns, rows), width)
        case _:  # a chart
            return []


def _section(section: Section, width: int) -> Iterator[Text]:
    if section.title:
        yield from _wrapped(section.title, width, style="bold")
    for block in section.blocks:
        for line in _lines(block, width - len(section.indent)):
            yield Text(section.indent).append_text(line)


def _paragraph(one: Paragraph, width: int) -> list[Text]:
    if one.fit == "wrap":
        return _wrapped(one.words, width, one.lead, one.indent, one.most)
    line = Text(one.lead).append_text(_styled(one.words))
    if one.fit == "cut":
        line.truncate(width, overflow="ellipsis")
    return [line]


def _tasks(tasks: Tasks, width: int) -> Iterator[Text]:
    for number, one in enumerate(tasks.items, start=1):
        when = f" ({one.when})" if one.when else ""
        yield from _wrapped(one.remedy, width, f"{number}. ", "   ", max(tasks.most - 1, 0))
        yield from _wrapped(f"{one.message}{when}", width, "   ", "   ", tasks.most)


def _styled(words: Words | Text) -> Text:
    if isinstance(words, Text):
        return words.copy()
    text = Text()
    for one in words if isinstance(words, tuple) else (words,):
        if isinstance(one, str):
            text.append(one)
        else:
            text.append(one.text, _TONES[one.tone])
    return text


def _wrapped(
    words: Words | Text,
    width: int,
    lead: str = "",
    indent: str = "",
    most: int = 0,
    style: str = "",
) -> list[Text]:
    """Return text as lines, broken between words and at newlines.

    Parameters
    ----------
    words : Words
        The text.
    width : int
        Cells of a line; of a word that has more, the rest stands on the next.
    lead, indent : str
        What the first line, and each other, begins with.
    most : int
        Lines at most, if they had `WIDTH` cells: as much text, however narrow; 0 for all.
    style : str
        Of all of it, as rich has it.
    """
    text = _styled(words)
    text.stylize(style)
    places = _places(text.plain, width - cell_len(lead), width - cell_len(indent))
    most = -(-most * WIDTH // width)
    is_cut = 0 < most < len(places)
    if is_cut:
        begin, end = places[most - 1]
        room = max(width - cell_len(indent if most > 1 else lead) - cell_len(_CUT), 0)
        while cell_len(text.plain[begin:end]) > room:
            end = max(text.plain.rfind(" ", begin, end), begin)
        places = [*places[: most - 1], (begin, end)]
    lines = [
        Text(indent if number else lead).append_text(text[begin:end])
        for number, (begin, end) in enumerate(places)
    ]
    if is_cut:
        lines[-1].append(_CUT)
    return lines


def _places(text: str, first: int, others: int) -> list[tuple[int, int]]:
    """Return where each line of a text begins and ends, with room for `first` and `others`."""
    places: list[tuple[int, int]] = []
    for part in re.finditer(r"[^\n]*(?:\n|$)", text):
        begin = end = None
        for word in re.finditer(r"[^ \n]+", part[0]):
            start, stop = (part.start() + place for place in word.span())
            room = max(others if places else first, 1)
            if begin is not None and cell_len(text[begin:stop]) > room:
                places.append((begin, end or start))
                begin, room = None, max(others, 1)
            begin = start if begin is None else begin
            while cell_len(text[begin:stop]) > room:
                fitting = (
                    n for n in range(room, 0, -1) if cell_len(text[begin : begin + n]) <= room
                )
                size = next(fitting, 1)
                places.append((begin, begin + size))
                begin, room = begin + size, max(others, 1)
            end = stop
        if begin is not None and end is not None:
            places.append((begin, end))
        elif part[0] == "\n":
            places.append((part.start(), part.start()))
    return places


_Cells: TypeAlias = list[list[tuple[int, Words | Wide, Text]]]
"""Rows of cells, each with the number of its column, and as text."""


def _cells_of(table: Table) -> tuple[_Cells, list[int]]:
    """Return the cells of a table, and how wide its columns want to be."""
    rows = [
        [(place, cell, _cell(cell, table.columns[place])) for place, cell in _placed(row)]
        for row in table.rows
    ]
    widths = [
        max([column.width, *map(cell_len, column.title.split("\n"))]) for column in table.columns
    ]
    for place, cell, text in (one for row in rows for one in row):
        if not isinstance(cell, Wide):
            lines = text.plain.split("\n")
            widths[place] = max([widths[place], *map(cell_len, lines)])
    return rows, widths


def _without_spare(table: Table) -> Table:
    """Return a table without the last column that may be left out; the same if there is none."""
    spare = [place for place, column in enumerate(table.columns) if column.spare]
    if not spare:
        return table
    place = spare[-1]
    return dataclasses.replace(
        table,
        columns=(*table.columns[:place], *table.columns[place + 1 :]),
        rows=tuple((*row[:place], *row[place + 1 :]) for row in table.rows),
    )


def _table(table: Table, width: int) -> Iterator[Text]:
    rows, widths = _cells_of(table)
    while sum(widths) + table.gap * (len(widths) - 1) > width:
        fewer = _without_spare(table)
        if fewer is table:
            break
        table = fewer
        rows, widths = _cells_of(table)
    columns = table.columns
    for place, column in enumerate(columns):
        if column.wraps:
            others = sum(widths) - widths[place] + table.gap * (len(widths) - 1)
            widths[place] = min(widths[place], max(width - others, _FEWEST_CELLS))
    starts = [sum(widths[:place]) + table.gap * place for place in range(len(widths))]

    def laid_out(cells: Iterable[tuple[int, int, bool, Sequence[Text]]]) -> Iterator[Text]:
        """Yield the lines of a row; of each cell place, width, whether it is right, and lines."""
        told = list(cells)
        for number in range(max((len(lines) for *_, lines in told), default=0)):
            line = Text()
            for place, room, is_right, lines in told:
                shown = lines[number] if number < len(lines) else Text()
                if shown.plain:
                    spare = room - cell_len(shown.plain) if is_right else 0
                    line.append(" " * (starts[place] + max(spare, 0) - cell_len(line.plain)))
                    line.append_text(shown)
            yield line

    if table.is_titled:
        heads = [
            _in_column(Text(column.title, "dim"), width, "")
            if column.wraps
            else [Text(line, "dim") for line in column.title.split("\n")]
            for column, width in zip(columns, widths, strict=True)
        ]
        height = max(map(len, heads))
        yield from laid_out(
            (place, widths[place], columns[place].right, [Text()] * (height - len(head)) + head)
            for place, head in enumerate(heads)
        )
    for row in rows:
        cells = []
        for place, cell, text in row:
            end = place + (cell.columns if isinstance(cell, Wide) else 1) - 1
            room = starts[end] + widths[end] - starts[place]
            indent = cell.indent if isinstance(cell, Wide) else ""
            is_right = columns[place].right and not isinstance(cell, Wide)
            cells.append((place, room, is_right, _in_column(text, room, indent)))
        yield from laid_out(cells)


def _placed(row: Sequence[Words | Wide]) -> Iterator[tuple[int, Words | Wide]]:
    """Yield the cells of a row, each with the number of its column."""
    place = 0
    for cell in row:
        yield place, cell
        place += cell.columns if isinstance(cell, Wide) else 1


def _cell(cell: Words | Wide, column: TableColumn) -> Text:
    text = _styled(cell.words if isinstance(cell, Wide) else cell)
    if column.most and cell_len(text.plain) > column.most:
        text.plain = set_cell_size(text.plain, column.most - 1) + "…"
    return text


def _in_column(text: Text, room: int, indent: str) -> list[Text]:
    """Return the lines of a cell; what fits stays as it is, spaces and all."""
    if "\n" not in text.plain and cell_len(text.plain) <= room:
        return [text]
    lead = text.plain[: len(text.plain) - len(text.plain.lstrip(" "))]
    return _wrapped(text, room, lead, indent)
