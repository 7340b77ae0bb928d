# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Documents of the dashboard: the page of all workers, and two plots of their own.

Needs Bokeh and Dask's dashboard; imported by `rmm_uvm.dask.dashboard.server` when they are there.
Does not cover what stands in a row; see `rmm_uvm.dask.dashboard.rows`.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from bokeh.layouts import column
from bokeh.models import (
    ColumnDataSource,
    Div,
    HoverTool,
    InlineStyleSheet,
    Legend,
    NumeralTickFormatter,
)
from bokeh.plotting import figure
from distributed.dashboard.components import add_periodic_callback
from distributed.dashboard.components.scheduler import BOKEH_THEME, TICKS_1024, env
from distributed.dashboard.utils import update
from distributed.utils import url_escape
from jinja2 import Environment
from markupsafe import Markup

from rmm_uvm.dask.dashboard.history import HISTORY_SECONDS, History
from rmm_uvm.dask.dashboard.rows import WorkerSeen, cards, rate, rows
from rmm_uvm.dask.worker.figures import WorkerFigures, name_order
from rmm_uvm.report import style, words
from rmm_uvm.support.package_files import package_text

__all__ = ["documents", "workers_seen"]

_REFRESH_MILLISECONDS = 500
_TRAFFIC_HEIGHT = 180
_DIRECTIONS = ("host_to_device", "device_to_host", "evicted")
_FIELDS = ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate")


def documents(history: History) -> dict[str, Any]:
    """Return what fills a document, by its path, for `distributed.dashboard.core`."""
    return {
        "/rmm-uvm": functools.partial(_page, history),
        "/individual-rmm-uvm-memory": functools.partial(_alone, MemoryBars, history),
        "/individual-rmm-uvm-traffic": functools.partial(_alone, TrafficLines, history),
    }


def workers_seen(scheduler: Any, history: History) -> list[WorkerSeen]:
    """Return each device of all workers, in order of their names, numbers by their size."""
    seen = [
        WorkerSeen(
            address=ws.address,
            name=str(ws.name),
            status=ws.status.name,
            figures=figures,
            history=history.of(ws.address, figures.device_id),
        )
        for ws in scheduler.workers.values()
        for figures in WorkerFigures.from_metrics(ws.metrics).of_devices
    ]
    return sorted(seen, key=lambda worker: name_order(worker.name))


class WorkersTable:
    """Cards of the cluster and a row for each worker, as HTML in a Bokeh model."""

    def __init__(self, scheduler: Any, history: History) -> None:
        self.scheduler = scheduler
        self.history = history
        css = InlineStyleSheet(css=_resource("dashboard.css"))
        self.root = Div(sizing_mode="stretch_width", stylesheets=[css], disable_math=True)
        environment = Environment(autoescape=True, trim_blocks=True)
        self._template = environment.from_string(_resource("dashboard.html"))

    def update(self) -> None:
        """Show what is known now."""
        seen = workers_seen(self.scheduler, self.history)
        shown = rows(seen, time.monotonic())
        text = self._template.render(
            cards=cards(seen),
            rows=[vars(row) | {"href": _href(row.address)} for row in shown],
            any_simulated=any(row.simulated for row in shown),
            history_minutes=f"{HISTORY_SECONDS / 60:g}",
        )
        if text != self.root.text:
            self.root.text = text


class TrafficLines:
    """Lines of what all workers together moved each way in the last two minutes."""

    def __init__(self, scheduler: Any, history: History, **keywords: Any) -> None:
        self.history = history
        self.source = ColumnDataSource({name: [] for name in ("seconds", *_DIRECTIONS)})
        self.root = figure(
            title="Traffic of all workers",
            x_range=(-HISTORY_SECONDS, 0),
            y_axis_label="GB/s",
            x_axis_label="seconds ago",
            tools="",
            toolbar_location=None,
            name="rmm_uvm_traffic",
            **keywords,
        )
        self.root.xaxis.formatter = NumeralTickFormatter(format="0")
        self.root.xgrid.visible = False
        self.root.axis.minor_tick_line_color = None
        self.root.y_range.start = 0
        self.root.yaxis.ticker.desired_num_ticks = 4
        # Above and not within: on a narrow page it would hide the lines.
        legend = Legend(
            orientation="horizontal",
            border_line_alpha=0,
            background_fill_alpha=0,
            label_text_font_size="12px",
            padding=0,
            margin=0,
            spacing=12,
            glyph_height=14,
            label_height=14,
        )
        self.root.add_layout(legend, "above")
        for name, field in zip(_DIRECTIONS, _FIELDS, strict=True):
            line = style.LINES[field]
            self.root.line(
                "seconds",
                name,
                source=self.source,
                line_color=line.colour,
                line_dash=list(line.dash),
                line_width=line.width,
                legend_label=line.label,
            )
        self.root.add_tools(
            HoverTool(
                mode="vline",
                renderers=self.root.renderers[:1],
                tooltips=[
                    ("seconds ago", "@seconds{0}"),
                    *(
                        (style.LINES[field].label, f"@{name}{{0.00}}")
                        for name, field in zip(_DIRECTIONS, _FIELDS, strict=True)
                    ),
                ],
            )
        )

    def update(self) -> None:
        """Show what is known now."""
        points = self.history.of_all()
        now = time.monotonic()
        columns = {name: [getattr(point, name) for point in points] for name in _DIRECTIONS}
        known = [value for values in columns.values() for value in values if value is not None]
        scale, unit = words.rate_unit(max(known, default=0.0))
        self.root.yaxis.axis_label = unit
        self.root.y_range.end = max(max(known, default=0.0) / scale * 1.25, 1.0)
        data = {
            name: [float("nan") if value is None else value / scale for value in values]
            for name, values in columns.items()
        }
        update(self.source, {"seconds": [point.seconds - now for point in points], **data})


