# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How `local_cluster` sets a cluster up: a pure function of what was asked and what there is."""

from __future__ import annotations

import dataclasses
import difflib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rmm_uvm.dask.flags import FLAGS, arguments_of
from rmm_uvm.dask.settings import NAMES, WorkerSettings, settings_of
from rmm_uvm.dask.worker.refusals import WorkerFacts, count_visible_devices, refusals
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.residency.budget import (
    Budget,
    refuse_larger,
    refuse_without_budget,
)
from rmm_uvm.support.driver_names import simulated_bytes
from rmm_uvm.support.messages import shown
from rmm_uvm.support.off_switch import OFF
from rmm_uvm.support.units import parse_size

__all__ = ["ClusterPlan", "Surroundings", "plan_cluster"]

_PRELOAD = "rmm_uvm.dask"
_SIMULATED_WORKERS = 2
# Keywords of LocalCUDACluster that LocalCluster does not have, and simulated devices do not need.
_CUDA_ONLY = (
    "CUDA_VISIBLE_DEVICES",
    "device_memory_limit",
    "enable_cudf_spill",
    "cudf_spill_stats",
    "log_spilling",
    "pre_import",
)
_ALIKE = 0.75  # no keyword of Dask's clusters, and none of dask-cuda's but rmm_*, is so like ours
_THIS_MACHINE = "127.0.0.1"
_UCX_SWITCHES = ("enable_tcp_over_ucx", "enable_infiniband", "enable_nvlink", "enable_rdmacm")


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """Facts about this machine, this process and Dask's configuration.

    Parameters
    ----------
    section : mapping of str to object, or None
        ``rmm-uvm`` in Dask's configuration.
    driver : str or None
        Of the environment variable RMM_UVM_DRIVER.
    gpus : int
        GPUs of this machine.
    largest_gpu_bytes : int or None
        Memory of the one that has most; None where that is not told.
    visible_devices : str or None
        Of CUDA_VISIBLE_DEVICES.
    ucx_problem : str
        Why ``ucxuvm`` cannot be used; empty if it can.
    worker_preload, worker_preload_argv : sequence, or str
        Of ``distributed.worker`` in Dask's configuration.
    ucx_pool_size, ucx_multi_buffer
        As in `rmm_uvm.dask.worker.refusals.WorkerFacts`.
    switched_off : bool
        ``RMM_UVM=off``: workers get no pool, and what suits one is left to dask-cuda.
    """

    section: Mapping[str, Any] | None = None
    driver: str | None = None
    gpus: int = 0
    largest_gpu_bytes: int | None = None
    visible_devices: str | None = None
    ucx_problem: str = ""
    worker_preload: Sequence[str] | str = ()
    worker_preload_argv: Sequence[Any] = ()
    ucx_pool_size: object = None
    ucx_multi_buffer: bool = False
    switched_off: bool = False


@dataclasses.dataclass(frozen=True)
class ClusterPlan:
    """The cluster that is to be started.

    Parameters
    ----------
    simulated : bool
        Dask's LocalCluster, else dask-cuda's LocalCUDACluster.
    keywords : mapping of str to object
        For its constructor.
    lines : tuple of (int, str)
        What to log before anything is started, with its level.
    """

    simulated: bool
    keywords: Mapping[str, Any]
    lines: tuple[tuple[int, str], ...]


def plan_cluster(
    n_workers: int | None,
    *,
    simulated: bool | str | int | None,
    protocol: str | None,
    keywords: Mapping[str, Any],
    around: Surroundings,
) -> ClusterPlan:
    """Return what `local_cluster` is to start; it documents the arguments.

    Raises
    ------
    ConfigurationError
        A setting cannot be used, or an option would replace the pool.
    AvailabilityError
        A GPU was asked for, and there is none.
    """
    own = {name: value for name, value in keywords.items() if name in NAMES}
    others = {name: value for name, value in keywords.items() if name not in NAMES}
    if protocol is not None:
        own["protocol"] = protocol
    settings = settings_of(around.section, own)
    driver, reason = _driver(simulated, settings.driver, own, around)
    lines = []
    if driver.startswith("simulated"):
        size = driver.partition(":")[2] or "16GiB"
        lines.append(
            (logging.WARNING, f"workers on simulated devices of {size}{reason}: no GPU is used")
        )
    is_simulated = bool(lines)
    if around.switched_off:
        lines.append((logging.INFO, f"workers get no pool: {OFF}"))
    _refuse(others, around, is_simulated=is_simulated)
    _refuse_budget(settings, driver, keywords, around)
    if n_workers is not None and (
        not isinstance(n_workers, int) or isinstance(n_workers, bool) or n_workers < 1
    ):
        raise ConfigurationError(f"n_workers={shown(n_workers)}: a number of workers, from 1")
    if is_simulated:
        n_workers = n_workers or _SIMULATED_WORKERS
        others = {name: value for name, value in others.items() if name not in _CUDA_ONLY}
    elif not around.switched_off:  # else dask-cuda spills, as without us
        others.setdefault("device_memory_limit", 0)
    chosen = settings.protocol
    of_ours = not is_simulated and not around.switched_off
    if chosen is None and "security" not in others and of_ours:
        chosen = "tcp" if around.ucx_problem else "ucxuvm"
        if around.ucx_problem:
            lines.append((logging.WARNING, f"workers exchange data over TCP: {around.ucx_problem}"))
    own.pop("protocol", None)
    own["driver"] = driver
    if settings.workers_per_host is None:
        own["workers_per_host"] = n_workers or _visible(others, around)
    return ClusterPlan(
        simulated=is_simulated,
        keywords={
            "threads_per_worker": 1,
            **_pages(others),
            **others,
            "n_workers": n_workers,
            "protocol": chosen,
            "preload": _preload(others, around),
            "preload_argv": [*_arguments(around), *arguments_of(own)],
        },
        lines=tuple(lines),
    )


