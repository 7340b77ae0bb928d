# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of the message for a file of this package that cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.package_files import no_more_files, package_names, package_text

from ...anomalies.faults import descriptors
from ...anomalies.world import World

MACHINES = ("rmm_uvm", "simulator", "machines")


def test_files_of_the_package_are_read() -> None:
    assert "h200-pcie5.toml" in package_names(*MACHINES)
    assert package_text(*MACHINES, "h200-pcie5.toml").startswith("#")
    assert no_more_files() == ""


def test_file_that_is_not_there_is_named() -> None:
    with pytest.raises(AvailabilityError, match=r"machines/none\.toml, of rmm_uvm, .* No such"):
        package_text(*MACHINES, "none.toml")


def test_files_without_a_descriptor_are_named_with_the_limit(tmp_path: Path) -> None:
    said = r"machines, of rmm_uvm, cannot be read: Too many open files: .*ulimit -n"
    with descriptors(0)(World(tmp_path)):
        with pytest.raises(AvailabilityError, match=said):
            package_names(*MACHINES)
        with pytest.raises(AvailabilityError, match="Too many open files"):
            package_text(*MACHINES, "h200-pcie5.toml")
        assert no_more_files().startswith("Too many open files")
