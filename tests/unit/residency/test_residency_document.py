# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""docs/use/budget.md names what there is, with the numbers of the code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import rmm_uvm
from rmm_uvm.residency import POLICIES, Budget, ResidencyStatistics
from rmm_uvm.residency.statistics import SCORE_WINDOW

REPOSITORY = Path(__file__).resolve().parents[3]
TEXT = " ".join((REPOSITORY / "docs/use/budget.md").read_text().split())


def test_document_names_every_setting_statistic_and_policy() -> None:
    named = set(re.findall(r"`(\w+)`", TEXT))
    settings = {field.name for field in dataclasses.fields(Budget)} - {"reason"}
    statistics = {field.name for field in dataclasses.fields(ResidencyStatistics)}
    assert settings | statistics | set(POLICIES) <= named


def test_document_has_the_thresholds_of_the_predictor() -> None:
    source = (REPOSITORY / "cpp/include/rmm_uvm/residency/eviction_policy.hpp").read_text()
    on, off = (
        round(float(re.search(rf"{name}\s*= ([\d.]+);", source)[1]) * 100)  # type: ignore[index]
        for name in ("on_above", "off_below")
    )
    assert f"less than {off} % of the last {SCORE_WINDOW} uses" in TEXT
    assert f"more than {on} %" in TEXT
    header = (REPOSITORY / "cpp/include/rmm_uvm/residency/use_predictor.hpp").read_text()
    assert f"score_window = {SCORE_WINDOW};" in header


def test_document_has_the_defaults_of_a_budget() -> None:
    budget = Budget(32 << 30)
    kept = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget=64 << 20)
    assert budget.ahead_bytes is None
    assert rmm_uvm.residency_statistics(kept).ahead_bytes == (64 << 20) // 8
    assert budget.low_bytes == budget.budget_bytes - (384 << 20)
    small = Budget(1 << 30)
    assert small.low_bytes == small.budget_bytes - small.budget_bytes // 48
    assert "1/48 below the budget, at most 384 MiB" in TEXT
    assert "so far ahead: 1/8 of the budget at first" in TEXT
