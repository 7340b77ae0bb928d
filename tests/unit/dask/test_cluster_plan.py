# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `local_cluster` starts, given what was asked and what there is."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from dask_cuda import LocalCUDACluster
from distributed import LocalCluster, Nanny, Worker

from rmm_uvm.dask.cluster import local as cluster
from rmm_uvm.dask.cluster.planning import ClusterPlan, Surroundings, plan_cluster
from rmm_uvm.dask.flags import arguments_of
from rmm_uvm.errors import AvailabilityError, ConfigurationError

TWO_GPUS = Surroundings(gpus=2)


def plan(
    n_workers: int | None = None,
    around: Surroundings = TWO_GPUS,
    simulated: Any = None,
    protocol: str | None = None,
    **keywords: Any,
) -> ClusterPlan:
    return plan_cluster(
        n_workers, simulated=simulated, protocol=protocol, keywords=keywords, around=around
    )


def told(found: ClusterPlan) -> dict[str, str]:
    """Return the settings that workers are told, by flag."""
    arguments = found.keywords["preload_argv"]
    return dict(zip(arguments[::2], arguments[1::2], strict=True))


# --- with GPUs ---------------------------------------------------------------------------------


def test_gpus_get_a_cluster_of_dask_cuda_set_up_right_and_nothing_to_say() -> None:
    found = plan(maximum_pool_size="1GiB")
    assert not found.simulated
    assert found.lines == ()
    assert found.keywords == {
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:8787",
        "device_memory_limit": 0,
        "n_workers": None,
        "protocol": "ucxuvm",
        "preload": ["rmm_uvm.dask"],
        "preload_argv": arguments_of(
            {"maximum_pool_size": 1 << 30, "driver": "cuda", "workers_per_host": 2}
        ),
    }


def test_without_ucx_workers_exchange_over_tcp_and_the_reason_is_said() -> None:
    found = plan(around=Surroundings(gpus=1, ucx_problem="distributed-ucxx is missing"))
    assert found.keywords["protocol"] == "tcp"
    assert found.lines[0][1] == "workers exchange data over TCP: distributed-ucxx is missing"


@pytest.mark.parametrize(
    ("asked", "section", "expected"),
    [("tcp", None, "tcp"), (None, {"protocol": "ucx"}, "ucx"), ("tcp", {"protocol": "ucx"}, "tcp")],
)
def test_protocol_is_the_argument_then_the_configuration(
    asked: str | None, section: Any, expected: str
) -> None:
    around = Surroundings(gpus=1, section=section)
    assert plan(around=around, protocol=asked).keywords["protocol"] == expected


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, ("127.0.0.1:8787", None)),
        ({"processes": False}, ("127.0.0.1:8787", "127.0.0.1:0")),
        ({"dashboard_address": ":8787"}, (":8787", None)),
        ({"dashboard_address": None}, (None, None)),
        ({"processes": False, "worker_dashboard_address": ":0"}, ("127.0.0.1:8787", ":0")),
        ({"host": "10.0.0.1"}, (None, None)),
        ({"interface": "ib0", "processes": False}, (None, None)),
    ],
)
def test_pages_are_for_this_machine_unless_others_are_meant(
    keywords: dict[str, Any], expected: tuple[str | None, str | None]
) -> None:
    found = plan(**keywords).keywords
    asked = ("dashboard_address", "worker_dashboard_address")
    assert tuple(found.get(name) for name in asked) == expected


def test_security_leaves_the_protocol_to_dask() -> None:
    assert plan(security=True).keywords["protocol"] is None


@pytest.mark.parametrize(
    ("n_workers", "around", "keywords", "expected"),
    [
        (None, TWO_GPUS, {}, "2"),
        (1, TWO_GPUS, {}, "1"),
        (None, Surroundings(gpus=8, visible_devices="1,2,3"), {}, "3"),
        (None, TWO_GPUS, {"CUDA_VISIBLE_DEVICES": [0]}, "1"),
        (None, TWO_GPUS, {"CUDA_VISIBLE_DEVICES": "0,1"}, "2"),
        (None, TWO_GPUS, {"workers_per_host": 7}, "7"),
    ],
)
def test_workers_are_told_how_many_share_the_host(
    n_workers: int | None, around: Surroundings, keywords: dict[str, Any], expected: str
) -> None:
    assert told(plan(n_workers, around, **keywords))["--workers-per-host"] == expected


