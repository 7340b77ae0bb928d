# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the doctor says works on a simulated device, and what a simulated device really has."""

from __future__ import annotations

import io
from typing import Any

import pytest
import rmm
from rich.console import Console

import rmm_uvm
from rmm_uvm.cli.doctor import render
from rmm_uvm.doctor import Capability, CudaFacts
from rmm_uvm.doctor.simulated import SIMULATED_FEATURES
from rmm_uvm.errors import ConfigurationError

from .test_doctor import examined

NAMED = "simulated:64MiB"
NO_GPU = CudaFacts(reason="no libcuda")
SAID = {feature.name: feature for feature in SIMULATED_FEATURES}


def page(**facts: Any) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(render(examined(**facts)))
    return console.file.getvalue()


def test_simulated_device_is_said_to_be_in_use_and_its_pool_is_not_judged_by_gpus() -> None:
    told = page(driver_setting=NAMED, cuda=NO_GPU)
    assert (
        f"RMM_UVM_DRIVER={NAMED}: a simulated device of 64.00 MiB is used; no GPU is needed, and "
        "there is none: no libcuda"
    ) in told
    assert "Features of the simulated device\n" in told
    assert "yes  managed pool" in told
    assert "no   managed pool" not in told
    assert "no CUDA device" not in told


def test_gpu_beside_a_simulated_device_is_told_of_and_said_not_to_be_used() -> None:
    told = page(driver_setting=NAMED)
    assert "a simulated device of 64.00 MiB is used, and none of these GPUs" in told
    assert "NVIDIA H200" in told
    assert told.index("Features of the simulated device") < told.index("Features of the GPUs, if")


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"driver_setting": "cuda"},
        {"driver_setting": "foo"},
        {"driver_setting": NAMED, "packages": {}},
        {"driver_setting": NAMED, "extension": Capability.no("it is broken")},
    ],
)
def test_where_no_simulated_device_is_used_nothing_is_said_of_one(facts: dict[str, Any]) -> None:
    assert examined(cuda=NO_GPU, **facts).simulated_features == ()
    told = page(cuda=NO_GPU, **facts)
    assert "Features\n" in told
    assert "no   managed pool" in told
    assert "is used" not in told


def test_report_as_data_has_the_features_of_both() -> None:
    found = examined(driver_setting=NAMED, cuda=NO_GPU).to_dict()
    assert found["is_installable"]
    assert (found["features"][0]["name"], found["features"][0]["available"]) == (
        "managed_pool",
        False,
    )
    assert [one["name"] for one in found["simulated_features"]] == list(SAID)


def test_device_has_what_is_said_to_work_on_it() -> None:
    mr = rmm_uvm.managed_pool(driver=NAMED, initial_pool_size="96MiB")
    device = mr.driver
    has = {
        "managed_pool": mr.allocate(80 << 20) != 0,  # more than the device
        "concurrent_managed_access": bool(device.info.concurrent_managed_access),
        "discard": bool(device.info.discard),
        "kernel_counters": bool(device.counters_available()),
        "peer_access": device.device_count > 1,
    }
    with rmm_uvm.monitor(driver=device, attribution=True) as monitor:
        has["causes"] = bool(monitor.sources["cupti"])
    said = {name: SAID[name].available for name in has}
    assert has == {name: bool(value) for name, value in said.items()}


def test_device_lacks_what_is_said_not_to_work_and_the_one_that_is_named_has_it() -> None:
    def exported(driver: Any) -> object:
        pool = rmm_uvm.ipc_pool("4MiB", driver=driver)
        return pool.export(rmm.DeviceBuffer(size=4096, mr=pool))

    assert not SAID["legacy_ipc"].available
    with pytest.raises(ConfigurationError, match="real bytes"):
        exported(NAMED)
    assert "simulated_device(backing=True)" in SAID["legacy_ipc"].reason
    assert exported(rmm_uvm.simulated_device("64MiB", backing=True))
    assert "simulated_device(neighbors=1)" in SAID["peer_access"].reason
    assert rmm_uvm.simulated_device("64MiB", neighbors=1).device_count == 2
