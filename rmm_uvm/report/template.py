# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Templates and scripts of HTML pages that ask the network for nothing.

A content security policy in the page itself forbids every request and every script but those
whose hashes it names. So a stage that is called ``<script>`` is text, even if escaping it were
forgotten somewhere.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.report import words
from rmm_uvm.support.package_files import package_names, package_text

__all__ = ["INSTALL_HINT", "components", "css", "library", "render"]

INSTALL_HINT = "an HTML report needs Bokeh: pip install 'rmm-uvm[report]'"

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


def components(models: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the script that draws charts, and by name the element where each is drawn.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    try:
        from bokeh.embed import components as embedded
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error
    if not models:
        return "", {}
    script, divs = embedded(dict(models), wrap_script=False)
    return script, divs


def library() -> list[str]:
    """Return the scripts that come before those of `components`: Bokeh itself, and printing."""
    from bokeh.resources import Resources

    # Bokeh's own way to set the level logs that it did.
    quiet = 'Bokeh.logger.set_level("error");'
    return [Resources(mode="inline", components=["bokeh"]).js_raw[0], quiet, _PRINTING]


def css() -> str:
    """Return the style sheet of pages."""
    return package_text("rmm_uvm.report", "document.css")


def render(
    name: str, variables: Mapping[str, Any], scripts: Sequence[str], package: str = "rmm_uvm.report"
) -> str:
    """Return a page; what is not marked as HTML is escaped.

    Parameters
    ----------
    name : str
        File of the template, which may import those of this package.
    variables : mapping of str to object
        What it shows.
    scripts : sequence of str
        Put at its end, each an element of its own.
    package : str
        Where the template lies.

    Raises
    ------
    AvailabilityError
        Bokeh, and with it Jinja, is not installed; or a file of this package cannot be read.
    """
    try:
        from jinja2 import ChoiceLoader, Environment, FunctionLoader
        from markupsafe import Markup
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error
    loaders = [FunctionLoader(functools.partial(_found, at)) for at in (package, __package__)]
    environment = Environment(autoescape=True, trim_blocks=True, loader=ChoiceLoader(loaders))
    environment.filters["commands"] = _with_commands
    # Without newlines at the ends: a hash is of the text between the tags.
    stripped = [Markup(script.strip()) for script in scripts]
    return environment.get_template(name).render(
        **variables,
        css=Markup(css()),
        scripts=stripped,
        script_hashes=Markup(" ".join(map(_hash, stripped)) or "'none'"),
    )


def _with_commands(text: object) -> str:
    """Return text as HTML, escaped, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(words.COMMAND.sub(r"<code>\1</code>", str(escape(text))))


def _found(package: str, name: str) -> str | None:
    return package_text(package, name) if name in package_names(package) else None


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