def test_workers_are_not_told_what_the_configuration_says_of_the_host() -> None:
    around = Surroundings(gpus=2, section={"workers-per-host": 5})
    assert "--workers-per-host" not in told(plan(around=around))


def test_limit_of_the_device_that_is_given_stays() -> None:
    assert plan(device_memory_limit="1GB").keywords["device_memory_limit"] == "1GB"


# --- without -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("simulated", "around", "keywords", "driver", "reason"),
    [
        (None, Surroundings(), {}, "simulated", "of 16GiB, since there is no GPU here"),
        ("64MiB", TWO_GPUS, {}, "simulated:64MiB", "of 64MiB, as asked"),
        (64 << 20, TWO_GPUS, {}, "simulated:67108864", "of 67108864, as asked"),
        (True, TWO_GPUS, {}, "simulated", "of 16GiB, as asked"),
        (None, TWO_GPUS, {"driver": "simulated:1GiB"}, "simulated:1GiB", "of 1GiB, as configured"),
        (None, Surroundings(gpus=2, driver="simulated"), {}, "simulated", "as configured"),
    ],
)
def test_simulated_devices_are_told_of_first(
    simulated: Any, around: Surroundings, keywords: dict[str, Any], driver: str, reason: str
) -> None:
    found = plan(None, around, simulated, **keywords)
    assert found.simulated
    assert found.lines[0][1].startswith("workers on simulated devices")
    assert reason in found.lines[0][1]
    assert told(found)["--driver"].strip('"') == driver
    assert found.keywords["n_workers"] == 2
    assert found.keywords["protocol"] is None


def test_simulated_cluster_gets_no_keyword_that_only_dask_cuda_has() -> None:
    found = plan(simulated=True, device_memory_limit=0, CUDA_VISIBLE_DEVICES="0", host="localhost")
    assert found.keywords["host"] == "localhost"
    assert not {"device_memory_limit", "CUDA_VISIBLE_DEVICES"} & set(found.keywords)


def test_no_keyword_of_dasks_clusters_is_taken_for_a_misspelt_one_of_ours() -> None:
    kinds = (LocalCluster, LocalCUDACluster, Nanny, Worker)
    theirs = {name for kind in kinds for name in inspect.signature(kind).parameters}
    own = {"n_workers", "protocol", "preload_argv"}
    others = {name for name in theirs - own if not name.startswith("rmm_")}
    assert {"memory_limit", "CUDA_VISIBLE_DEVICES"} <= others
    assert plan(around=TWO_GPUS, **dict.fromkeys(others)).keywords["memory_limit"] is None


@pytest.mark.parametrize("keywords", [{"simulated": False}, {"driver": "cuda"}])
def test_gpu_that_is_asked_for_and_missing_is_said(keywords: dict[str, Any]) -> None:
    with pytest.raises(AvailabilityError, match="there is no GPU here"):
        plan(around=Surroundings(), **keywords)


# --- preloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preload", "configured", "expected"),
    [
        (None, (), ["rmm_uvm.dask"]),
        ("mine", (), ["rmm_uvm.dask", "mine"]),
        (["mine", "rmm_uvm.dask"], ("theirs",), ["rmm_uvm.dask", "mine"]),
        (None, ["theirs"], ["rmm_uvm.dask", "theirs"]),
        (None, "rmm_uvm.dask", ["rmm_uvm.dask"]),
    ],
)
def test_our_preload_comes_first_and_others_stay(
    preload: Any, configured: Any, expected: list[str]
) -> None:
    around = Surroundings(gpus=1, worker_preload=configured)
    assert plan(around=around, preload=preload).keywords["preload"] == expected


