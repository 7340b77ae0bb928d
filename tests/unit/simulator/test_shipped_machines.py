# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The machines of the package: whole, labelled, in the documents, and the C++ defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmm_uvm._lib.sim import default_machine
from rmm_uvm.simulator import Access, DriverSettings, Simulator, recorded
from rmm_uvm.support.machine_files import load_machine, shipped_names
from rmm_uvm.support.machine_profile import CONSTANTS

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENT = (REPOSITORY / "docs/use/machines.md").read_text()
HEADER = REPOSITORY / "cpp/include/rmm_uvm/sim/machine_profile.hpp"
REQUIRED = {
    *("h200-pcie5", "a100-pcie4", "v100-pcie3", "gh200-c2c", "gtx1080ti-pcie3", "uvm-smart"),
    *("h100-pcie5", "b200-pcie5", "l4-pcie4", "l40s-pcie4", "a10-pcie4", "rtx4090-pcie4"),
}


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


# --- constants that were derived give the published figure again ---------------------------------


def seconds_of_kernel(simulator: Simulator, access: Access) -> float:
    simulator.synchronize()
    begin = simulator.seconds
    simulator.kernel([access])
    simulator.synchronize()
    return simulator.seconds - begin


def test_uvm_smart_on_demand_takes_its_published_time_a_fault() -> None:
    # Their benchmarks' time over faults is 46.8 us: 45 for the fault, 1.76 for the copy of 4 KiB.
    simulator = Simulator(load_machine("uvm-smart"), driver=DriverSettings(prefetch=False))
    address = simulator.allocate_managed(8 << 20)
    simulator.cpu_touch(address, 8 << 20, write=True)
    seconds = seconds_of_kernel(simulator, Access(address, 8 << 20))
    assert simulator.counters().gpu_faults == 2048
    assert seconds / 2048 == pytest.approx(46.8e-6, rel=0.01)


def test_gtx1080ti_cold_read_runs_at_the_published_rate() -> None:
    simulator = Simulator(load_machine("gtx1080ti-pcie3"))
    nbytes = 3_200_000_000
    address = simulator.allocate_managed(nbytes)
    simulator.cpu_touch(address, nbytes, write=True)
    seconds = seconds_of_kernel(simulator, Access(address, nbytes))
    assert seconds == pytest.approx(0.3866, rel=0.02)


@pytest.mark.parametrize("blocks", [60, 490, 1960])
def test_a100_activations_of_cudnn_take_the_published_time_where_they_fault(blocks: int) -> None:
    # G10's cudnnInputPF.txt has the output to fault in, cudnnPF.txt the input as well.
    nbytes = blocks << 21
    block_seconds = []
    for input_is_there in (True, False):
        simulator = Simulator(load_machine("a100-pcie4"))
        given, result = simulator.allocate_managed(nbytes), simulator.allocate_managed(nbytes)
        simulator.cpu_touch(given, nbytes, write=True)
        if input_is_there:
            simulator.prefetch(given, nbytes)
        simulator.synchronize()
        begin = simulator.seconds
        simulator.kernel([Access(given, nbytes), Access(result, nbytes, write=True)])
        simulator.synchronize()
        block_seconds.append((simulator.seconds - begin) / blocks)
    fresh, both = block_seconds
    assert fresh == pytest.approx(290e-6, rel=0.02)
    assert both - fresh == pytest.approx(794e-6, rel=0.02)


@pytest.mark.parametrize("name", ["rtx5070ti-pcie5", "rtx5090-pcie5"])
def test_rtx50_isolated_fault_takes_the_published_time(name: str) -> None:
    machine = load_machine(name)
    simulator = Simulator(machine, driver=DriverSettings(prefetch=False))
    address = simulator.allocate_managed(2 << 20)
    simulator.cpu_touch(address, 2 << 20, write=True)
    seconds = seconds_of_kernel(simulator, Access(address, 4096)) - machine.launch_ns / 1e9
    assert seconds == pytest.approx(31.79e-6, rel=0.05)


