# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of ``rmm-uvm doctor`` about neighbours and their board, and its flag ``--links``."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import pytest
from click.testing import CliRunner
from rich.console import Console

import rmm_uvm
from rmm_uvm.cli import doctor
from rmm_uvm.doctor import BoardFacts, DeviceFacts, DoctorReport, Feature, HarvestFacts
from rmm_uvm.doctor.document import neighbors
from rmm_uvm.doctor.topology import (
    DevicePair,
    HostRates,
    PairRates,
    Topology,
    TopologyDevice,
    concluded,
)
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.report.as_text import as_text
from rmm_uvm.report.document import Document

GIB = 2**30
POOL = Feature("managed_pool", "managed pool", "allocations are managed", available=True)
NO_LINK = Availability(available=False, reason="no direct link between them")


def devices(count: int, *, measured: bool = False) -> list[TopologyDevice]:
    host = HostRates(51_000_000_000, 24_000_000_000) if measured else None
    return [
        TopologyDevice(i, "NVIDIA H200", str(i), 139 * GIB, 100 * GIB, host_rates=host)
        for i in range(count)
    ]


def switched(count: int, *, measured: bool = False) -> Topology:
    """Return devices that NVLink connects, each two."""
    rates = PairRates(205_000_000_000, 204_000_000_000) if measured else None
    access = Availability(available=True)
    return concluded(
        devices(count, measured=measured),
        (DevicePair(a, b, access, "NVLink", rates) for a, b in combinations(range(count), 2)),
    )


def shown(topology: Topology, *, is_measured: bool = False, columns: int = 80) -> str:
    blocks = tuple(neighbors(topology, is_measured=is_measured))
    text = as_text(Document((), blocks), columns) + "\n"
    assert max(map(len, text.splitlines())) <= columns
    return text


def report(topology: Topology) -> DoctorReport:
    facts = tuple(
        DeviceFacts(d.index, d.name, d.uuid, (9, 0), d.total_bytes, d.free_bytes,
                    managed_memory=True, concurrent_managed_access=True,
                    pageable_memory_access=False, host_page_tables=False, legacy_ipc=True)
        for d in topology.devices
    )  # fmt: skip
    return DoctorReport({}, facts, (POOL,), None, topology=topology)


def test_neighbours_of_one_device_are_one_line() -> None:
    text = shown(concluded(devices(1), ()))
    assert text == "none: there is one device only; what leaves a device goes to the host\n"


def test_neighbours_show_their_idle_memory_and_what_connects_them() -> None:
    text = shown(switched(4))
    assert "0       1-3         300.00 GiB" in text
    assert "NVLink: all 6 pairs" in text
    assert "GB/s" not in text


def test_neighbours_whose_memory_or_load_is_not_told_say_unknown() -> None:
    both = [replace(each, free_bytes=None, kernel_fraction=0.251) for each in devices(2)]
    found = concluded(both, (DevicePair(0, 1, Availability(available=True)),))
    text = shown(found)
    assert "unknown" in text
    assert "25% of the time" in text
    assert "0 and 1" not in text  # nobody tells what connects them


def test_neighbours_of_nvlink_pairs_leave_the_other_pairs_to_one_line() -> None:
    access = Availability(available=True)
    pairs = [
        DevicePair(a, b, access, "NVLink") if (a, b) in ((0, 1), (2, 3)) else
        DevicePair(a, b, NO_LINK)
        for a, b in combinations(range(4), 2)
    ]  # fmt: skip
    text = shown(concluded(devices(4), pairs))
    assert "NVLink: 0 and 1, 2 and 3" in text
    assert "not neighbours: 0 and 2, 0 and 3, 1 and 2, 1 and 3: no direct link" in text


def test_neighbours_that_refuse_each_other_are_none_with_the_reason() -> None:
    text = shown(concluded(devices(2), (DevicePair(0, 1, NO_LINK),)))
    assert text.startswith("none: no direct link between them; what leaves")


def test_neighbours_measured_are_a_table_from_line_to_column() -> None:
    lines = shown(switched(8, measured=True), is_measured=True).splitlines()
    table = [line.split() for line in lines[-10:]]
    assert table[0] == ["0", "1", "2", "3", "4", "5", "6", "7", "host"]
    assert table[1] == ["0", "-", *["205"] * 7, "24"]
    assert table[8] == ["7", *["204"] * 7, "-", "24"]
    assert table[9] == ["host", *["51"] * 8, "-"]


