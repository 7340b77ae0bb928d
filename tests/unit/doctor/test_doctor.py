# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's conclusions on machines of every kind."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rmm_uvm.doctor import (
    BoardFacts,
    Capability,
    CudaFacts,
    DeviceFacts,
    DoctorReport,
    Feature,
    KernelDriverFacts,
    PoolPlan,
    examine,
)
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.host_memory import HostMemory

GIB = 2**30
NO_LIBCUDA = CudaFacts(reason="libcuda.so.1 was not found")


def device(index: int = 0, **changes: Any) -> DeviceFacts:
    """Return a data centre device that can do everything except pageable memory access."""
    usual = DeviceFacts(
        index=index,
        name="NVIDIA H200",
        uuid=f"00000000-0000-0000-0000-{index:012}",
        compute_capability=(9, 0),
        total_bytes=139 * GIB,
        free_bytes=138 * GIB,
        managed_memory=True,
        concurrent_managed_access=True,
        pageable_memory_access=False,
        host_page_tables=False,
        legacy_ipc=True,
    )
    return replace(usual, **changes)


def cuda(*devices: DeviceFacts, **changes: Any) -> CudaFacts:
    """Return a CUDA 13.0 library with these devices, all of them peers."""
    peers = frozenset((a.index, b.index) for a in devices for b in devices if a.index != b.index)
    usual = CudaFacts("", cuda_version=(13, 0), devices=devices, has_discard=True, peers=peers)
    return replace(usual, **changes)


NOBODY_JOINED = BoardFacts("/dev/shm/rmm_uvm-board-0 does not exist: no process has joined a board")


class FakeProbe:
    """A machine described by values; by default one H200 where everything is in order."""

    def __init__(self, **changes: Any) -> None:
        self.facts: dict[str, Any] = {
            "cuda": cuda(device()),
            "kernel_driver": KernelDriverFacts(version=(580, 159, 4), is_open=True),
            "packages": {"rmm-cu13": "26.10.0"},
            "extras": (Feature("report", "report", "reports", available=True),),
            "extension": Capability.yes(),
            "counters": Capability.yes("/dev/nvidia-uvm-tools"),
            "attach": Capability.yes("any process"),
            "nvml": Capability.yes(),
            "cupti": Capability.yes("/opt/libcupti.so.13"),
            "host_memory": HostMemory(256 * GIB, 100 * GIB),
            "harvest_board": NOBODY_JOINED,
            "driver_setting": "",
            "variables": (),
        }
        assert changes.keys() <= self.facts.keys()
        self.facts.update(changes)

    def cuda(self) -> Any:
        return self.facts["cuda"]

    def kernel_driver(self) -> Any:
        return self.facts["kernel_driver"]

    def packages(self) -> Any:
        if isinstance(self.facts["packages"], Exception):
            raise self.facts["packages"]
        return self.facts["packages"]

    def extras(self) -> Any:
        return self.facts["extras"]

    def extension(self) -> Any:
        return self.facts["extension"]

    def counters(self) -> Any:
        return self.facts["counters"]

    def attach(self) -> Any:
        return self.facts["attach"]

    def nvml(self) -> Any:
        return self.facts["nvml"]

    def cupti(self) -> Any:
        return self.facts["cupti"]

    def harvest_board(self) -> Any:
        return self.facts["harvest_board"]

    def driver_setting(self) -> Any:
        return self.facts["driver_setting"]

    def variables(self) -> Any:
        return self.facts["variables"]

    def host_memory(self, device_nodes: Sequence[int] = ()) -> Any:
        self.asked_nodes = list(device_nodes)
        if isinstance(self.facts["host_memory"], Exception):
            raise self.facts["host_memory"]
        return self.facts["host_memory"]


def plan(devices: Sequence[DeviceFacts], memory: HostMemory) -> list[PoolPlan]:
    """Plan pools as large as device and host memory together."""
    return [
        PoolPlan(d.index, {"maximum_bytes": d.total_bytes + memory.available_bytes})
        for d in devices
    ]


def examined(**facts: Any) -> DoctorReport:
    return examine(FakeProbe(**facts), plan)


def unavailable(report: DoctorReport) -> set[str]:
    return {feature.name for feature in report.features if not feature.available}


def test_examine_healthy_machine_has_all_but_pageable_access_and_peers() -> None:
    report = examined()
    assert report.is_installable
    assert unavailable(report) == {"pageable_memory_access", "peer_access"}
    assert report.versions["NVIDIA driver"] == "580.159.04 (open kernel modules)"
    assert report.versions["CUDA driver API"] == "13.0"
    assert report.plans == (PoolPlan(0, {"maximum_bytes": 239 * GIB}),)
    assert report.harvest_board == NOBODY_JOINED


