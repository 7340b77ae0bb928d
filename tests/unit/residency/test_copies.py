# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much host memory copies may take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.residency import Budget
from rmm_uvm.residency.copies import room_for_copies

MIB = 1 << 20


def host_of(root: Path, available_bytes: int) -> Path:
    (root / "proc").mkdir()
    text = (
        f"MemTotal: {2 * available_bytes // 1024} kB\nMemAvailable: {available_bytes // 1024} kB\n"
    )
    (root / "proc/meminfo").write_text(text)
    return root


def test_quarter_of_what_the_host_has_is_for_copies(tmp_path: Path) -> None:
    root = host_of(tmp_path, 512 * MIB)
    assert room_for_copies(Budget(64 * MIB), root=root) == (128 * MIB, "")


def test_what_is_asked_for_holds_on_any_host(tmp_path: Path) -> None:
    for asked in (0, 8 * MIB):
        assert room_for_copies(Budget(64 * MIB, kept_copy_bytes=asked), root=tmp_path) == (
            asked,
            "",
        )


def test_what_page_faults_bring_has_no_copies(tmp_path: Path) -> None:
    root = host_of(tmp_path, 512 * MIB)
    assert room_for_copies(Budget(64 * MIB, fetch=False), root=root) == (0, "")


def test_host_that_does_not_tell_its_memory_keeps_none_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room_bytes, reason = room_for_copies(Budget(64 * MIB), root=tmp_path)
    assert room_bytes == 0
    assert "cannot tell the memory of this machine" in reason

    monkeypatch.setattr("rmm_uvm._lib.residency.room_for_copies", lambda *_, **__: (0, "no word"))
    asked: dict[str, Any] = {"driver": rmm_uvm.simulated_device("64MiB"), "libraries": ()}
    with rmm_uvm.reinitialize("8MiB", "32MiB", device_budget="8MiB", **asked) as installed:
        assert "kept copies none what is only read is copied out too: no word" in " ".join(
            str(installed).split()
        )
    with rmm_uvm.reinitialize("8MiB", "32MiB", **asked) as installed:
        assert "kept copies" not in str(installed)
