# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What stands under a cell of a notebook: its traffic in a line for each device, and advice."""

from __future__ import annotations

import textwrap

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, words
from rmm_uvm.report.advice import collect, message
from rmm_uvm.report.figures import Figures, between
from rmm_uvm.report.text import missing_sources

__all__ = ["summary"]

_WIDTH = 100


def summary(recording: Recording, begin_seconds: float, end_seconds: float) -> str:
    """Return the traffic from begin to end, seconds since the monitor began, and its advice.

    A finding belongs to the stretch if it was made in it. Without a newline at the end.
    """
    lines: list[str] = []
    for device in recording.devices:
        figures = between(recording, device, begin_seconds, end_seconds)
        if not figures.empty:
            lines.append(_line(recording, device, figures))
    made = [f for f in recording.findings if begin_seconds < f.time_seconds <= end_seconds]
    if not lines:
        made = [finding for finding in made if finding.kind != "monitor"]  # this line says it
        missing = missing_sources(recording)
        reason = missing[0] if missing else "no device"
        seconds = words.clock_text(end_seconds - begin_seconds)
        lines.append(f"uvm: {seconds}, memory could not be watched: {reason}")
    for one in collect(made):
        finding = one.finding
        said = words.plain_name(message(finding, recording), 300)
        text = f"{words.plain_name(finding.remedy, 200)}: {said}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  * ", subsequent_indent="    ")
    return "\n".join(lines)


def _line(recording: Recording, device: RecordedDevice, figures: Figures) -> str:
    many = len(recording.devices) > 1
    name = f"uvm, device {device.device_id}" if many else "uvm"
    parts = [words.clock_text(figures.seconds)]
    if figures.host_to_device_bytes is not None:
        parts.append(f"{words.size(figures.host_to_device_bytes)} to the device")
        parts.append(f"{words.size(figures.device_to_host_bytes)} to the host")
        if figures.device_to_host_bytes:
            whose = f" {budgets.DRIVERS_OWN}" * (device.device_id in recording.budgets)
            parts.append(f"about {words.size(figures.evicted_bytes_estimate)} evicted{whose}")
    if figures.gpu_faults is not None:
        parts.append(f"{words.count(figures.gpu_faults)} GPU faults")
        parts.append(f"{words.count(figures.cpu_faults)} CPU faults")
    if figures.peak_footprint_bytes is not None:
        factor = words.factor(figures.peak_footprint_bytes, device.capacity_bytes)
        most = words.at_most(figures.peak_footprint_bytes)
        of = "capacity unknown" if factor == words.UNKNOWN else f"{factor} times capacity"
        parts.append(f"footprint {most}, {of}")
    return f"{name}{' (simulated)' if device.simulated else ''}: {', '.join(parts)}"