def test_examine_any_machine_gives_a_reason_for_each_missing_feature_only() -> None:
    for report in (examined(), examined(cuda=NO_LIBCUDA)):
        for feature in report.features:
            assert feature.available == (feature.reason == ""), feature


def test_examine_no_libcuda_names_it_and_plans_nothing() -> None:
    report = examined(cuda=NO_LIBCUDA, kernel_driver=KernelDriverFacts())
    assert not report.is_installable
    assert report.feature("managed_pool").reason == NO_LIBCUDA.reason == report.devices_reason
    for name in ("discard", "kernel_counters", "peer_access"):
        assert report.feature(name).reason == "no CUDA device"
    assert report.plans == ()
    assert "NVIDIA driver" not in report.versions


def test_examine_library_without_device_keeps_its_version() -> None:
    facts = CudaFacts(reason="no CUDA device is visible", cuda_version=(13, 0))
    report = examined(cuda=facts)
    assert report.versions["CUDA driver API"] == "13.0"
    assert report.feature("managed_pool").reason == "no CUDA device is visible"


def test_examine_driver_575_has_neither_pool_nor_discard() -> None:
    report = examined(
        cuda=cuda(device(), cuda_version=(12, 9), has_discard=False),
        kernel_driver=KernelDriverFacts(version=(575, 51, 3)),
    )
    assert report.feature("managed_pool").reason == (
        "the driver supports CUDA 12.9; RMM for CUDA 13 needs driver 580 or newer"
    )
    assert "575.51.03" in report.feature("discard").reason
    assert "580.65.06" in report.feature("discard").reason


@pytest.mark.parametrize(
    ("packages", "cuda_version", "reason"),
    [
        ({"rmm-cu12": "26.10.0"}, (12, 9), ""),
        ({"rmm": "26.10.0", "cuda-bindings": "12.9.2"}, (12, 9), ""),
        ({"rmm-cu12": "26.10.0"}, (12, 1), "RMM for CUDA 12 needs driver 535 or newer"),
        ({"rmm": "26.10.0"}, (12, 9), "RMM for CUDA 13 needs driver 580 or newer"),
    ],
)
def test_driver_that_is_needed_follows_what_rmm_is_for(
    packages: Any, cuda_version: Any, reason: str
) -> None:
    found = examined(packages=packages, cuda=cuda(device(), cuda_version=cuda_version))
    told = found.feature("managed_pool").reason
    assert told.endswith(reason) if reason else not told


def test_examine_driver_575_below_compatibility_library_has_pool_without_discard() -> None:
    report = examined(kernel_driver=KernelDriverFacts(version=(575, 51, 3)))
    assert report.is_installable
    assert not report.feature("discard").available


@pytest.mark.parametrize(
    ("version", "available"),
    [((580, 65, 5), False), ((580, 65, 6), True), ((595, 1), True), (None, True)],
)
def test_examine_discard_follows_the_kernel_driver(version: Any, available: bool) -> None:
    report = examined(kernel_driver=KernelDriverFacts(version=version))
    assert report.feature("discard").available is available


def test_examine_library_without_discard_functions_names_them() -> None:
    report = examined(cuda=cuda(device(), has_discard=False))
    assert "cuMemDiscardBatchAsync" in report.feature("discard").reason


def test_examine_wsl2_installs_but_is_bound_to_the_card() -> None:
    report = examined(
        cuda=cuda(device(concurrent_managed_access=False)),
        kernel_driver=KernelDriverFacts(is_wsl=True),
    )
    assert report.is_installable
    assert report.feature("concurrent_managed_access").reason.startswith("WSL2 has no page migrat")
    assert "every device" in report.feature("discard").reason


def test_examine_one_device_without_concurrent_access_is_named() -> None:
    report = examined(cuda=cuda(device(0), device(1, name="Old", concurrent_managed_access=False)))
    reason = report.feature("concurrent_managed_access").reason
    assert "device 1 (Old)" in reason
    assert "device 0" not in reason


def test_examine_oversubscription_switched_off_is_named() -> None:
    parameters = {"uvm_global_oversubscription": "0"}
    report = examined(kernel_driver=KernelDriverFacts((580, 159, 4), parameters=parameters))
    assert "=0" in report.feature("concurrent_managed_access").reason


