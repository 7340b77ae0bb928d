# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles of training steps: what the profiler's events count as, and the recorded table."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="the script trains")

from .scripts import script as script_of

script = script_of("benchmarks", "training/where_time_goes")


def test_document_has_the_recorded_table() -> None:
    text = script.DOCUMENT.read_text()
    assert script.document_with(text, json.loads(script.RESULT.read_text())) == text


def test_every_program_was_looked_at_in_its_budgets_with_equal_losses() -> None:
    rows = json.loads(script.RESULT.read_text())["rows"]
    found = {(row["program"], row.get("factor")) for row in rows}
    assert found == {(name, each) for name in script.PROGRAMS for each in (None, 1.25, 1.5, 2.0)}
    assert all(row["losses_equal"] for row in rows if "factor" in row)


@pytest.mark.parametrize(
    ("name", "on_device", "kind"),
    [
        ("Memcpy DtoH (Device -> Pinned)", True, "copies_out"),
        ("Memcpy DtoD (Device -> Device)", True, "kernels"),
        ("void at::native::vectorized_elementwise_kernel", True, "kernels"),
        ("cudaLaunchKernelExC", False, "launches"),
        ("cuLaunchKernel", False, "launches"),
        ("cudaDeviceSynchronize", False, "waits"),
        ("cudaMalloc", False, "other_calls"),
        ("cudnn::convolution", False, ""),
        ("ProfilerStep", False, ""),
    ],
)
def test_events_count_as_what_they_are(name: str, on_device: bool, kind: str) -> None:
    assert script.kind_of(name, on_device=on_device) == kind


def test_spans_that_overlap_count_once() -> None:
    second = 10**9
    assert script.covered([(second, 3 * second), (0, 2 * second), (5 * second, 6 * second)]) == 4.0
