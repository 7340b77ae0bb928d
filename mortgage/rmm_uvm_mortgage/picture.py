# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A picture of device memory over the course of runs: footprint, what resides, the capacity.

One panel for each run, below one another on a common scale. The horizontal axis is time on a GPU;
on a simulated device it is the order of operations, each stage as wide as any other. Colours are
those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.output import written_whole
from rmm_uvm_mortgage import DISTRIBUTION
from rmm_uvm_mortgage.run_report import RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RESIDENT_COLOUR = "#56B4E9"
_CUDA_COLOUR = "#E69F00"
_FOOTPRINT_COLOUR = "#000000"
_CAPACITY_COLOUR = "#D55E00"
_MIB = 1 << 20
_GIB = 1 << 30
_HEADROOM = 1.35  # for the names of the stages
_NARROWEST_FRACTION = 0.016  # of the axis: narrower stages get no name

_SHORT_NAMES = {
    "load_names_acquisition": "names",
    "load_performance": "load",
    "create_ever_features": "ever",
    "create_delinq_features": "delinq",
    "join_ever_delinq_features": "join ever",
    "create_joined_df": "joined",
    "create_12_mon_features": "12 months",
    "combine_joined_12_mon": "combine",
    "final_performance_delinquency": "final",
    "join_perf_acq_gdfs": "join acq",
    "last_mile_cleaning": "clean",
    "teardown_pool": "teardown",
    "find_training_set": "find set",
    "prep": "PREP",
    "train": "TRAIN",
}


def draw(runs: Sequence[tuple[str, RunReport]], path: Path) -> None:
    """Draw runs into a file.

    Parameters
    ----------
    runs : sequence of (str, RunReport)
        A title and a report for each panel; not empty.
    path : Path
        Ends in ``.png`` or ``.svg``.

    Raises
    ------
    ConfigurationError
        The file has another ending.
    AvailabilityError
        matplotlib is not installed.
    DataError
        The file cannot be written.
    """
    check(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 0.9 + 2.7 * len(runs)), layout="constrained")
    panels = list(figure.subplots(len(runs), squeeze=False)[:, 0])
    highest_bytes = max(_highest_bytes(report) for _, report in runs)
    for panel, (title, report) in zip(panels, runs, strict=True):
        _draw_panel(panel, title, report, highest_bytes)
    handles, labels = _legend(panels)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    device = runs[0][1].device_name
    if runs[0][1].simulated:
        device = "Simulated device: allocations are real, residency is modelled"
    figure.suptitle(device, fontsize=11)
    with written_whole(path, "the picture") as target:
        figure.savefig(target, dpi=130, format=path.suffix[1:].lower())


def check(path: Path) -> None:
    """Raise as `draw` would for the path or a missing matplotlib, before anything is computed."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise ConfigurationError(f"{path}: a picture ends in .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise AvailabilityError("a picture needs matplotlib: pip install matplotlib") from error
    if problem := too_old("cpu", "matplotlib", distribution=DISTRIBUTION):
        raise AvailabilityError(f"a picture: {problem}")


def _draw_panel(panel: Axes, title: str, report: RunReport, highest_bytes: int) -> None:
    samples = report.timeline["samples"]
    unit_bytes, unit = (_GIB, "GiB") if highest_bytes >= 2 * _GIB else (_MIB, "MiB")
    axis = _Axis(report)
    position = [axis.place(row[0]) for row in samples]
    footprint, resident, cuda = ([row[i] / unit_bytes for row in samples] for i in (1, 2, 3))
    resident_name = "managed, resident" if report.simulated else "device memory in use"
    panel.stackplot(
        position,
        resident,
        cuda,
        labels=[resident_name, "cudaMalloc: pool, XGBoost"],
        colors=[_RESIDENT_COLOUR, _CUDA_COLOUR],
        alpha=0.85,
    )
    panel.plot(position, footprint, color=_FOOTPRINT_COLOUR, linewidth=1.1, label="footprint")
    panel.axhline(
        report.capacity_bytes / unit_bytes,
        color=_CAPACITY_COLOUR,
        linestyle="--",
        linewidth=1.6,
        label="device memory",
    )
    _mark_stages(panel, axis, highest_bytes / unit_bytes)
    panel.set_title(title, loc="left", fontsize=10)
    panel.set_ylabel(unit)
    panel.set_ylim(0, highest_bytes / unit_bytes * _HEADROOM)
    panel.set_xlim(0, axis.length)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
    if report.simulated:
        panel.set_xticks([])
        panel.set_xlabel("stages in order, each as wide as the others", fontsize=8)
    else:
        panel.set_xlabel("seconds", fontsize=8)
    _say_how_it_ended(panel, report)


class _Axis:
    """Places positions of a timeline on the horizontal axis."""

    def __init__(self, report: RunReport) -> None:
        self._is_time = report.timeline["position"] == "seconds"
        self.spans: list[tuple[str, float, float]] = [tuple(s) for s in report.timeline["stages"]]
        self._begins = [begin for _, begin, _ in self.spans]
        last = report.timeline["samples"][-1][0]
        self.length = max(last, 1e-9) if self._is_time else max(len(self.spans), 1)

    def place(self, position: float) -> float:
        """Return where a position lies: itself if it is a time, else stages and a fraction."""
        if self._is_time or not self.spans:
            return position
        number = max(bisect_right(self._begins, position) - 1, 0)
        _, begin, end = self.spans[number]
        return number + min(max(position - begin, 0) / max(end - begin, 1), 1)


def _say_how_it_ended(panel: Axes, report: RunReport) -> None:
    ended = report.pipeline.out_of_memory
    if ended is not None:
        panel.text(
            0.985,
            0.5,
            f"out of memory in {ended.stage}",
            transform=panel.transAxes,
            ha="right",
            fontsize=10,
            color=_CAPACITY_COLOUR,
            weight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )


def _mark_stages(panel: Axes, axis: _Axis, top: float) -> None:
    for name, begin, end in axis.spans:
        left, right = axis.place(begin), axis.place(begin) + 1
        if axis.length != len(axis.spans):
            right = axis.place(end)
        panel.axvline(left, color="0.75", linewidth=0.6, zorder=0)
        if (right - left) / axis.length >= _NARROWEST_FRACTION:
            panel.text(
                (left + right) / 2,
                top * (_HEADROOM - 0.02),
                _SHORT_NAMES.get(name, name),
                rotation=90,
                ha="center",
                va="top",
                fontsize=7,
                color="0.3",
            )


def _highest_bytes(report: RunReport) -> int:
    levels = (max(row[1], row[2] + row[3]) for row in report.timeline["samples"])
    return int(max(*levels, report.capacity_bytes, 1))


def _legend(panels: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Return the handles of all panels, each label once."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return list(handles.values()), list(handles)
