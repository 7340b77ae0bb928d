# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Neighbours that were asked for and take nothing: said once, at the line that asked."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import NeighborWarning
from rmm_uvm.pool.install import current_installation
from rmm_uvm.residency import Budget
from rmm_uvm.residency.troubles import lacking_neighbors

MIB = 1 << 20
DEVICE = 64 * MIB
BUDGET = 16 * MIB
NOBODY = "device 0: neighbors='auto' finds none: there is no other device"


def reinitialize(driver: Any, **options: Any) -> rmm_uvm.Installation:
    return rmm_uvm.reinitialize(
        driver=driver, device_budget=BUDGET, libraries=(), monitor=False, **options
    )


def pool(driver: Any, **options: Any) -> Any:
    return rmm_uvm.managed_pool(driver=driver, device_budget=BUDGET, **options)


def managed_pool_class(driver: Any, **options: Any) -> Any:
    return rmm_uvm.mr.ManagedPool(driver=driver, device_budget=BUDGET, **options)


MAKERS = [reinitialize, pool, managed_pool_class]


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Any:
    yield
    rmm_uvm.restore()


@pytest.mark.parametrize("make", MAKERS)
def test_auto_without_another_device_is_said_once_at_the_line_that_asked(make: Any) -> None:
    with pytest.warns(NeighborWarning) as seen:
        kept = make(rmm_uvm.simulated_device(DEVICE), neighbors="auto")
    assert kept is not None
    (warning,) = seen
    assert str(warning.message).startswith(f"{NOBODY}; what would lie there goes to the host")
    assert Path(warning.filename) == Path(__file__)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("neighbors", ["auto", [1], [], None])
def test_neighbours_that_can_all_be_used_are_not_warned_of(make: Any, neighbors: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(rmm_uvm.simulated_device(DEVICE, neighbors=1), neighbors=neighbors) is not None


def test_environment_that_asks_for_neighbours_is_answered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_NEIGHBORS", "auto")
    with pytest.warns(NeighborWarning, match="there is no other device"):
        pool(rmm_uvm.simulated_device(DEVICE))


def test_named_device_that_cannot_be_reached_is_warned_of_with_its_reason() -> None:
    devices = rmm_uvm.simulated_node(4, DEVICE, "pairs").devices
    with pytest.warns(NeighborWarning, match=r"device 1: none of neighbors=\[2\] can be used: .*2"):
        pool(devices[1], neighbors=[2])
    with pytest.warns(
        NeighborWarning, match=r"not all of neighbors=\[0, 2\] can be used: "
    ) as seen:
        pool(devices[1], neighbors=[0, 2])
    assert len(seen) == 1


def test_auto_is_content_with_the_devices_that_it_finds() -> None:
    devices = rmm_uvm.simulated_node(4, DEVICE, "pairs").devices
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pool(devices[1], neighbors="auto").managed_mr.residency
    assert found.neighbors == (0,)
    assert len(found.refused_neighbors) == 2


def test_warnings_as_errors_leave_what_was_installed_before() -> None:
    alone = rmm_uvm.simulated_device(DEVICE)
    before = reinitialize(rmm_uvm.simulated_device(DEVICE))
    resource = rmm.mr.get_per_device_resource(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NeighborWarning):
            reinitialize(alone, neighbors="auto")
    assert current_installation() is before
    assert rmm.mr.get_per_device_resource(0) is resource
    assert alone.statistics()["managed_bytes"] == 0


@pytest.mark.parametrize("make", MAKERS)
def test_warnings_as_errors_build_nothing(make: Any) -> None:
    alone = rmm_uvm.simulated_device(DEVICE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NeighborWarning) as kept:  # with the frames, as a notebook keeps them
            make(alone, neighbors="auto")
    assert kept.value.__traceback__ is not None
    assert current_installation() is None
    assert alone.statistics()["managed_bytes"] == 0


@pytest.mark.parametrize(
    ("neighbors", "opened", "refused", "said"),
    [
        (None, [], [], ""),
        ([], [], [], ""),
        ("auto", [], ["a", "b"], "neighbors='auto' finds none: a; b"),
        ("auto", [2], ["a"], ""),
        ((1, 2), [1, 2], [], ""),
        ((1, 2), [], ["a", "b"], "none of neighbors=[1, 2] can be used: a; b"),
        ((1, 2), [2], ["a"], "not all of neighbors=[1, 2] can be used: a"),
    ],
)
def test_words_tell_what_lacks_and_nothing_where_nothing_does(
    neighbors: Any, opened: list[int], refused: list[str], said: str
) -> None:
    assert lacking_neighbors(neighbors, opened, refused) == said


def rows_of(driver: Any, **settings: Any) -> dict[str, str]:
    budget = Budget(BUDGET, **settings)
    with rmm_uvm.reinitialize(
        driver=driver, device_budget=budget, libraries=(), monitor=False
    ) as installed:
        lines = str(installed).splitlines()
    return {line[:15].strip(): " ".join(line[15:].split()) for line in lines}


def test_table_tells_neighbours_limits_and_why_there_is_no_board() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=2)
    rows = rows_of(device, neighbors="auto", harvest_limit="4MiB")
    assert rows["neighbors"].endswith("comes before the host's, at most 4.00 MiB on each")
    assert rows["harvest board"] == (
        "not joined a simulated device is its process' own; goes by what is free there"
    )
    rows = rows_of(device, neighbors=[1, 2], harvest_limit={2: "2MiB"})
    assert rows["neighbors"].endswith("the host's, at most 2.00 MiB on 2")
    rows = rows_of(device, neighbors=[], board=None)
    assert rows["neighbors"] == "none as asked"
    assert rows["harvest board"] == "not joined as asked; nothing is offered"
    assert "neighbors" not in rows_of(device)


def test_table_tells_a_joined_board_and_devices_that_are_not_used(tmp_path: Path) -> None:
    devices = rmm_uvm.simulated_node(4, DEVICE, "pairs").devices
    rows = rows_of(devices[0], neighbors="auto", board=str(tmp_path))
    assert rows["neighbors"].startswith("1 their idle memory comes before the host's; not used: ")
    assert rows["harvest board"].startswith("joined what the budget has left")