class MemoryBars:
    """Footprint and capacity of every worker as bars, for a panel of its own."""

    def __init__(self, scheduler: Any, history: History, **keywords: Any) -> None:
        self.scheduler = scheduler
        self.history = history
        names = (
            "y", "worker", "address", "resident", "footprint", "capacity", "footprint_text",
            "resident_text", "capacity_text", "rate",
        )  # fmt: skip
        self.source = ColumnDataSource({name: [] for name in names})
        self.root = figure(
            title="Managed memory", tools="", toolbar_location=None, name="rmm_uvm_memory",
            **keywords,
        )  # fmt: skip
        everything = self.root.hbar(
            y="y", left=0, right="footprint", height=0.8, source=self.source,
            fill_color=style.ELSEWHERE.colour, fill_alpha=0.5, line_width=0,
            hatch_pattern=style.ELSEWHERE.hatch, hatch_color=style.ELSEWHERE.hatch_colour,
            hatch_weight=1,
        )  # fmt: skip
        self.root.hbar(
            y="y", left=0, right="resident", height=0.8, source=self.source,
            fill_color=style.AREA_COLOUR, line_width=0,
        )  # fmt: skip
        self.root.scatter(
            "capacity", "y", source=self.source, marker="dash", angle=1.5708, size=22,
            line_color="#111111", line_width=3,
        )  # fmt: skip
        self.root.xaxis.ticker.update(**TICKS_1024)
        self.root.xaxis.formatter = NumeralTickFormatter(format="0.0 b")
        self.root.x_range.start = 0
        self.root.yaxis.visible = False
        self.root.ygrid.visible = False
        self.root.add_tools(
            HoverTool(
                point_policy="follow_mouse",
                renderers=[everything],
                tooltips=[
                    ("worker", "@worker (@address)"),
                    ("footprint", "@footprint_text of @capacity_text"),
                    ("resident", "@resident_text"),
                    ("to the host", "@rate"),
                ],
            )
        )

    def update(self) -> None:
        """Show what is known now."""
        seen = workers_seen(self.scheduler, self.history)
        told = [worker.figures for worker in seen]
        footprints = [one.footprint_bytes or 0 for one in told]
        known = [one.footprint_bytes for one in told if one.footprint_bytes is not None]
        self.root.title.text = f"Managed memory: {words.size(sum(known) if known else None)}"
        update(
            self.source,
            {
                # From top to bottom, as in the table.
                "y": [-number for number in range(len(seen))],
                "worker": [words.plain_name(worker.name) for worker in seen],
                "address": [worker.address for worker in seen],
                "footprint": footprints,
                "resident": [
                    min(one.resident_bytes or 0, most)
                    for one, most in zip(told, footprints, strict=True)
                ],
                "capacity": [one.capacity_bytes or float("nan") for one in told],
                "footprint_text": [words.size(one.footprint_bytes) for one in told],
                "resident_text": [words.size(one.resident_bytes) for one in told],
                "capacity_text": [words.size(one.capacity_bytes) for one in told],
                "rate": [rate(one.device_to_host_bytes_per_second) for one in told],
            },
        )


def _page(history: History, scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    table = WorkersTable(scheduler, history)
    traffic = TrafficLines(scheduler, history, height=_TRAFFIC_HEIGHT, sizing_mode="stretch_width")
    for component in (table, traffic):
        component.update()
        add_periodic_callback(doc, component, _REFRESH_MILLISECONDS)
    doc.add_root(column(traffic.root, table.root, sizing_mode="stretch_width"))
    doc.title = "Dask: managed memory"
    doc.theme = BOKEH_THEME
    doc.template = env.get_template("simple.html")
    doc.template_variables.update(extra)


def _alone(kind: Any, history: History, scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    plot = kind(scheduler, history, sizing_mode="stretch_both")
    plot.update()
    add_periodic_callback(doc, plot, _REFRESH_MILLISECONDS)
    doc.add_root(plot.root)
    doc.theme = BOKEH_THEME
    doc.title = "Dask: managed memory"


def _href(address: str) -> Markup:
    return Markup(f"info/worker/{url_escape(address)}.html")


def _resource(name: str) -> str:
    return package_text("rmm_uvm.dask.dashboard", name)
