# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The handle's table, rendered from plain values."""

from __future__ import annotations

import dataclasses
import warnings

import pytest

import rmm_uvm
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.integrations import Wiring
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.pool.installation import Installation, render


def installed() -> Installation:
    return rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=())


def words(handle: Installation) -> str:
    """Return the table without its columns."""
    return " ".join(repr(handle).split())


def test_table_has_no_trailing_blanks_and_fits_100_columns() -> None:
    lines = render(installed()).splitlines()
    assert all(line == line.rstrip() and 0 < len(line) <= 100 for line in lines)


def test_table_shows_each_device() -> None:
    handle = rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=(), devices=[0, 1])
    titles = [line for line in repr(handle).splitlines() if line.startswith("rmm_uvm on")]
    assert titles == [
        "rmm_uvm on device 0: simulated device, 64.00 MiB",
        "rmm_uvm on device 1: simulated device, 64.00 MiB",
    ]


def test_table_shows_wirings_with_reasons() -> None:
    handle = installed()
    handle.wirings = (Wiring("cupy", active=True, reason="allocates through RMM"),)
    assert "cupy on allocates through RMM" in words(handle)


def test_table_shows_bytes_left_in_an_old_pool() -> None:
    handle = installed()
    handle.devices = (
        dataclasses.replace(handle.devices[0], old_live_bytes=3 << 20, old_kept_bytes=1 << 30),
    )
    assert "old pool 1.00 GiB kept by 3.00 MiB still alive there" in words(handle)


def test_table_shows_why_counters_are_off() -> None:
    handle = installed()
    off = Availability(False, "RMM_UVM_COUNTERS is off")
    handle.devices = (dataclasses.replace(handle.devices[0], counters=off),)
    assert "counters off RMM_UVM_COUNTERS is off" in words(handle)


@pytest.mark.parametrize(
    ("counters", "row"),
    [
        (True, "page faults    found       what comes by them, unannounced, counts under"),
        (False, "page faults    not found   what comes by them stays beside it: the simulated"),
    ],
)
@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.MonitorWarning")
def test_table_shows_whether_what_faults_in_is_found(counters: bool, row: str) -> None:
    driver = rmm_uvm.simulated_device("64MiB", counters=counters)
    handle = rmm_uvm.reinitialize(driver=driver, device_budget="32MiB", libraries=())
    assert row in repr(handle)


def test_table_of_an_integrated_device_tells_that_nothing_can_leave() -> None:
    driver = rmm_uvm.simulated_device("64MiB", integrated=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = rmm_uvm.reinitialize(driver=driver, libraries=())
        found = words(handle)
    assert "budget none its memory is the host's, so nothing can leave it" in found
    assert "prefetch off device memory is host memory: there is nothing to move" in found
    assert "discard off device memory is host memory: it would free nothing" in found
    assert "90 % of free device memory, which is the host's too" in found
    assert handle.devices[0].sizes.maximum_bytes <= 64 << 20


def test_table_of_an_integrated_device_without_concurrent_access_names_no_card() -> None:
    driver = rmm_uvm.simulated_device("64MiB", integrated=True, concurrent_managed_access=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = rmm_uvm.reinitialize(driver=driver, libraries=())
    found = words(handle)
    assert "prefetch off device memory is host memory: there is nothing to move" in found
    assert "the card's" not in found


def test_permanent_libraries_are_named() -> None:
    handle = installed()
    handle.wirings = (
        Wiring("cupy", active=True, reason=""),
        Wiring("torch", active=True, reason="", permanent=True),
    )
    assert handle.permanent == ("torch",)


def test_context_manager_with_torch_wired_keeps_the_error_of_its_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise AvailabilityError("restore is refused: torch allocates")

    handle = rmm_uvm.reinitialize("32MiB", driver="simulated:64MiB", libraries=())
    monkeypatch.setattr(handle, "_undo", refuse)
    with pytest.raises(ZeroDivisionError) as caught, handle:
        1 / 0  # noqa: B018
    assert "torch" in caught.value.__notes__[0]
    with pytest.raises(AvailabilityError), handle:
        pass
    monkeypatch.undo()
    rmm_uvm.restore()


def test_those_who_hold_parts_of_a_pool_are_told_once_when_it_is_released() -> None:
    handle, told = installed(), []
    handle.when_released(lambda: told.append(True))
    assert told == []
    rmm_uvm.restore()
    assert told == [True]
    handle.release()
    assert told == [True]
