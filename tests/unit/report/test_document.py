# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Documents as text and as pages, whoever shows them: lines, tables, escaping, charts."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from rmm_uvm.report.as_html import as_html
from rmm_uvm.report.as_text import Printed, as_text
from rmm_uvm.report.document import (
    Answers,
    Axis,
    Bands,
    Bars,
    Block,
    Bullets,
    Chart,
    Code,
    Curve,
    Document,
    Dots,
    FigureCell,
    FigureGrid,
    Level,
    Paragraph,
    Section,
    Shade,
    Span,
    Stack,
    Table,
    TableColumn,
    Task,
    Tasks,
    Wide,
    plain,
    titled,
)
from rmm_uvm.report.drawing import draw, legend
from rmm_uvm.report.style import Fill, Line

from .test_page import Outline

HOSTILE = "<script>document.title='broken'</script>"
DATA = {"x": [0.0, 1.0], "y": [1.0, 2.0]}
LINE = Line("a line", "#000000", (6, 2))


def text_of(*blocks: Block, width: int = 80) -> list[str]:
    return as_text(Document((), blocks), width).splitlines()


def page_of(*blocks: Block, **others: Any) -> str:
    return as_html(Document((Section("A part", blocks, "part", **others),), title="A page"))


def chart(*marks: Any, **others: Any) -> Chart:
    whole: dict[str, Any] = {"x": Axis(1.0, "GiB"), "y": Axis(2.0, "times"), **others}
    return Chart("chart", "A chart", "What it shows.", marks=marks, height=100, **whole)


# -- text ---------------------------------------------------------------------------------------


@given(st.text("ab \n数", max_size=200), st.integers(4, 60), st.sampled_from(["", "- ", "    "]))
def test_text_of_any_width_fits_and_loses_nothing(text: str, width: int, lead: str) -> None:
    indent = " " * min(len(lead), 2)
    lead = lead[: width - 2]
    lines = text_of(Paragraph(text, lead=lead, indent=indent), width=width)
    assert all(cell_len(line) <= width for line in lines)
    told = "".join(lines).replace(" ", "").removeprefix(lead.replace(" ", ""))
    assert told == text.replace(" ", "").replace("\n", "")


def test_text_is_broken_between_words_and_not_at_hyphens() -> None:
    assert text_of(Paragraph("a rtx6000-blackwell card", indent="  "), width=12) == [
        "a",
        "  rtx6000-bl",
        "  ackwell",
        "  card",
    ]
    assert text_of(Paragraph("one-two three"), width=8) == ["one-two", "three"]
    assert text_of(Paragraph("51\u00a0% of\u00a0it"), width=6) == ["51 %", "of it"]


def test_text_that_is_too_long_ends_with_a_mark_and_as_much_on_any_terminal() -> None:
    long = Paragraph("word " * 100, most=2)
    assert len(text_of(long)) == 2
    assert text_of(long)[-1].endswith("word …")
    assert len(text_of(long, width=40)) == 4
    assert "…" not in text_of(Paragraph("word " * 30, most=2))[-1]


def test_lines_that_are_kept_or_cut_are_one() -> None:
    path = "/a  folder/" + "x" * 100
    assert text_of(Paragraph(path, fit="keep")) == [path]
    (cut,) = text_of(Paragraph(path, fit="cut"))
    assert len(cut) == 80


def test_sections_have_a_blank_line_between_them_and_none_around() -> None:
    sections = (Section("one", (Paragraph("a"),), indent="  "), Section("", (Paragraph("b"),)))
    assert as_text(Document(sections)) == "one\n  a\n\nb"
    assert as_text(Document(sections[1:], (Paragraph("first"),))) == "first\n\nb"


def test_table_aligns_numbers_cuts_names_and_breaks_only_what_may_be() -> None:
    columns = (
        TableColumn("name", right=False, width=6, most=6),
        TableColumn("to the\nhost"),
        TableColumn("why", right=False, wraps=True),
    )
    rows = (("a very long name", "7", "since it is so"), ("b", "10.5", ""))
    assert text_of(Table(columns, rows), width=34) == [
        "       to the",
        "name     host why",
        "a ver…      7 since it is so",
        "b        10.5",
    ]
    assert text_of(Table(columns, (("b", "7", "word " * 6),)), width=34)[2:] == [
        "b           7 word word word word",
        "              word word",
    ]


def test_cell_over_several_columns_goes_on_below_itself() -> None:
    columns = titled(("card", "set", "time"))
    rows = (("8 GiB", "0.5", "1 s"), (Wide("  all of it", 2, "    "), "2 s"))
    assert text_of(Table(columns, rows)) == [
        " card set time",
        "8 GiB 0.5  1 s",
        "  all of   2 s",
        "    it",
    ]


def test_pairs_have_no_line_of_titles() -> None:
    pairs = Table((TableColumn(right=False), TableColumn(right=False, wraps=True)), (("a", "b c"),))
    assert text_of(pairs) == ["a b c"]


def test_every_kind_of_block_has_a_text_and_charts_have_none() -> None:
    assert text_of(Bullets(("one", "two")))[1] == "- two"
    assert text_of(Tasks((Task("do it", "it is slow", "twice"),))) == [
        "1. do it",
        "   it is slow (twice)",
    ]
    assert text_of(Answers((("Why?", "So."),))) == ["Why? So."]
    assert text_of(FigureGrid((FigureCell("Peak", "1 GiB", "at most"),))) == ["Peak 1 GiB at most"]
    code = Code("call(a, b)", ("call(", "    a,", "    b,", ")"))
    assert text_of(code) == ["call(a, b)"]
    assert text_of(code, width=8) == ["call(", "    a,", "    b,", ")"]
    assert text_of(chart()) == []