def test_arguments_of_the_configuration_stay_in_front() -> None:
    around = Surroundings(gpus=1, worker_preload_argv=["--prefetch", "never"])
    assert plan(around=around).keywords["preload_argv"][:2] == ["--prefetch", "never"]


# --- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"rmm_pool_size": "1GB"}, "rmm_pool_size of dask-cuda would replace"),
        ({"rmm_managed_memory": True, "rmm_async": True}, "rmm_managed_memory, rmm_async"),
        ({"enable_nvlink": True}, "enable_nvlink: leave it out"),
        ({"enable_infiniband": False}, "set UCX_TLS"),
        ({"preload_argv": ["--x"]}, "give them as keywords"),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, "names 0 twice"),
        ({"CUDA_VISIBLE_DEVICES": []}, "hides every GPU"),
        ({"prefetch": "maybe"}, "prefetch='maybe'"),
        ({"simulated": True, "driver": "cuda"}, "give one of them"),
        ({"simulated": "many"}, "^simulated='many': SIZE='many': expected"),
        ({"simulated": "63MiB"}, "^simulated='63MiB': a simulated device has a multiple of 2 MiB"),
        ({"driver": "simulated:x"}, "^driver='simulated:x': SIZE='x': expected"),
        ({"n_workers": 0}, "n_workers=0"),
        ({"n_workers": True}, "n_workers=True"),
        ({"maximum_pool_sise": "1GiB"}, "no keyword maximum_pool_sise: is maximum_pool_size meant"),
        ({"prefech": "always"}, "is prefetch meant"),
    ],
)
def test_keyword_that_cannot_be_is_refused_in_one_line(
    keywords: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        plan(**keywords)
    assert "\n" not in str(caught.value)


def test_driver_of_the_environment_that_cannot_be_is_told_as_such() -> None:
    with pytest.raises(ConfigurationError, match=r"^RMM_UVM_DRIVER='simulated:63MiB': "):
        plan(around=Surroundings(gpus=2, driver="simulated:63MiB"))
    assert plan(around=Surroundings(gpus=2, driver="simulated:64MiB")).simulated


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"visible_devices": ""}, "hides every GPU"),
        ({"ucx_pool_size": "1GB"}, "distributed-ucxx.rmm.pool-size"),
        ({"ucx_multi_buffer": True}, "multi-buffer"),
        ({"worker_preload_argv": [["--a"], ["--b"]]}, "one list of words"),
        ({"section": {"colour": "red"}}, "no setting 'colour'"),
    ],
)
def test_surroundings_that_cannot_be_are_refused(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        plan(around=Surroundings(gpus=2, **facts))
    assert not plan(around=TWO_GPUS).simulated


def test_options_that_ask_for_nothing_are_not_refused() -> None:
    assert plan(rmm_pool_size=None, enable_nvlink=None).keywords["rmm_pool_size"] is None


# --- a budget that no worker can have ----------------------------------------------------------

NO_BUDGET = {"device_budget": "none"}


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"device_budget": "1TiB"}, "device_budget is 1.00 TiB, the device has 64.00 MiB"),
        ({"device_budget": "65MiB"}, "give that or less"),
        ({"device_budget": 0.01}, r"device_budget is \d+ bytes: at least"),
        ({"device_budget": "1MiB"}, "device_budget='1MiB': at least"),
        ({"device_budget": 1.5}, "device_budget=1.5: a fraction is at most 1"),
        ({"device_budget": "12 elephants"}, "device_budget='12 elephants': expected"),
        (
            {"device_budget": "32MiB", "eviction": "lur"},
            r"eviction='lur' \(did you mean 'lru'\?\): use",
        ),
        ({**NO_BUDGET, "eviction": "lru"}, "eviction='lru' without a budget: give device_budget"),
        ({**NO_BUDGET, "neighbors": "auto"}, "neighbors='auto' without a budget: give device_"),
    ],
)
@pytest.mark.parametrize("in_section", [False, True])
def test_budget_that_no_worker_can_have_is_refused_before_one_starts(
    keywords: dict[str, Any], reason: str, *, in_section: bool
) -> None:
    section = {name.replace("_", "-"): value for name, value in keywords.items()}
    around = Surroundings(section=section if in_section else None)
    with pytest.raises(ConfigurationError, match=reason):
        plan(around=around, simulated="64MiB", **({} if in_section else keywords))