def test_examine_device_without_managed_memory_is_not_installable() -> None:
    report = examined(cuda=cuda(device(managed_memory=False)))
    assert not report.is_installable
    assert "device 0 (NVIDIA H200)" in report.feature("managed_pool").reason


def test_examine_many_devices_lacking_something_are_shortened() -> None:
    devices = [device(index, legacy_ipc=False) for index in range(8)]
    reason = examined(cuda=cuda(*devices)).feature("legacy_ipc").reason
    assert "and 5 more" in reason
    assert "device 3" not in reason


def test_examine_counters_and_cupti_missing_are_passed_on() -> None:
    report = examined(
        counters=Capability.no("no tools device"),
        cupti=Capability.no("no libcupti.so.13"),
    )
    assert report.is_installable
    assert report.feature("kernel_counters").reason == "no tools device"
    assert report.feature("cupti").reason == "no libcupti.so.13"


def test_examine_attaching_needs_the_tools_device_and_permission() -> None:
    assert examined().feature("attach").detail == "any process"
    missing = examined(counters=Capability.no("no tools device"))
    assert missing.feature("attach").reason == "no tools device"
    denied = examined(attach=Capability.no("no permission"))
    assert denied.feature("attach").reason == "no permission"


def test_examine_own_counters_switched_off_still_attaches() -> None:
    off = Capability.no("switched off by RMM_UVM_COUNTERS=off")
    assert examined(counters=off).feature("attach").available


def test_examine_nvml_missing_is_passed_on() -> None:
    report = examined(nvml=Capability.no("no libnvidia-ml.so.1"))
    assert report.is_installable
    assert report.feature("nvml").reason == "no libnvidia-ml.so.1"


def test_examine_two_devices_with_peer_access_have_it() -> None:
    report = examined(cuda=cuda(device(0), device(1)))
    assert report.feature("peer_access").available


@pytest.mark.parametrize("peers", [frozenset(), frozenset({(0, 1)})])
def test_examine_two_devices_without_mutual_access_are_named(peers: Any) -> None:
    report = examined(cuda=cuda(device(0), device(1), peers=peers))
    assert report.feature("peer_access").reason == ("devices 0 and 1: no direct link between them")


def test_examine_many_devices_without_access_are_shortened() -> None:
    report = examined(cuda=cuda(*(device(index) for index in range(16)), peers=frozenset()))
    assert report.feature("peer_access").reason == (
        "devices 0 and 1, 0 and 2, 0 and 3 and 117 more: no direct link between them"
    )
    assert report.topology.reason == "no direct link between them"


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ({"rmm-cu13": "26.12.0"}, "26.12.0 is not tested, 26.06, 26.08 and 26.10 are: pip install"),
        ({"rmm-cu13": "27.10.0"}, "27.10.0 is not tested"),
        ({"rmm-cu12": "26.4.0"}, "rmm-cu12 26.4.0 is not tested"),
        (
            {"rmm-cu12": "26.10.0", "rmm-cu13": "26.10.0"},
            "rmm-cu12 and rmm-cu13 are installed over each other: pip uninstall rmm-cu12 "
            "librmm-cu12 rmm-cu13 librmm-cu13, then pip install 'rmm-cu13==26.10.*'",
        ),
        (
            {"rmm": "26.2.0"},
            "rmm 26.2.0 is not tested, 26.06, 26.08 and 26.10 are: conda install rmm=26.10",
        ),
        (
            {"rmm": "26.10.0", "rmm-cu13": "26.10.0"},
            "rmm and rmm-cu13 are installed over each other: pip uninstall rmm-cu13 librmm-cu13, "
            "then conda install --force-reinstall rmm",
        ),
        ({}, "RMM is not installed: pip install 'rmm-cu13==26.10.*'"),
        ({"cuda-bindings": "12.9.2"}, "RMM is not installed: pip install 'rmm-cu12==26.10.*'"),
    ],
)
def test_examine_wrong_rmm_is_named_before_all_else(packages: Any, expected: str) -> None:
    report = examined(packages=packages, cuda=NO_LIBCUDA)
    assert expected in report.feature("managed_pool").reason
    assert report.plans == ()


@pytest.mark.parametrize(
    "packages",
    [{"rmm-cu13": "26.10.3"}, {"rmm": "26.10.0a12"}, {"rmm-cu12": "26.6.0"}, {"rmm": "26.8.1"}],
)
def test_examine_right_rmm_is_installable(packages: Any) -> None:
    assert examined(packages=packages).is_installable