def test_rtx5070ti_sparse_faults_take_the_published_time_where_they_fit() -> None:
    # SpecAsync, gate E8: one page of each of 4096 blocks; the threshold decides what comes with it.
    for threshold, published_seconds in ((51, 34.2e-3), (0, 158.0e-3)):
        settings = DriverSettings(prefetch_threshold=threshold)
        simulator = Simulator(load_machine("rtx5070ti-pcie5"), driver=settings)
        address = simulator.allocate_managed(8 << 30)
        simulator.cpu_touch(address, 8 << 30, write=True)
        pages = recorded(range(0, (8 << 30) // 4096, 512))
        seconds = seconds_of_kernel(simulator, Access(address, 8 << 30, pages))
        assert seconds == pytest.approx(published_seconds, rel=0.05)


def test_v100_batch_of_two_blocks_takes_the_published_time_more() -> None:
    # Titan V, lower envelope: 2.1 MB in 0.21 ms, 4.2 MB in 0.38 ms.
    machine = load_machine("v100-pcie3")
    block_ns = machine.fault_block_ns + 2.1e6 / machine.to_device_bytes_per_ns
    assert block_ns == pytest.approx(170e3, rel=0.02)


# --- documents and the compiled defaults ---------------------------------------------------------


def row_of(name: str) -> str:
    """Return the row that docs/use/machines.md has to have for a machine of the package."""
    m = load_machine(name)
    rates = f"{m.to_device_bytes_per_ns} | {m.to_host_bytes_per_ns}"
    return f"| `{m.name}` | {m.gpu} | {m.link} | {rates} | {m.label} |"


def wrong_rows(document: str) -> dict[str, list[str]]:
    """Return the rows of machines that a document lacks, and those that are no machine's."""
    section = document.partition("## Machines of the package\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    needed = [row_of(name) for name in shipped_names()]
    return {
        "missing in docs/use/machines.md": [row for row in needed if row not in rows],
        "of no machine, or twice": [
            row for row in rows if row not in needed or rows.count(row) > 1
        ],
    }


NO_ROWS = {"missing in docs/use/machines.md": [], "of no machine, or twice": []}


def test_document_lists_every_machine_as_its_file_has_it() -> None:
    assert wrong_rows(DOCUMENT) == NO_ROWS


def test_order_of_the_machines_in_the_document_is_free() -> None:
    first, last = row_of(shipped_names()[0]), row_of(shipped_names()[-1])
    moved = DOCUMENT.replace(f"{first}\n", "").replace(last, f"{last}\n{first}")
    assert moved != DOCUMENT
    assert wrong_rows(moved) == NO_ROWS


def test_row_that_is_missing_stale_or_twice_is_named() -> None:
    row = row_of("v100-pcie3")
    stale = row.replace("13.2", "13.3")
    assert wrong_rows(DOCUMENT.replace(f"{row}\n", "")) == {
        **NO_ROWS,
        "missing in docs/use/machines.md": [row],
    }
    assert wrong_rows(DOCUMENT.replace(row, stale)) == {
        "missing in docs/use/machines.md": [row],
        "of no machine, or twice": [stale],
    }
    twice = wrong_rows(DOCUMENT.replace(row, f"{row}\n{row}"))
    assert twice == {**NO_ROWS, "of no machine, or twice": [row, row]}


def test_document_lists_every_constant() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+?) \| (.+) \|$", DOCUMENT, re.MULTILINE)
    assert rows == [(one.name, one.unit, one.meaning) for one in CONSTANTS.values()]


def test_defaults_of_the_compiled_model_are_the_h200s() -> None:
    number = r"(?:std::size_t\{)?([\d'.]+)\}?(?: << (\d+)U)?"
    found = {
        name: float(value.replace("'", "")) * 2 ** int(shift or 0)
        for name, value, shift in re.findall(
            rf"^  (?:double|std::\w+) (\w+)\{{\s*{number}\s*\}};", HEADER.read_text(), re.MULTILINE
        )
    }
    assert found == load_machine("h200-pcie5").constants() == default_machine()