@pytest.mark.parametrize(
    "keywords",
    [
        {"device_budget": "64MiB"},
        {"device_budget": 1.0, "eviction": "lru"},
        {"device_budget": 0.125},
        {"device_budget": "8MiB", "neighbors": "auto"},
        {},
    ],
)
def test_budget_that_workers_can_have_is_theirs(keywords: dict[str, Any]) -> None:
    assert ("--device-budget" in told(plan(simulated="64MiB", **keywords))) is bool(keywords)


def test_budget_is_compared_with_the_largest_gpu_where_its_memory_is_told() -> None:
    of_80 = Surroundings(gpus=2, largest_gpu_bytes=80 << 30)
    assert plan(around=of_80, device_budget="80GiB")
    with pytest.raises(ConfigurationError, match=r"is 81\.00 GiB, the device has 80\.00 GiB"):
        plan(around=of_80, device_budget="81GiB")
    assert plan(around=TWO_GPUS, device_budget="81GiB")


@pytest.mark.parametrize("words", [["--device-budget", "32MiB"], ["--device-budget=32MiB"]])
def test_policy_is_no_mistake_where_workers_have_their_budget_from_elsewhere(
    words: list[str],
) -> None:
    asked = {"simulated": "64MiB", "eviction": "lru"}
    assert plan(around=Surroundings(), **asked)
    none = {"device-budget": None}
    assert plan(around=Surroundings(section=none, worker_preload_argv=words), **asked)
    with pytest.raises(ConfigurationError, match="without a budget"):
        plan(around=Surroundings(section=none), **asked)


def test_flag_of_the_configuration_comes_before_its_section_not_before_a_keyword() -> None:
    around = Surroundings(
        section={"device-budget": "1TiB"}, worker_preload_argv=["--device-budget", "32MiB"]
    )
    assert plan(around=around, simulated="64MiB")
    with pytest.raises(ConfigurationError, match=r"is 2\.00 TiB, the device has"):
        plan(around=around, simulated="64MiB", device_budget="2TiB")


def test_memory_of_gpus_is_what_nvml_tells_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def memory_of(index: int) -> SimpleNamespace:
        if index == 1:
            raise RuntimeError("Not Supported")  # it shares the host's memory
        return SimpleNamespace(total=(80 << 30) + index)

    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=memory_of,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert cluster._memory_of_gpus() == [80 << 30, None, (80 << 30) + 2]
    around = cluster._look_around()
    assert (around.gpus, around.largest_gpu_bytes) == (3, (80 << 30) + 2)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    around = cluster._look_around()
    assert (around.gpus, around.largest_gpu_bytes) == (0, None)


# --- the off switch ----------------------------------------------------------------------------


def test_what_suits_a_pool_is_left_to_dask_cuda_where_the_switch_is_off() -> None:
    found = plan(around=dataclasses.replace(TWO_GPUS, switched_off=True))
    assert "device_memory_limit" not in found.keywords
    assert found.keywords["protocol"] is None
    assert [line for _, line in found.lines] == ["workers get no pool: switched off by RMM_UVM=off"]
    assert plan().keywords["device_memory_limit"] == 0
    assert plan().keywords["protocol"] == "ucxuvm"


def test_protocol_and_limit_that_are_asked_for_stay_where_the_switch_is_off() -> None:
    around = dataclasses.replace(TWO_GPUS, switched_off=True)
    found = plan(around=around, protocol="ucxuvm", device_memory_limit=0)
    assert (found.keywords["protocol"], found.keywords["device_memory_limit"]) == ("ucxuvm", 0)
