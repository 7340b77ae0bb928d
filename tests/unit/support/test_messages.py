# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Values in messages stay short, whatever they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rmm_uvm.dask.settings import settings_of
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.pool.arguments import make_monitor
from rmm_uvm.support.machine_files import parse_machine
from rmm_uvm.support.messages import shown
from rmm_uvm.watch.judging.thresholds import Thresholds


def test_short_values_are_shown_as_python_spells_them() -> None:
    assert [shown(value) for value in ("a", 1.5, None, [1])] == ["'a'", "1.5", "None", "[1]"]


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (lambda: settings_of({"eviction": "lruu"}), "'lruu' (did you mean 'lru'?): use one of"),
        (lambda: settings_of({"prefetch": 7}), "prefetch=7: use one of"),
        (lambda: settings_of({"device_budegt": 1}), "(did you mean 'device_budget'?): there are"),
        (lambda: make_monitor({"interval_secs": 1}, [0]), "(did you mean 'interval_seconds'?)"),
        (lambda: Thresholds().changed(footprint_facto=1), "(did you mean 'footprint_factor'?)"),
    ],
)
def test_misspelt_word_is_told_with_the_one_that_was_meant(
    refused: Callable[[], object], told: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        refused()
    assert told in str(caught.value)


def test_long_deep_and_huge_values_are_shown_in_short() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown("x" * 81) == "'" + "x" * 76 + "..."
    assert shown(deep) == "<list>"
    assert shown(10**5000) == "<int>"


@pytest.mark.parametrize(
    "section",
    [
        {"prefetch": "x" * 10_000},
        {"driver": "simulated:" + "9" * 10_000},
        {"x" * 10_000: 1},
        {"comm": {"wait_seconds": 10**400}},
        {"comm": {"wait_seconds": 10**5000}},
        {"thresholds": {"host_memory_fraction": 10**400}},
        {"initial_pool_size": 10**5000},
    ],
)
def test_setting_of_any_length_is_refused_in_a_line(section: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings_of(section)
    assert len(str(caught.value)) < 500


def test_machine_file_with_a_number_too_long_to_print_is_refused() -> None:
    text = f'[machine]\nname = "n"\ngpu = "g"\nlink = "l"\nmeasured = 0x{"f" * 4000}\n'
    with pytest.raises(DataError, match=r"machine.measured is <int>: true or false"):
        parse_machine(text, "file")