def _pages(others: Mapping[str, Any]) -> dict[str, str]:
    """Return where pages are served, so that other machines reach none that nobody asked for.

    Dask's own default is every interface, without a password. Who gives a host or an interface has
    a cluster for a network, and Dask's default with it.
    """
    if others.get("host") is not None or others.get("interface") is not None:
        return {}
    pages = {"dashboard_address": f"{_THIS_MACHINE}:8787"}
    if others.get("processes") is False:  # such workers have no address that theirs could follow
        pages["worker_dashboard_address"] = f"{_THIS_MACHINE}:0"
    return pages


def _driver(
    simulated: bool | str | int | None,  # noqa: FBT001 - the argument of local_cluster
    configured: str | None,
    own: Mapping[str, Any],
    around: Surroundings,
) -> tuple[str, str]:
    """Return the driver of the workers, and in words why it is a simulated one."""
    if simulated is not None and "driver" in own:
        raise ConfigurationError("simulated= and driver= both choose the device: give one of them")
    if simulated is True:
        return "simulated", ", as asked"
    if simulated is not None and simulated is not False:
        asked = f"simulated:{simulated}"
        simulated_bytes(asked, f"simulated={shown(simulated)}")
        return asked, ", as asked"
    driver = "cuda" if simulated is False else configured
    if driver is None and (driver := around.driver):
        simulated_bytes(driver, f"RMM_UVM_DRIVER={shown(driver)}")
    if driver is None:
        driver = "cuda" if around.gpus else "simulated"
        return driver, ", since there is no GPU here"
    if driver == "cuda" and not around.gpus:
        raise AvailabilityError(
            "there is no GPU here (NVML finds none): leave simulated and driver out to use "
            "simulated devices, and see rmm-uvm doctor"
        )
    return driver, ", as configured"


def _refuse(others: Mapping[str, Any], around: Surroundings, *, is_simulated: bool) -> None:
    options = tuple(name for name in others if name.startswith("rmm_") and others[name])
    devices = others.get("CUDA_VISIBLE_DEVICES")
    if devices is None:
        devices = around.visible_devices
    elif not isinstance(devices, str):
        devices = ",".join(map(str, devices))
    found = refusals(
        WorkerFacts(
            rmm_options=options,
            ucx_pool_size=around.ucx_pool_size,
            ucx_multi_buffer=around.ucx_multi_buffer,
            visible_devices=devices,
            simulated=is_simulated,
        )
    )
    # Dask hands what it does not know to the workers, which then fail without a word of it.
    for name in others:
        near = difflib.get_close_matches(name, NAMES, 1, _ALIKE)
        if near and not name.startswith("rmm_"):
            found.append(f"there is no keyword {name}: is {near[0]} meant?")
    if switches := [name for name in _UCX_SWITCHES if others.get(name) is not None]:
        found.append(
            f"{', '.join(switches)}: leave it out, UCX finds the fastest way by itself; to choose "
            "one, set UCX_TLS in the environment before the program starts"
        )
    if "preload_argv" in others:
        found.append("preload_argv is how the settings reach the workers: give them as keywords")
    if found:
        raise ConfigurationError("; ".join(found))


def _refuse_budget(
    settings: WorkerSettings,
    driver: str,
    keywords: Mapping[str, Any],
    around: Surroundings,
) -> None:
    """Refuse a budget that no worker can have, as far as that shows before one is started."""
    words = [word.partition("=")[0] for word in _arguments(around)]
    if "device_budget" not in keywords and FLAGS["device_budget"] in words:
        return  # comes before the section; workers tell what is wrong with it
    if settings.device_budget in (None, "none"):
        refuse_without_budget(settings.eviction, settings.neighbors)
        return
    device_bytes = simulated_bytes(driver, f"driver={shown(driver)}") or around.largest_gpu_bytes
    if device_bytes is not None and settings.device_budget != "auto":
        budget = Budget(parse_size(settings.device_budget, device_bytes, "device_budget"))
        refuse_larger(budget.budget_bytes, device_bytes)


def _visible(others: Mapping[str, Any], around: Surroundings) -> int:
    devices = others.get("CUDA_VISIBLE_DEVICES")
    if devices is not None and not isinstance(devices, str):
        return len(devices)
    return count_visible_devices(devices or around.visible_devices) or max(around.gpus, 1)


def _preload(others: Mapping[str, Any], around: Surroundings) -> list[str]:
    given = others.get("preload")
    given = around.worker_preload if given is None else given
    names = [given] if isinstance(given, str) else list(given)
    return [_PRELOAD, *(name for name in names if name != _PRELOAD)]


def _arguments(around: Surroundings) -> list[str]:
    """Return the arguments of preloads that Dask's configuration has."""
    if wrong := [each for each in around.worker_preload_argv if not isinstance(each, str)]:
        raise ConfigurationError(
            f"distributed.worker.preload-argv has {wrong[0]!r}: one list of words for all preloads"
        )
    return list(around.worker_preload_argv)
