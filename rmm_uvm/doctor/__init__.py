# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what rmm-uvm can use on this machine, and if it cannot, why not.

`examine` asks a probe for facts (`rmm_uvm.doctor.facts`), concludes which features are available
(`rmm_uvm.doctor.features`) and returns a `DoctorReport`. It changes nothing, creates no CUDA
context, and works without a GPU, without libcuda, and with the wrong RMM.

See Also
--------
rmm_uvm.cli.doctor : ``rmm-uvm doctor`` prints the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rmm_uvm.doctor.facts import (
    BoardFacts,
    Capability,
    CudaFacts,
    DeviceFacts,
    Feature,
    HarvestFacts,
    KernelDriverFacts,
    PairFacts,
    Probe,
)
from rmm_uvm.doctor.features import Facts, features, format_version, software_reason
from rmm_uvm.doctor.plan import plan_pools
from rmm_uvm.doctor.probe import SystemProbe
from rmm_uvm.doctor.report import DoctorReport, PoolPlan
from rmm_uvm.doctor.simulated import SIMULATED_FEATURES
from rmm_uvm.doctor.topology import describe
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.support.requirements import rmm_package, rmm_problem
from rmm_uvm.support.variables import unknown_variables

__all__ = [
    "BoardFacts",
    "Capability",
    "CudaFacts",
    "DeviceFacts",
    "DoctorReport",
    "Feature",
    "HarvestFacts",
    "KernelDriverFacts",
    "PairFacts",
    "Planner",
    "PoolPlan",
    "Probe",
    "SystemProbe",
    "examine",
]

Planner = Callable[[Sequence[DeviceFacts], HostMemory], Sequence[PoolPlan]]
"""Tells which pools would be installed on some devices, given the host memory."""


def examine(probe: Probe | None = None, planner: Planner = plan_pools) -> DoctorReport:
    """Find out what rmm-uvm can use on this machine.

    Parameters
    ----------
    probe : Probe, optional
        Source of the facts; this machine by default.
    planner : callable
        Decides the pool sizes to report; called only if a managed pool could be installed.

    Returns
    -------
    DoctorReport
    """
    probe = probe or SystemProbe()
    packages, problem = _packages(probe)
    cuda, kernel_driver = probe.cuda(), probe.kernel_driver()
    facts = Facts(
        cuda=cuda,
        kernel_driver=kernel_driver,
        rmm_problem=problem,
        cuda_major=rmm_package(packages)[1],
        extension=probe.extension(),
        counters=probe.counters(),
        attach=probe.attach(),
        nvml=probe.nvml(),
        cupti=probe.cupti(),
    )
    found = features(facts)
    memory, memory_reason = _host_memory(probe, cuda)
    is_installable = found[0].available and memory is not None
    report = DoctorReport(
        versions={**packages, **_driver_versions(cuda, kernel_driver)},
        devices=cuda.devices,
        features=found,
        host_memory=memory,
        devices_reason=cuda.reason,
        host_memory_reason=memory_reason,
        plans=tuple(planner(cuda.devices, memory)) if is_installable and memory else (),
        topology=describe(cuda),
        extras=probe.extras(),
        harvest_board=probe.harvest_board(),
        driver_setting=probe.driver_setting(),
        software_reason=software_reason(facts),
        unknown_variables=unknown_variables(probe.variables()),
    )
    if report.simulated_bytes is None or report.software_reason:
        return report
    return replace(report, simulated_features=SIMULATED_FEATURES)


def _packages(probe: Probe) -> tuple[Mapping[str, str], str]:
    """Return the versions of packages, and what is wrong with RMM, or why neither can be told."""
    try:
        packages = probe.packages()
    except AvailabilityError as error:
        return {}, str(error)
    return packages, rmm_problem(packages)


def _host_memory(probe: Probe, cuda: CudaFacts) -> tuple[HostMemory | None, str]:
    """Return the host memory, or why it cannot be told."""
    try:
        nodes = [each.numa_node for each in cuda.devices if each.numa_node is not None]
        return probe.host_memory(nodes), ""
    except AvailabilityError as error:
        return None, str(error)


def _driver_versions(cuda: CudaFacts, kernel_driver: KernelDriverFacts) -> dict[str, str]:
    """Return the versions that are no Python package's, as far as they are known."""
    versions = {}
    if kernel_driver.version:
        kind = " (open kernel modules)" if kernel_driver.is_open else ""
        versions["NVIDIA driver"] = format_version(kernel_driver.version) + kind
    if cuda.cuda_version:
        versions["CUDA driver API"] = format_version(cuda.cuda_version)
    return versions
