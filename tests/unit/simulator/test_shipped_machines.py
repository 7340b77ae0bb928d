# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The machines of the package: whole, labelled, in the documents, and the C++ defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmm_uvm.simulator.constants import CONSTANTS
from rmm_uvm.simulator.machine import load_machine, shipped_names

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENT = (REPOSITORY / "docs/machines.md").read_text()
HEADER = REPOSITORY / "cpp/include/rmm_uvm/sim/machine_profile.hpp"
REQUIRED = {"h200-pcie5", "a100-pcie4", "v100-pcie3", "gh200-c2c", "gtx1080ti-pcie3", "uvm-smart"}


def test_shipped_machines_are_those_that_are_needed() -> None:
    assert set(shipped_names()) >= REQUIRED


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_machine_has_its_files_name_and_a_source_for_each_constant(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    assert set(machine.sources) == set(CONSTANTS)
    assert machine.changed == ()


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_machine_is_measured_only_where_we_had_it(name: str) -> None:
    machine = load_machine(name)
    assert machine.measured is (name == "h200-pcie5")
    measured = [key for key, source in machine.sources.items() if source.startswith("measured")]
    assert bool(measured) is machine.measured


@pytest.mark.parametrize("name", sorted(set(shipped_names()) - {"h200-pcie5"}))
def test_shipped_value_taken_from_another_machine_is_that_machines(name: str) -> None:
    machine, sources = load_machine(name), load_machine(name).sources
    taken = {
        key: match[1]
        for key, source in sources.items()
        if (match := re.match(r"taken from ([a-z0-9-]+)[:;]", source))
    }
    # uvm-smart has its copies to the nanosecond, the others have them rounded.
    for key, other in taken.items():
        expected = pytest.approx(getattr(load_machine(other), key), rel=0.05)
        assert getattr(machine, key) == expected, key


def test_uvm_smart_serves_one_fault_in_the_published_time() -> None:
    machine = load_machine("uvm-smart")
    page_ns = machine.batch_ns + machine.copy_ns + 4096 / machine.to_device_bytes_per_ns
    assert (machine.outstanding_faults, machine.batch_faults) == (1, 1)
    assert page_ns / 1e3 == pytest.approx(45 + 1.76, rel=0.001)  # the benchmarks' time over faults


def test_document_lists_every_machine_as_its_file_has_it() -> None:
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$",
        DOCUMENT,
        re.MULTILINE,
    )
    expected = [
        (m.name, m.gpu, m.link, str(m.to_device_bytes_per_ns), str(m.to_host_bytes_per_ns), m.label)
        for m in map(load_machine, shipped_names())
    ]
    assert rows == expected


def test_document_lists_every_constant() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+?) \| (.+) \|$", DOCUMENT, re.MULTILINE)
    assert rows == [(one.name, one.unit, one.meaning) for one in CONSTANTS.values()]


def test_defaults_of_the_compiled_model_are_the_h200s() -> None:
    number = r"(?:std::size_t\{)?([\d'.]+)\}?(?: << (\d+)U)?"
    found = {
        name: float(value.replace("'", "")) * 2 ** int(shift or 0)
        for name, value, shift in re.findall(
            rf"^  (?:double|std::\w+) (\w+)\{{{number}\}};", HEADER.read_text(), re.MULTILINE
        )
    }
    assert found == load_machine("h200-pcie5").constants()
