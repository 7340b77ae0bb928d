# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every variable that can be set is fuzzed, and what becomes of each is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmm_uvm.watch.judging.thresholds import Thresholds

from . import settings_target
from .promises import Finding
from .settings_target import VARIABLES, environment

DOCUMENT = Path(__file__).parents[2] / "docs/use/configuration.md"


def told(**values: str) -> bytes:
    """Return the input in which these variables, and no others, have a value."""
    return "\n".join(values.get(name, "") for name in VARIABLES).encode()


def test_every_variable_of_the_document_is_fuzzed() -> None:
    rows = re.findall(r"^\| `(RMM_UVM_\w+)`", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 10
    assert sorted(VARIABLES) == sorted(rows)


@pytest.mark.parametrize("name", VARIABLES)
def test_value_of_a_variable_that_is_long_or_wrong_is_refused_in_a_line(name: str) -> None:
    for value in ("never" * 300, "-1", "1e999", "nan", "\x1b[2J", "½"):
        environment(told(**{name: value}))


def test_target_notices_counters_that_are_neither_on_nor_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_target, "counters_are_on", lambda: "perhaps")
    with pytest.raises(Finding, match="perhaps"):
        environment(told())


def test_target_notices_a_simulated_device_of_half_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment(told(RMM_UVM_DRIVER="simulated:64MiB"))
    monkeypatch.setattr(settings_target, "simulated_bytes", lambda *_: 1 << 20)
    with pytest.raises(Finding, match="1048576 bytes"):
        environment(told(RMM_UVM_DRIVER="simulated:64MiB"))


def test_target_notices_a_threshold_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rmm_uvm.watch.judging.thresholds._number", lambda *_: float("inf"), raising=True
    )
    monkeypatch.setattr(Thresholds, "__post_init__", lambda _: None)
    monkeypatch.setattr("rmm_uvm.watch.judging.thresholds._check", lambda *_: None)
    with pytest.raises(Finding, match="prefetch_fraction is inf"):
        environment(told(RMM_UVM_WARN_PREFETCH="0.5"))