def test_colours_are_for_terminals_alone() -> None:
    shown = Document((Section("title", (Paragraph((Span("yes", "good"), " it is")),)),))
    for is_terminal in (True, False):
        out = io.StringIO()
        colours = "standard" if is_terminal else None
        console = Console(file=out, color_system=colours, width=20)
        console.print(Printed(shown))
        assert ("\x1b[" in out.getvalue()) == is_terminal
    assert out.getvalue() == "title\nyes it is\n"
    assert plain((Span("yes", "good"), " it is")) == "yes it is"


def test_documents_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Paragraph("a").words = "b"  # type: ignore[misc]


# -- pages --------------------------------------------------------------------------------------


def test_page_escapes_what_it_is_given_in_every_kind_of_block() -> None:
    table = Table(titled((HOSTILE, "a"), right=False), ((HOSTILE, HOSTILE),), HOSTILE)
    page = page_of(
        Paragraph((HOSTILE, Span(HOSTILE, "alarming", "part"))),
        Bullets((HOSTILE,)),
        Tasks((Task(HOSTILE, HOSTILE, HOSTILE),)),
        Answers(((HOSTILE, HOSTILE),)),
        Code(HOSTILE, ()),
        FigureGrid((FigureCell(HOSTILE, HOSTILE, HOSTILE),)),
        table,
        dataclasses.replace(chart(), title=HOSTILE, caption=HOSTILE),
        Section(HOSTILE, (), "other"),
        Section(HOSTILE, (), "folded", where=HOSTILE, is_folded=True),
    )
    assert HOSTILE not in page
    assert Outline(page).text.count(HOSTILE) == 21


def test_page_shows_commands_as_code_but_not_in_names() -> None:
    table = Table(titled(("a", "b"), right=False), (("`rm`", "run `ls`"),))
    page = page_of(table, Paragraph("try `top`"))
    assert '<th scope="row">`rm`</th><td>run <code>ls</code></td>' in page
    assert "<p>try <code>top</code></p>" in page


def test_short_row_of_a_page_goes_on_to_the_edge() -> None:
    page = page_of(Table(titled(("a", "b", "c")), (("1", "2", "3"), ("4", "no figures"), ("5",))))
    assert "<td>3</td></tr>" in page
    assert '<td colspan="2">no figures</td></tr>' in page
    assert '<th scope="row" colspan="3">5</th></tr>' in page


def test_page_draws_charts_of_folded_sections_when_they_are_opened() -> None:
    assert "rmmUvmChartsOf('part'" in page_of(chart(), is_folded=True)
    assert "rmmUvmChartsOf" not in page_of(chart())
    assert not Outline(page_of(Paragraph("a"))).scripts


def test_page_says_once_in_a_section_that_charts_need_javascript() -> None:
    second = dataclasses.replace(chart(), name="second")
    assert page_of(chart(), second).count("<noscript>") == 1
    assert "<noscript>" not in page_of(Paragraph("a"))


# -- charts -------------------------------------------------------------------------------------


def test_legend_has_an_entry_for_each_mark_with_a_label() -> None:
    fill = Fill("an area", "#E69F00", "dot", "M5 6h2")
    marks = (
        Curve(DATA, "x", "y", LINE, area="#56B4E9"),
        Shade(DATA, "x", "y", "#000000", 0.1),
        Stack(DATA, "x", {"y": fill}),
        Level(1.0, Line("a level", "#D55E00")),
        Dots(DATA, "x", "y", "", "#000000"),
        Dots(DATA, "x", "y", "points", "#009E73", hollow=True),
    )
    found = legend(chart(*marks))
    assert [key.label for key in found] == ["a line", "an area", "a level", "points"]
    assert [key.dash for key in found] == ["6 2", "", "", ""]
    assert [key.hatch for key in found] == [None, "M5 6h2", None, None]
    assert [key.marker for key in found] == [False, False, False, True]
    bars = Bars(DATA, "x", fill), Bars(DATA, "y", Fill("a tick", "#111111"), is_tick=True)
    assert [key.hatch for key in legend(chart(*bars))] == ["M5 6h2", None]


def test_marks_with_the_same_data_share_a_source_and_areas_lie_below() -> None:
    curves = (Curve(DATA, "x", "y", LINE), Curve(DATA, "x", "y", LINE, "after", "#56B4E9"))
    drawn = draw(chart(*curves))
    assert len({id(one.data_source) for one in drawn.renderers}) == 1
    names = [type(one.glyph).__name__ for one in drawn.renderers]
    assert names == ["VAreaStep", "Line", "Step"]


def test_rows_of_bars_are_named_from_top_to_bottom() -> None:
    bars = Bars(DATA, "x", Fill("moved", "#000000"), hover=(("worker", "@row"),))
    drawn = draw(chart(bars, y=Axis(rows=("first", "second"))))
    assert drawn.y_range.factors == ["second", "first"]
    assert drawn.renderers[0].data_source.data["row"] == ["first", "second"]


def test_bands_with_names_are_drawn_one_by_one_and_others_at_once() -> None:
    data = {name: [0.0, 1.0] for name in ("left", "right", "top", "bottom", "middle")}
    data |= {"fill": ["#DCE9F2"] * 2, "name": ["a", "b"]}
    for is_named, number in ((True, 4), (False, 1)):
        bare = chart(Bands(data, is_named), x=Axis(1.0, is_time=True), is_bare=True)
        assert len(draw(bare).renderers) == number
