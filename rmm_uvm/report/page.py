# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The HTML page: one file with everything in it, that asks the network for nothing.

A content security policy in the page itself forbids every request and every script but those
that this module put there, known by their hashes. So a stage that is called ``<script>`` is text,
even if escaping it were forgotten somewhere.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.report.contents import contents
from rmm_uvm.watch.recording import DeviceFacts, Recording

__all__ = ["chart_pixels", "page"]

INSTALL_HINT = "an HTML report needs Bokeh: pip install 'rmm-uvm[report]'"

# A page of eight devices is not eight times as large: each gets fewer buckets.
_MOST_BUCKETS = 700
_FEWEST_BUCKETS = 120

# A chart on screen is as wide as the window; paper is narrower, and is laid out at once, before the
# chart could draw itself anew. So while the page is printed, pictures stand in for the charts.
_PRINTING = """
addEventListener("beforeprint", () => {
  for (const chart of document.querySelectorAll(".chart [data-root-id]")) {
    const picture = Bokeh.index[chart.dataset.rootId].export("png", true).canvas;
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


def page(recording: Recording, *, inline: bool = False) -> str:
    """Return the page.

    Parameters
    ----------
    recording : Recording
        What to show.
    inline : bool
        Only advice and charts, for showing under the cell of a notebook.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    try:
        from bokeh.embed import components
        from bokeh.resources import Resources
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error

    drawn = _drawn(recording)
    models = {chart.name: chart.model for charts in drawn.values() for chart in charts}
    scripts, divs = [], {}
    if models:
        script, divs = components(models, wrap_script=False)
        library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
        # Bokeh's own way to set the level logs that it did.
        quiet = 'Bokeh.logger.set_level("error");'
        # Without newlines at the ends: a hash is of the text between the tags.
        scripts = [Markup(one.strip()) for one in (library, quiet + script, _PRINTING)]
    shown = {
        device_id: [vars(chart) | {"div": Markup(divs[chart.name])} for chart in charts]
        for device_id, charts in drawn.items()
    }
    environment = Environment(autoescape=True, trim_blocks=True)
    template = environment.from_string(_resource("page.html"))
    return template.render(
        **contents(recording, shown),
        inline=inline,
        css=Markup(_resource("page.css")),
        scripts=scripts,
        script_hashes=Markup(" ".join(map(_hash, scripts)) or "'none'"),
    )


def chart_pixels(recording: Recording) -> int:
    """Return how high the charts of a page are together, with their headings, in pixels."""
    return sum(chart.height + 75 for charts in _drawn(recording).values() for chart in charts)


def _drawn(recording: Recording) -> dict[int, list[Any]]:
    """Return the charts of every device."""
    from rmm_uvm.report import axes, strip
    from rmm_uvm.report.charts import charts

    x_range = axes.shared_range(recording.duration_seconds)
    n_buckets = max(_MOST_BUCKETS // max(len(recording.devices), 1), _FEWEST_BUCKETS)
    marks_seconds = strip.marks_seconds(recording)

    def of(device: DeviceFacts) -> list[Any]:
        made = charts(recording, device, x_range, n_buckets, marks_seconds)
        findings = strip.shown_findings(recording, device.device_id)
        for chart in made:
            strip.mark_findings(chart.model, findings)
        above = strip.strip(recording, device.device_id, x_range) if made else None
        return [above, *made] if above is not None else made

    return {device.device_id: of(device) for device in recording.devices}


def _resource(name: str) -> str:
    return resources.files("rmm_uvm.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
