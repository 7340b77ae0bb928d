# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Thresholds: what can be set, from where, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.watch.judging.thresholds import Thresholds

CONFIGURATION = Path(__file__).resolve().parents[4] / "docs/use/configuration.md"
NUMBERS = {
    "RMM_UVM_WARN_FOOTPRINT": ("footprint_factor", "footprint_rearm_factor"),
    "RMM_UVM_WARN_EVICTION": (
        "eviction_fraction_per_second",
        "eviction_rearm_fraction_per_second",
    ),
    "RMM_UVM_WARN_AMPLIFICATION": ("amplification_factor", "amplification_rearm_factor"),
    "RMM_UVM_WARN_HOST_MEMORY": ("host_memory_fraction", "host_memory_rearm_fraction"),
    "RMM_UVM_WARN_DEVICE_TAKEN": ("device_taken_fraction", ""),
    "RMM_UVM_WARN_PREFETCH": ("prefetch_fraction", ""),
    "RMM_UVM_WARN_WAITING": ("waiting_fraction", "waiting_rearm_fraction"),
}


def test_empty_environment_gives_the_defaults() -> None:
    assert Thresholds.from_environment({}) == Thresholds()
    assert Thresholds.from_environment({"RMM_UVM_WARN_FOOTPRINT": " "}) == Thresholds()


def test_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_WARN_FOOTPRINT", "1.5")
    assert Thresholds.from_environment().footprint_factor == 1.5


@pytest.mark.parametrize("variable", NUMBERS)
def test_variable_sets_its_threshold_and_what_rearms_it_in_proportion(variable: str) -> None:
    name, rearm_name = NUMBERS[variable]
    chosen, default = Thresholds.from_environment({variable: "0.25"}), Thresholds()
    assert getattr(chosen, name) == 0.25
    if rearm_name:
        share = getattr(default, rearm_name) / getattr(default, name)
        assert getattr(chosen, rearm_name) == pytest.approx(0.25 * share)


@pytest.mark.parametrize("variable", NUMBERS)
def test_variable_off_switches_the_kind_off(variable: str) -> None:
    chosen = Thresholds.from_environment({variable: "Off"})
    assert getattr(chosen, NUMBERS[variable][0]) is None


@pytest.mark.parametrize("variable", NUMBERS)
@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "much", "1GiB", "on"])
def test_variable_with_a_useless_value_is_refused_by_name(variable: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{variable} is '{text}': use a number > 0"):
        Thresholds.from_environment({variable: text})


def test_monitor_and_repeat_variables_are_read() -> None:
    chosen = Thresholds.from_environment(
        {
            "RMM_UVM_WARN_MONITOR": "OFF",
            "RMM_UVM_WARN_BUDGET": "off",
            "RMM_UVM_WARN_REPEAT_SECONDS": "0",
        }
    )
    assert (chosen.monitor, chosen.budget, chosen.repeat_seconds) == (False, False, 0.0)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RMM_UVM_WARN_MONITOR", "1"),
        ("RMM_UVM_WARN_BUDGET", "0.5"),
        ("RMM_UVM_WARN_REPEAT_SECONDS", "-1"),
        ("RMM_UVM_WARN_REPEAT_SECONDS", "off"),
        ("RMM_UVM_WARN_REPEAT_SECONDS", "inf"),
    ],
)
def test_monitor_and_repeat_variables_with_useless_values_are_refused(
    variable: str, text: str
) -> None:
    with pytest.raises(ConfigurationError, match=variable):
        Thresholds.from_environment({variable: text})


@pytest.mark.parametrize(
    "values",
    [
        {"footprint_factor": 0},
        {"footprint_factor": True},
        {"footprint_factor": "1"},
        {"footprint_factor": float("nan")},
        {"footprint_rearm_factor": None},
        {"footprint_factor": 0.8},  # re-arms above it
        {"eviction_samples": 0},
        {"eviction_samples": 1.5},
        {"eviction_samples": None},
        {"amplification_window_seconds": 0},
        {"monitor": "on"},
        {"monitor": None},
        {"budget": None},
        {"repeat_seconds": -1},
        {"repeat_seconds": None},
    ],
)
def test_arguments_out_of_bounds_are_refused_by_name(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(values)).split("_")[0]):
        Thresholds(**values)


def test_configuration_names_every_variable_with_its_default() -> None:
    rows = dict(re.findall(r"\| `(RMM_UVM_WARN_\w+)` \| `([\w.]+)` \|", CONFIGURATION.read_text()))
    default = Thresholds()
    expected = {variable: getattr(default, names[0]) for variable, names in NUMBERS.items()}
    assert rows.pop("RMM_UVM_WARN_MONITOR") == "on"
    assert rows.pop("RMM_UVM_WARN_BUDGET") == "on"
    assert float(rows.pop("RMM_UVM_WARN_REPEAT_SECONDS")) == default.repeat_seconds
    assert {variable: float(text) for variable, text in rows.items()} == expected


def test_changed_threshold_takes_what_rearms_it_along() -> None:
    changed = Thresholds().changed(footprint_factor=2, host_memory_fraction=None)
    assert changed.footprint_rearm_factor == 1.8
    assert changed.host_memory_rearm_fraction == Thresholds().host_memory_rearm_fraction


def test_changed_threshold_keeps_what_is_said_to_rearm_it() -> None:
    changed = Thresholds().changed(footprint_factor=2, footprint_rearm_factor=0.5)
    assert changed.footprint_rearm_factor == 0.5


def test_threshold_that_was_off_is_rearmed_in_proportion_to_its_default() -> None:
    off = Thresholds(amplification_factor=None, amplification_rearm_factor=9.0)
    assert off.changed(amplification_factor=3).amplification_rearm_factor == 1.5


def test_changing_what_is_no_threshold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no 'footprint' .*: they have footprint_factor"):
        Thresholds().changed(footprint=2)
