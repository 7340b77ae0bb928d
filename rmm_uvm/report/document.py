# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A document for people, as plain frozen values: sections of paragraphs, tables and charts.

Whoever has something to show builds a `Document`. `rmm_uvm.report.as_text` lays it out for a
terminal, `rmm_uvm.report.as_html` makes a page of it. All text is as it was given: the renderers
escape it. JSON is made of figures and not of documents: its keys are what other programs rely on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from rmm_uvm.report.style import Fill, Line

__all__ = [
    "Answers", "Axis", "Bands", "Bars", "Block", "Bullets", "Chart", "Code", "Curve", "Document",
    "Dots", "FigureCell", "FigureGrid", "Level", "Moments", "Paragraph", "Section", "Shade", "Span",
    "Stack", "Table", "TableColumn", "Task", "Tasks", "Wide", "Words", "titled",
]  # fmt: skip

Tone: TypeAlias = Literal["", "strong", "faint", "good", "alarming", "doubtful", "moving"]
"""How text stands out: never the only thing that tells."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A piece of text that stands out by its `tone`, or leads to the section with the id `link`."""

    text: str
    tone: Tone = ""
    link: str = ""


Words: TypeAlias = str | Span | tuple[str | Span, ...]
"""Text, all of it alike or in pieces. A no-break space is a space where no line is broken."""


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Some sentences.

    Parameters
    ----------
    words : Words
        What is said.
    kind : str
        How a page shows it.
    lead, indent : str
        What a terminal's first line, and each other, begins with.
    most : int
        Lines of 80 columns that a terminal shows; 0 for all.
    fit : str
        What a terminal does with a line that is too long: it is broken between words, kept, spaces
        and all, or its end is left out.
    """

    words: Words
    kind: Literal["", "verdict", "failed", "hint", "simulated"] = ""
    lead: str = ""
    indent: str = ""
    most: int = 0
    fit: Literal["wrap", "keep", "cut"] = "wrap"


@dataclasses.dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Task:
    """One thing to do: what, why, and where or when that was the case."""

    remedy: str
    message: str
    when: str = ""


@dataclasses.dataclass(frozen=True)
class Tasks:
    """Tasks, by number. A terminal shows `most` lines of each message, 0 for all.

    Where they `are_places` to look at, they begin with names, which stay as they are written.
    """

    items: tuple[Task, ...]
    most: int = 0
    are_places: bool = False


@dataclasses.dataclass(frozen=True)
class Answers:
    """Questions, each with its answer."""

    items: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Code:
    """A command, and its `lines` for a terminal in which it does not fit in one."""

    text: str
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FigureCell:
    """One figure: its name, its value with a unit, and what is to be said of it."""

    name: str
    value: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class FigureGrid:
    """Figures beside one another."""

    items: tuple[FigureCell, ...]


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    Parameters
    ----------
    title : str
        Above it, the last of its lines just there.
    right : bool
        Numbers: set flush right.
    width, most : int
        The least and the most cells of a terminal that it takes; 0 for as many as it needs.
    wraps : bool
        A terminal breaks its text between words, to what the others leave. For one column.
    spare : bool
        A terminal that is too narrow leaves it out, those further right first. Not for tables with
        cells over several columns.
    """

    title: str = ""
    right: bool = True
    width: int = 0
    most: int = 0
    wraps: bool = False
    spare: bool = False


def titled(titles: Iterable[str], *, right: bool = True) -> tuple[TableColumn, ...]:
    """Return columns with these titles and nothing else of their own.

    Examples
    --------
    >>> titled(["stage", "time"], right=False)[0]
    TableColumn(title='stage', right=False, width=0, most=0, wraps=False, spare=False)
    """
    return tuple(TableColumn(title, right) for title in titles)