def test_neighbours_measured_on_sixteen_devices_are_ranges() -> None:
    text = shown(switched(16, measured=True), is_measured=True)
    assert "NVLink: all 120 pairs" in text
    assert "device to device: 204 to 205" in text
    assert "device to host: 24 to 24" in text
    assert len(text.splitlines()) < 30


def test_neighbours_that_could_not_be_measured_say_why_once() -> None:
    gone = [replace(each, host_rates_reason="no room") for each in devices(4)]
    pairs = (replace(pair, rates_reason="no room") for pair in switched(4).pairs)
    text = shown(concluded(gone, pairs), is_measured=True, columns=200)
    assert text.count("no room") == 1
    assert "not measured between the host and 0-3, 0 and 1, " in text
    assert "(and 3 more): no room" in text


def test_neighbours_measured_on_one_device_are_the_link_to_the_host() -> None:
    text = shown(concluded(devices(1, measured=True), ()), is_measured=True)
    assert text.startswith("none: there is one device only")
    assert text.splitlines()[-1].split() == ["host", "51", "-"]


def test_doctor_links_measures_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)
    monkeypatch.setattr(doctor, "examine", lambda: report(switched(2)))
    monkeypatch.setattr(
        "rmm_uvm.drivers.cuda_driver",
        lambda index: rmm_uvm.simulated_device("128MiB", device=index, neighbors=1),
    )
    result = CliRunner().invoke(doctor.command, ["--links"])
    assert result.exit_code == 0
    assert "GB/s" in result.output
    assert "not measured" not in result.output
    assert "GB/s" not in CliRunner().invoke(doctor.command, []).output


def test_doctor_links_without_a_pool_prints_the_report_and_measures_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Feature("managed_pool", "managed pool", "", available=False, reason="RMM is wrong")
    what = replace(report(switched(2)), features=(broken,))
    monkeypatch.setattr(doctor, "examine", lambda: what)
    result = CliRunner().invoke(doctor.command, ["--links"])
    assert result.exit_code == 1
    assert "nothing: RMM is wrong" in result.output
    assert "GB/s" not in result.output


def test_doctor_links_and_measure_together_are_refused() -> None:
    result = CliRunner().invoke(doctor.command, ["--links", "--measure"])
    assert result.exit_code == 2
    assert "choose one" in result.output


def board_line(*agreed: HarvestFacts, count: int = 2, processes: tuple[int, ...] = (7, 8)) -> str:
    board = BoardFacts("", "/dev/shm/rmm_uvm-board-0", processes, agreed)
    return page(replace(report(switched(count)), harvest_board=board))


def page(what: DoctorReport) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(doctor.render(what))
    lines = capture.get().splitlines()
    return lines[lines.index("Harvest board") + 1].strip()


def test_board_is_one_line_with_path_processes_offers_and_claims() -> None:
    assert board_line(
        HarvestFacts("GPU-1", 4 * GIB, GIB), HarvestFacts("GPU-9", None, 0, busy=True)
    ) == (
        "/dev/shm/rmm_uvm-board-0: 2 processes have joined; device 1 4.00 GiB offered, 1.00 GiB "
        "claimed; GPU-9 0 B claimed, links busy"
    )
    assert board_line(processes=(7,)) == (
        "/dev/shm/rmm_uvm-board-0: 1 process has joined; nothing is offered or claimed"
    )


def test_board_that_is_not_there_is_one_line_with_its_reason() -> None:
    what = replace(report(switched(2)), harvest_board=BoardFacts("no room for it"))
    assert page(what) == "none: no room for it"
    assert page(report(switched(2))) == "none: not looked for"


def test_json_has_the_board_with_what_is_agreed_about_each_device() -> None:
    agreed = HarvestFacts("GPU-1", 4 * GIB, GIB, busy=True)
    board = BoardFacts("", "/dev/shm/board", (7,), (agreed,))
    plain = replace(report(switched(2)), harvest_board=board).to_dict()
    assert json.loads(json.dumps(plain))["harvest_board"] == {
        "reason": "",
        "path": "/dev/shm/board",
        "processes": [7],
        "devices": [
            {"uuid": "GPU-1", "offered_bytes": 4 * GIB, "claimed_bytes": GIB, "busy": True}
        ],
    }
