# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Choosing and making drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice, UvmDriver, choose_driver, cuda_driver
from rmm_uvm.errors import ConfigurationError, DriverError, UvmError
from rmm_uvm.simulator import load_machine, save_machine

MIB = 1 << 20


def test_driver_that_is_given_is_used() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    assert choose_driver(3, device) is device


@pytest.mark.parametrize(
    ("name", "total_bytes"), [("simulated", 16 << 30), ("simulated:64MiB", 64 * MIB)]
)
def test_simulated_driver_by_name_has_the_size_and_ordinal(name: str, total_bytes: int) -> None:
    info = choose_driver(1, name).info
    assert (info.device_id, info.total_bytes, info.simulated) == (1, total_bytes, True)


def seconds_of_a_block(device: UvmDriver) -> float:
    """Return the modelled time of a block that goes to the host and comes back, by copies alone."""
    assert isinstance(device, SimulatedDevice)
    mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    address = mr.allocate(2 * MIB)
    device.cpu_touch(address, 2 * MIB, write=True)
    before = device.statistics()["modelled_ns"]
    device.touch(address, 2 * MIB)
    took = device.statistics()["modelled_ns"] - before
    mr.deallocate(address, 2 * MIB)
    return took / 1e9


def slow_machine(folder: Path) -> Path:
    """Write a machine whose link to the device takes a second for 2 MiB."""
    path = folder / "slow.toml"
    machine = load_machine("a100-pcie4").replace(to_device_bytes_per_ns=2 * MIB / 1e9)
    save_machine(machine, path)
    return path


def test_simulated_driver_has_the_rates_of_the_machine_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = slow_machine(tmp_path)
    made = rmm_uvm.simulated_device("64MiB", machine=path)
    named = choose_driver(0, f"simulated:64MiB@{path}")
    monkeypatch.setenv("RMM_UVM_DRIVER", f"simulated:64MiB@{path}")
    seconds = {seconds_of_a_block(device) for device in (made, named, choose_driver(0))}
    assert len(seconds) == 1
    assert 1.0 < seconds.pop() < 1.01
    assert seconds_of_a_block(choose_driver(0, "simulated:64MiB")) < 0.01
    a100 = rmm_uvm.simulated_device("64MiB", machine=load_machine("a100-pcie4"))
    by_name = choose_driver(0, "simulated:64MiB@a100-pcie4")
    assert by_name.info.total_bytes == 64 * MIB
    assert seconds_of_a_block(a100) == seconds_of_a_block(by_name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "simulated:64MiB@a100-pcie-4",
            r"driver=.*: there is no machine 'a100-pcie-4' \(did you m",
        ),
        ("simulated:64MiB@nothing", r"there is no machine 'nothing': use a10-pcie4, a100-pcie4, "),
        ("simulated:64MiB@", "there is no machine ''"),
        ("simulated:@a100-pcie4", "SIZE=''"),
        ("simulated:64MiB@/no/such.toml", "machine file /no/such.toml cannot be read: No such"),
        (
            "cuda@a100-pcie4",
            "use 'cuda', 'simulated', 'simulated:SIZE' or 'simulated:SIZE@MACHINE'",
        ),
    ],
)
def test_machine_that_is_none_is_refused_with_those_that_there_are(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        choose_driver(0, name)


def test_machine_of_a_call_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="machine=4: a name such as 'h200-pcie5', a path"):
        rmm_uvm.simulated_device("64MiB", machine=4)  # type: ignore[arg-type]


def test_environment_names_the_driver_only_where_the_call_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:32MiB")
    assert choose_driver(0).info.total_bytes == 32 * MIB
    assert choose_driver(0, "simulated:64MiB").info.total_bytes == 64 * MIB


def test_environment_set_to_nothing_means_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", " ")
    with pytest.raises(DriverError):
        choose_driver(99)


@pytest.mark.parametrize("name", ["cuda:1", "simulator", "SIMULATED", "simulated:1", "simulated:x"])
def test_unknown_driver_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        choose_driver(0, name)


@pytest.mark.parametrize("device", [-1, True, "0", 1.0, None])
def test_ordinal_that_is_none_is_refused(device: Any) -> None:
    with pytest.raises(ConfigurationError, match="numbered from 0"):
        choose_driver(device, "simulated:64MiB")


@pytest.mark.parametrize("memory", [0, -1, 1, "3MiB", "much"])
def test_simulated_memory_must_be_whole_blocks(memory: Any) -> None:
    with pytest.raises(ConfigurationError):
        rmm_uvm.simulated_device(memory)


def test_drivers_are_not_made_by_their_class() -> None:
    with pytest.raises(TypeError, match="simulated_device"):
        UvmDriver()
    assert issubclass(SimulatedDevice, UvmDriver)


@pytest.mark.parametrize("value", ["yes", "0", "of"])
def test_counters_switch_takes_on_and_off_only(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("RMM_UVM_COUNTERS", value)
    with pytest.raises(ConfigurationError, match="RMM_UVM_COUNTERS"):
        cuda_driver(0)
    with pytest.raises(ConfigurationError, match="RMM_UVM_COUNTERS"):  # no counters, yet an error
        choose_driver(driver="simulated:64MiB")


@pytest.mark.parametrize(
    ("value", "expected"), [("on", True), ("", True), ("OFF", False), (" off ", False)]
)
def test_counters_switch_reaches_the_driver(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    asked: list[tuple[int, bool]] = []
    monkeypatch.setenv("RMM_UVM_COUNTERS", value)
    monkeypatch.setattr(
        rmm_uvm.drivers, "CudaDriver", lambda number, *, counters: asked.append((number, counters))
    )
    cuda_driver(2)
    assert asked == [(2, expected)]


def test_device_that_does_not_exist_is_one_line() -> None:
    with pytest.raises(UvmError) as error:
        cuda_driver(99)
    assert isinstance(error.value, DriverError)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("driver", [5, b"cuda", ["cuda"]])
def test_driver_that_is_neither_a_name_nor_a_driver_is_refused(driver: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^driver=.*use 'cuda', 'simulated'"):
        choose_driver(driver=driver)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("simulated:64Mib2", "SIZE='64Mib2': expected"),
        ("simulated:0", "SIZE='0'"),
        ("simulated:63MiB", "a simulated device has a multiple of 2 MiB, such as simulated:64MiB"),
    ],
)
def test_size_that_no_simulated_device_has_is_told_with_where_it_was_written(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=f"^driver='{name}': {reason}"):
        choose_driver(driver=name)
    monkeypatch.setenv("RMM_UVM_DRIVER", f" {name} ")
    with pytest.raises(ConfigurationError, match=f"^RMM_UVM_DRIVER='{name}': {reason}"):
        choose_driver()


def test_unknown_driver_of_the_environment_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "gpu")
    with pytest.raises(ConfigurationError, match=r"^RMM_UVM_DRIVER='gpu': use"):
        choose_driver()
