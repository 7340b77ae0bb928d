# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a recording: one file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import template
from rmm_uvm.report.contents import contents
from rmm_uvm.report.template import INSTALL_HINT

__all__ = ["chart_pixels", "drawn", "page", "placed"]

# A page of eight devices is not eight times as large: each gets fewer buckets.
_MOST_BUCKETS = 700
_FEWEST_BUCKETS = 120


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
    charts = drawn(recording, len(recording.devices))
    script, shown = placed(charts)
    variables = contents(recording, shown)
    scripts = []
    if script:
        library, quiet, printing = template.library()
        scripts = [library, quiet + script, printing]
    return template.render("page.html", {**variables, "page": variables, "inline": inline}, scripts)


def drawn(recording: Recording, n_charted: int) -> dict[int, list[Any]]:
    """Return the charts of every device.

    Parameters
    ----------
    recording : Recording
        What to show.
    n_charted : int
        Devices on the whole page, which share its size.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    try:
        from rmm_uvm.report import axes, strip
        from rmm_uvm.report.charts import charts

        x_range = axes.shared_range(recording.duration_seconds)
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error
    n_buckets = max(_MOST_BUCKETS // max(n_charted, 1), _FEWEST_BUCKETS)
    marks_seconds = strip.marks_seconds(recording)

    def of(device: RecordedDevice) -> list[Any]:
        made = charts(recording, device, x_range, n_buckets, marks_seconds)
        findings = strip.shown_findings(recording, device.device_id)
        for chart in made:
            strip.mark_findings(chart.model, findings)
        above = (
            strip.strip(recording, device.device_id, x_range, max(n_charted, 1)) if made else None
        )
        return [above, *made] if above is not None else made

    return {device.device_id: of(device) for device in recording.devices}


def placed(
    charts: Mapping[int, Sequence[Any]],
) -> tuple[str, dict[int, list[dict[str, Any]]]]:
    """Return the script that draws all charts, and what a template needs of each, by device."""
    from markupsafe import Markup

    models = {chart.name: chart.model for of_device in charts.values() for chart in of_device}
    script, divs = template.components(models)
    return script, {
        device_id: [vars(chart) | {"div": Markup(divs[chart.name])} for chart in of_device]
        for device_id, of_device in charts.items()
    }


def chart_pixels(recording: Recording) -> int:
    """Return how high the charts of a page are together, with their headings, in pixels."""
    charts = drawn(recording, len(recording.devices))
    return sum(chart.height + 75 for of_device in charts.values() for chart in of_device)