def test_examine_broken_extension_is_not_installable() -> None:
    report = examined(extension=Capability.no("undefined symbol"))
    assert report.feature("managed_pool").reason == "undefined symbol"
    assert report.plans == ()


@pytest.mark.parametrize(
    ("changes", "kernel", "expected"),
    [
        ({"pageable_memory_access": True, "host_page_tables": True}, {}, "ATS"),
        (
            {"pageable_memory_access": True, "host_page_tables": True},
            {},
            "without a fault, and return by access counters",
        ),
        (
            {"pageable_memory_access": True, "host_page_tables": True},
            {"parameters": {"uvm_perf_access_counter_migration_enable": "0"}},
            "return by faults (uvm_perf_access_counter_migration_enable=0)",
        ),
        ({"pageable_memory_access": True}, {}, "HMM"),
        ({}, {"parameters": {"uvm_disable_hmm": "Y"}}, "uvm_disable_hmm=Y"),
        ({}, {"is_open": False}, "open kernel modules"),
        ({}, {"is_open": True}, "neither ATS nor HMM"),
    ],
)
def test_examine_pageable_access_tells_its_kind_or_reason(
    changes: Any, kernel: Any, expected: str
) -> None:
    report = examined(
        cuda=cuda(device(**changes)), kernel_driver=KernelDriverFacts((580, 159, 4), **kernel)
    )
    feature = report.feature("pageable_memory_access")
    assert expected in feature.reason + feature.detail
    assert feature.available is bool(changes)


def test_examine_integrated_device_tells_that_its_memory_is_the_hosts() -> None:
    spark = device(
        name="NVIDIA GB10", integrated=True, pageable_memory_access=True, host_page_tables=True
    )
    report = examined(cuda=cuda(spark))
    feature = report.feature("concurrent_managed_access")
    assert not feature.available
    assert feature.reason.startswith("device 0 (NVIDIA GB10) has the host's memory, which counts")
    assert report.feature("discard").reason == (
        "device 0 (NVIDIA GB10) has the host's memory, of which a discard frees nothing"
    )
    assert report.feature("managed_pool").available
    assert report.feature("pageable_memory_access").detail == (
        "ATS: through the page tables of the host"
    )


def test_examine_integrated_device_without_concurrent_access_is_no_card() -> None:
    orin = device(name="Orin", integrated=True, concurrent_managed_access=False)
    report = examined(cuda=cuda(orin))
    for name in ("concurrent_managed_access", "discard"):
        assert report.feature(name).reason.startswith("device 0 (Orin) has the host's memory")


def test_json_tells_of_memory_of_gpus_that_the_host_counts() -> None:
    host = HostMemory(480 * GIB, 400 * GIB, device_bytes=96 * GIB)
    probe = FakeProbe(cuda=cuda(device(numa_node=1), device(1)), host_memory=host)
    report = examine(probe, plan)
    assert probe.asked_nodes == [1]
    told = json.loads(json.dumps(report.to_dict()))
    assert told["host_memory"]["device_bytes"] == 96 * GIB
    assert (told["devices"][0]["numa_node"], told["devices"][0]["integrated"]) == (1, False)


def test_packages_that_cannot_be_read_are_told_and_none_is_said_to_be_missing() -> None:
    report = examined(packages=AvailabilityError("what is installed here cannot be read: no files"))
    assert report.software_reason == "what is installed here cannot be read: no files"
    assert "rmm-cu13" not in report.versions
    assert "not installed" not in str(report)


def test_examine_unknown_host_memory_is_a_value_with_reason() -> None:
    report = examined(host_memory=AvailabilityError("no meminfo"))
    assert report.host_memory is None
    assert report.host_memory_reason == "no meminfo"
    assert report.plans == ()


def test_report_to_dict_is_json_with_plain_values() -> None:
    report = examined(cuda=cuda(device(0), device(1)))
    read_back = json.loads(json.dumps(report.to_dict()))
    assert read_back["is_installable"] is True
    assert read_back["devices"][1]["total_bytes"] == 139 * GIB
    assert read_back["host_memory"]["available_bytes"] == 100 * GIB
    assert read_back["topology"]["pairs"][0]["peer_access"] == {"available": True, "reason": ""}
    assert read_back["plans"][0]["sizes"] == {"maximum_bytes": 239 * GIB}
    assert {"name", "available", "reason"} <= read_back["features"][0].keys()


def test_report_unknown_feature_raises() -> None:
    with pytest.raises(KeyError, match="teleport"):
        examined().feature("teleport")
