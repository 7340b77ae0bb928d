# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Times as reports, plans and summaries write them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.report import Report
from rmm_uvm.report.words import clock_text

from . import recordings

UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (1e-9, "1 ns"),
        (1.5e-8, "15 ns"),
        (9.996e-7, "1.00 us"),
        (1.234e-5, "12.3 us"),
        (0.000123, "123 us"),
        (0.0009996, "1.00 ms"),
        (0.00612, "6.12 ms"),
        (0.009949, "9.95 ms"),
        (0.00996, "0.010 s"),
        (0.0123, "0.012 s"),
        (0.9, "0.900 s"),
        (12.34, "12.3 s"),
        (4000, "1:06:40"),
        (-0.0005, "-500 us"),
    ],
)
def test_time_is_told_with_digits_that_count(seconds: float, told: str) -> None:
    assert clock_text(seconds) == told


@given(st.floats(1e-9, 299.9))
def test_any_time_is_told_to_one_in_twenty_and_never_as_nothing(seconds: float) -> None:
    number, unit = clock_text(seconds).split()
    assert abs(float(number) * UNIT_SECONDS[unit] / seconds - 1) <= 0.05
    assert len(number) <= 5


def test_report_of_a_short_run_tells_how_long_it_was() -> None:
    whole = recordings.fitting()
    samples = whole.samples.copy()
    samples["time_ns"] = samples["time_ns"] * (420_000 / samples["time_ns"][-1])
    text = str(Report(dataclasses.replace(whole, samples=samples)))
    assert "watched memory for 420 us" in text
    assert "0.000 s" not in text
