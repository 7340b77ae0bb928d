# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A document as one HTML page that asks the network for nothing.

A content security policy in the page itself forbids every request and every script but those
whose hashes it names. So a stage that is called ``<script>`` is text, even if escaping it were
forgotten somewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.report import words
from rmm_uvm.report.document import Axis, Block, Chart, Document, Section, Table, Tasks, Wide, Words
from rmm_uvm.support.package_files import package_text
from rmm_uvm.support.requirements import install_extra

__all__ = ["INSTALL_HINT", "as_frame", "as_html"]

INSTALL_HINT = f"an HTML report needs Bokeh: {install_extra('report')}"
_MOST_FRAME_PIXELS = 1600  # then the frame scrolls

# A chart on screen is as wide as the window; paper is narrower, and is laid out at once, before the
# chart could draw itself anew. So while the page is printed, pictures stand in for the charts.
_PRINTING = """
addEventListener("beforeprint", () => {
  for (const chart of document.querySelectorAll(".chart [data-root-id]")) {
    const drawn = Bokeh.index[chart.dataset.rootId];
    if (!drawn) continue;
    const picture = drawn.export("png", true).canvas;
    picture.className = "paper";
    chart.parentElement.append(picture);
    chart.classList.add("printed");
  }
});
addEventListener("afterprint", () => {
  for (const picture of document.querySelectorAll(".paper")) picture.remove();
  for (const chart of document.querySelectorAll(".printed")) chart.classList.remove("printed");
});
"""
# Bokeh's own way to set the level logs that it did.
_QUIET = 'Bokeh.logger.set_level("error");'

# Charts of a closed section have no width to be drawn in, and those of many sections take a browser
# many seconds. A section may be opened before its charts are there.
_OPENING = """
const rmmUvmCharts = {};
const rmmUvmChartsOf = (id, draw) => {
  if (document.getElementById(id).open) draw(); else rmmUvmCharts[id] = draw;
};
addEventListener("toggle", (event) => {
  const draw = rmmUvmCharts[event.target.id];
  if (!event.target.open || !draw) return;
  delete rmmUvmCharts[event.target.id];
  draw();
}, true);
addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const section = link && document.getElementById(link.hash.slice(1));
  if (section) section.open = true;
});
const rmmUvmNamed = document.getElementById(location.hash.slice(1));
if (rmmUvmNamed instanceof HTMLDetailsElement) rmmUvmNamed.open = true;
"""


def as_html(document: Document, *, is_inline: bool = False) -> str:
    """Return a page; what comes from others is escaped.

    Parameters
    ----------
    document : Document
        What to show.
    is_inline : bool
        Without a heading and close together, for showing under the cell of a notebook.

    Raises
    ------
    AvailabilityError
        Bokeh, and with it Jinja, is not installed; or a file of this package cannot be read.
    """
    try:
        import bokeh.embed  # noqa: F401
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error
    scripts, elements = _drawn(document)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"words": _words, "cells": _cells, "legend": _legend}
    environment.filters["kind"] = lambda block: type(block).__name__
    # Without newlines at the ends: a hash is of the text between the tags.
    stripped = [Markup(script.strip()) for script in scripts]
    return environment.from_string(package_text("rmm_uvm.report", "document.html")).render(
        document=document,
        is_inline=is_inline,
        elements=elements,
        css=Markup(package_text("rmm_uvm.report", "document.css")),
        scripts=stripped,
        script_hashes=Markup(" ".join(map(_hash, stripped)) or "'none'"),
    )


