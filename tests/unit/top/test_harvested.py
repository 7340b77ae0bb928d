# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What top shows of memory on other devices: a line of a device, a column of a process."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from rich.console import Console

from rmm_uvm.harvest import BoardView, Claim, DeviceHarvest, HarvestBoard, Offer, read_board
from rmm_uvm.report.document import Span
from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.render import harvest_line, render
from rmm_uvm.top.seams import PublishedDevice
from rmm_uvm.top.view import ProcessRow, View

from .fakes import GIB, NOBODY_JOINED, FakeClock, FakeMachine, device

UUID = "GPU-00000000-0000-0000-0000-000000000001"
OFFER = Offer(48211, 20 * GIB, busy=False)
CLAIMS = (Claim(48213, 4 * GIB, 0), Claim(48212, 8 * GIB, GIB))


def board(*devices: DeviceHarvest) -> BoardView:
    return BoardView(True, "", "/dev/shm/board", (48211, 48212, 48213), devices)


def harvest(*offers: Offer, claims: tuple[Claim, ...] = CLAIMS, uuid: str = UUID) -> DeviceHarvest:
    return DeviceHarvest(uuid, offers, claims)


def text(view: View, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(view, width))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def told(device: DeviceHarvest) -> tuple[str, str]:
    """Return the line of a device, and how it stands out."""
    line = harvest_line(device)
    assert isinstance(line.words, Span)
    return f"{line.lead}{line.words.text}", line.words.tone


def test_line_tells_who_holds_how_much_of_whose_memory() -> None:
    assert told(harvest(OFFER))[0] == (
        "  held by PID 48212 8.00 GiB, 48213 4.00 GiB; 20.0 GiB offered by PID 48211"
    )
    assert told(harvest(OFFER, claims=()))[0] == "  20.0 GiB offered by PID 48211"
    assert told(harvest())[0] == "  held by PID 48212 8.00 GiB, 48213 4.00 GiB"


def test_line_of_many_holders_and_owners_names_the_first() -> None:
    claims = tuple(Claim(pid, GIB, 0) for pid in range(9, 0, -1))
    offers = tuple(Offer(pid, pid * GIB, busy=False) for pid in (14, 13, 12, 11))
    assert told(harvest(*offers, claims=claims))[0] == (
        "  held by PID 1 1.00 GiB, 2 1.00 GiB, 3 1.00 GiB, 6 more 6.00 GiB; "
        "11.0 GiB offered by PID 11, 12, 13 and 1 more"
    )


def test_line_is_yellow_while_something_is_to_be_given_back_and_says_busy() -> None:
    line, tone = told(harvest(Offer(7, 10 * GIB, busy=True)))
    assert line.endswith("; 10.0 GiB offered by PID 7; 2.00 GiB to give back; its links are busy")
    assert tone == "doubtful"  # yellow
    assert told(harvest(OFFER))[1] == ""
    assert told(harvest(Offer(7, None, busy=True), claims=()))[0] == "  its links are busy"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_page_has_the_line_below_its_device_and_others_by_name(width: int) -> None:
    here = dataclasses.replace(device(index=1), uuid=UUID)
    other = harvest(OFFER, uuid=UUID.replace("0", "7"))
    view = View(devices=(device(), here), harvest=board(harvest(OFFER), other))
    lines = text(view, width).splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("GPU 1"))
    assert lines[place + 1].startswith("  held by")
    assert [line for line in lines if line.startswith("GPU-77777777: ")]
    assert max(map(len, lines)) <= width


def test_page_without_offers_and_claims_has_no_line_of_them() -> None:
    bare = text(View(devices=(device(),)), 80)
    assert text(View(devices=(device(),), harvest=NOBODY_JOINED), 80) == bare
    assert text(View(devices=(device(),), harvest=board()), 80) == bare


def test_column_is_there_once_a_process_holds_or_held_something() -> None:
    row = ProcessRow(7, "solver", source="published", harvested_bytes=0, peak_harvested_bytes=0)
    assert "HARV" not in text(View((row,)), 80)
    held = dataclasses.replace(row, peak_harvested_bytes=GIB)
    assert "HARVEST" in text(View((held,)), 80)
    now = dataclasses.replace(held, harvested_bytes=3 * GIB)
    assert "3.00 GiB" in text(View((now,)), 80)
    assert " HARV" in text(View((now,)), 50)


def test_look_takes_what_processes_publish_and_what_the_board_says() -> None:
    figures = {"budget": {"budget_bytes": 4 * GIB, "harvested_bytes": GIB, "given_back_bytes": 2}}
    machine = FakeMachine(
        board=[PublishedDevice(2**22 + 1, "python3", 0, 1.0, figures)],
        harvest=board(harvest(OFFER)),
    )
    view = Gatherer(machine.seams(), clock=FakeClock()).look()
    (row,) = view.processes
    assert (row.harvested_bytes, row.peak_harvested_bytes, row.given_back_bytes) == (GIB, None, 2)
    plain = view.to_dict()
    assert plain["processes"][0]["harvested_bytes"] == GIB
    assert plain["harvest"]["devices"][0]["offered_bytes"] == 20 * GIB
    assert plain["harvest"]["devices"][0]["claimed_bytes"] == 12 * GIB
    assert plain["harvest"]["devices"][0]["claims"][1]["coming_bytes"] == GIB


def test_look_without_a_board_has_its_reason() -> None:
    plain = Gatherer(FakeMachine().seams(), clock=FakeClock()).look().to_dict()
    assert plain["harvest"]["available"] is False
    assert plain["harvest"]["reason"] == NOBODY_JOINED.reason
    assert View().to_dict()["harvest"] is None


def test_real_board_of_an_owner_and_a_harvester_is_shown(tmp_path: Path) -> None:
    owner, harvester = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(UUID, 4 * GIB)
    assert harvester.claim(UUID, GIB, free_bytes=4 * GIB, reserve_bytes=0) == GIB
    page = text(View(harvest=read_board(tmp_path)), 120)
    assert "GPU-00000000: held by PID " in page
    assert " 1.00 GiB; 4.00 GiB offered by PID " in page