@dataclasses.dataclass(frozen=True)
class Wide:
    """A cell over several columns; where a terminal breaks it, lines begin with `indent`."""

    words: Words
    columns: int
    indent: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells, the first of each its name; without any title a list of pairs.

    A row may have fewer cells than there are columns: on a page the last goes on to the edge.
    `gap` is the number of spaces between two columns of a terminal.
    """

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Words | Wide, ...], ...]
    caption: str = ""
    gap: int = 1

    @property
    def is_titled(self) -> bool:
        """Whether any column has a title."""
        return any(column.title for column in self.columns)


Columns: TypeAlias = Mapping[str, Any]
"""Data of a mark by name, lists or arrays of one length. Marks that share it share one source."""

Hover: TypeAlias = tuple[tuple[str, str], ...]
"""Label and template of each line of a hover text; ``@name`` is a column, as Bokeh has it."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """A value over the horizontal axis, and the `area` below it in that colour.

    With `steps` a value holds until its place ("before") or from there ("after"). Nothing is drawn
    where it is NaN. One curve of a chart has the `hover` text, which answers for all.
    """

    data: Columns
    x: str
    y: str
    line: Line
    steps: Literal["", "before", "after"] = ""
    area: str = ""
    hover: Hover = ()


@dataclasses.dataclass(frozen=True)
class Shade:
    """A pale area up to `y`, without an entry in the legend."""

    data: Columns
    x: str
    y: str
    colour: str
    alpha: float


@dataclasses.dataclass(frozen=True)
class Stack:
    """Areas on top of each other: of each column of `fills` one, from below."""

    data: Columns
    x: str
    fills: Mapping[str, Fill]


@dataclasses.dataclass(frozen=True)
class Level:
    """A value that does not change."""

    value: float
    line: Line


@dataclasses.dataclass(frozen=True)
class Moments:
    """Times at which something happened, as thin lines through the whole chart."""

    seconds: tuple[float, ...]
    colour: str


@dataclasses.dataclass(frozen=True)
class Dots:
    """Points that no line joins.

    `label` is for the legend, empty where a line that they lie on is there. `marker` is Bokeh's
    name of one, or a column of such; a hollow one has an edge alone, others one of the colour
    `edge`. Beside each stands what the column `text` has.
    """

    data: Columns
    x: str
    y: str
    label: str
    colour: str
    marker: str = "circle"
    size: int = 8
    hollow: bool = False
    edge: str = ""
    text: str = ""
    hover: Hover = ()


@dataclasses.dataclass(frozen=True)
class Bars:
    """A bar for each row of a chart, from `left` to `right`: names of columns, the first may be "".

    `offset` and `height` are parts of a row: where its middle lies, and how high it is. With
    `is_tick` a stroke is drawn at `right` in place of a bar.
    """

    data: Columns
    right: str
    fill: Fill
    left: str = ""
    offset: float = 0.0
    height: float = 0.62
    is_tick: bool = False
    hover: Hover = ()


@dataclasses.dataclass(frozen=True)
class Bands:
    """Stretches of time in lanes: columns "left", "right", "top", "bottom" and "fill", a colour.

    With names the columns "name" and "middle" too: a long one runs on until the next band.
    """

    data: Columns
    is_named: bool
    hover: Hover = ()


Mark: TypeAlias = Curve | Shade | Stack | Level | Moments | Dots | Bars | Bands


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis of a chart, from 0 to `end`, or with names of `rows` from top to bottom.

    Of a time, in seconds since the start, all charts of a page with the same end move together.
    """

    end: float = 0.0
    label: str = ""
    is_time: bool = False
    rows: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart with what stands around it; its legend is that of its marks.

    Parameters
    ----------
    name : str
        Unique on the page.
    title, caption : str
        Its heading, and what it shows, in words, for readers who cannot see it.
    x, y : Axis
        Its axes.
    marks : tuple of Mark
        What is drawn; areas come first.
    height : int
        Pixels, without heading and legend.
    is_bare : bool
        Without axes: numbers would say nothing. Rows are counted from the top.
    """

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int
    is_bare: bool = False


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a document, on a page with the heading `title` where links to `id` lead.

    A terminal begins each of its lines with `indent`. A folded one shows on a page its heading,
    and small `where`, until it is opened; its charts are drawn then.
    """

    title: str
    blocks: tuple[Block, ...]
    id: str = ""
    indent: str = ""
    where: str = ""
    is_folded: bool = False


Block: TypeAlias = (
    Paragraph | Bullets | Tasks | Answers | Code | FigureGrid | Table | Chart | Section
)


@dataclasses.dataclass(frozen=True)
class Document:
    """All that is shown at once: what comes first, sections, and the title of a page."""

    sections: tuple[Section, ...]
    opening: tuple[Block, ...] = ()
    title: str = ""