def as_frame(document: Document) -> str:
    """Return an ``iframe`` that holds a page and may neither reach the notebook nor the network.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    # In ASCII: one letter that is read in another encoding, and the hash of a script is wrong.
    text = html.escape(as_html(document, is_inline=True))
    text = text.encode("ascii", "xmlcharrefreplace").decode()
    blocks = list(_blocks(document.sections))
    charts = sum(block.height + 75 for block in blocks if isinstance(block, Chart))
    tasks = sum(len(block.items) for block in blocks if isinstance(block, Tasks))
    height = min(190 + 68 * tasks + charts, _MOST_FRAME_PIXELS)
    # Without "allow-same-origin" the frame has an origin of its own.
    # In a div, since IPython warns of HTML that is a frame and nothing else.
    return (
        f'<div><iframe title="memory report" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 1px solid #c8c8c8" '
        f'srcdoc="{text}"></iframe></div>'
    )


def _blocks(blocks: Iterable[Block], *, folded: bool = True) -> Iterator[Block]:
    """Yield blocks and those in their sections; on request without what is folded."""
    for block in blocks:
        yield block
        if isinstance(block, Section) and (folded or not block.is_folded):
            yield from _blocks(block.blocks, folded=folded)


def _drawn(document: Document) -> tuple[list[str], dict[str, str]]:
    """Return the scripts of a page, and the elements where its charts are drawn, by their names."""
    from bokeh.resources import Resources

    script, elements = _charts(_blocks(document.sections, folded=False))
    drawing = [script] if script else []
    sections = [block for block in _blocks(document.sections) if isinstance(block, Section)]
    folded = [section for section in sections if section.is_folded]
    for section in folded:
        script, places = _charts(_blocks(section.blocks))
        elements |= places
        if script:
            drawing.append(f"rmmUvmChartsOf('{section.id}', () => {{{script}}});")
    opening = [_OPENING] if folded else []
    if not drawing:  # the library is a million letters
        return opening, elements
    library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    return [library, _QUIET + _PRINTING, *opening, *drawing], elements


def _charts(blocks: Iterable[Block]) -> tuple[str, dict[str, str]]:
    """Return the script that draws the charts among blocks, and their elements."""
    from bokeh.embed import components
    from markupsafe import Markup

    from rmm_uvm.report.drawing import draw, range_of

    ranges: dict[Axis, Any] = {}
    models = {}
    for chart in (block for block in blocks if isinstance(block, Chart)):
        if chart.x not in ranges:
            ranges[chart.x] = range_of(chart.x)
        models[chart.name] = draw(chart, ranges[chart.x])
    if not models:
        return "", {}
    script, elements = components(models, wrap_script=False)
    return script, {name: Markup(element) for name, element in elements.items()}


def _words(text: Words, *, has_commands: bool = True) -> str:
    """Return text as HTML, escaped, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    pieces = []
    for one in text if isinstance(text, tuple) else (text,):
        piece = str(escape(one if isinstance(one, str) else one.text))
        if has_commands:
            piece = words.COMMAND.sub(r"<code>\1</code>", piece)
        if not isinstance(one, str):
            if one.tone == "strong":
                piece = f"<strong>{piece}</strong>"
            elif one.tone:
                piece = f'<span class="{one.tone}">{piece}</span>'
            if one.link:
                piece = f'<a href="#{escape(one.link)}">{piece}</a>'
        pieces.append(piece)
    return Markup("".join(pieces))


def _cells(row: tuple[Words | Wide, ...], table: Table) -> list[tuple[str, int]]:
    """Return the cells of a row as HTML, each with its columns; the last goes on to the edge."""
    columns = [cell.columns if isinstance(cell, Wide) else 1 for cell in row]
    columns[-1] += len(table.columns) - sum(columns)
    shown = []
    for place, cell in enumerate(row):
        # Names of others stay as they are.
        has_commands = place > 0 and not table.columns[place].right
        told = cell.words if isinstance(cell, Wide) else cell
        shown.append(_words(told, has_commands=has_commands))
    return list(zip(shown, columns, strict=True))


def _legend(chart: Chart) -> list[Mapping[str, Any]]:
    from rmm_uvm.report.drawing import legend

    return [vars(key) for key in legend(chart)]


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
