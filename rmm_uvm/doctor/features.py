# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Concludes from the facts which features can be used. Pure functions, no side effects.

A feature counts as available when every visible device has it: managed memory is one address space
for all of them, and most of its rules hold for all devices or for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rmm_uvm.doctor.facts import Capability, CudaFacts, DeviceFacts, Feature, KernelDriverFacts
from rmm_uvm.doctor.topology import describe
from rmm_uvm.support.requirements import (
    MINIMUM_CUDA,
    MINIMUM_DISCARD_DRIVER,
    MINIMUM_DRIVER,
    Version,
)

__all__ = ["Facts", "features", "format_version"]

_NO_DEVICE = Capability.no("no CUDA device")


@dataclass(frozen=True)
class Facts:
    """Everything that was found on one machine; `rmm_uvm.doctor.facts` describes the parts.

    Attributes
    ----------
    rmm_problem : str
        What is wrong with the installed RMM; empty if nothing is.
    cuda_major : int
        The CUDA major that RMM is for.
    """

    cuda: CudaFacts
    kernel_driver: KernelDriverFacts
    rmm_problem: str
    cuda_major: int
    extension: Capability
    counters: Capability
    attach: Capability
    nvml: Capability
    cupti: Capability


def features(facts: Facts) -> tuple[Feature, ...]:
    """Return all features, the managed pool first."""

    def feature(name: str, title: str, purpose: str, found: Capability) -> Feature:
        return Feature(name, title, purpose, found.available, found.reason, found.detail)

    has_device = bool(facts.cuda.devices)
    return (
        feature(
            "managed_pool",
            "managed pool",
            "cuDF, CuPy and PyTorch allocate managed memory",
            _managed_pool(facts),
        ),
        feature(
            "concurrent_managed_access",
            "concurrent managed access",
            "data may outgrow the device",
            _concurrent_access(facts) if has_device else _NO_DEVICE,
        ),
        feature(
            "discard",
            "discard",
            "dead data are dropped instead of copied",
            _discard(facts) if has_device else _NO_DEVICE,
        ),
        feature(
            "kernel_counters",
            "kernel counters",
            "bytes moved each way, live and exact",
            facts.counters if has_device else _NO_DEVICE,
        ),
        feature(
            "attach",
            "attach to processes",
            "watch a running process that knows nothing of it",
            _attach(facts) if has_device else _NO_DEVICE,
        ),
        feature("nvml", "NVML", "device memory of all processes, without CUDA", facts.nvml),
        feature("cupti", "CUPTI", "why data moved, and which, on request", facts.cupti),
        feature(
            "peer_access",
            "peer access",
            "memory may leave to an idle neighbour device",
            _peer_access(facts.cuda) if has_device else _NO_DEVICE,
        ),
        feature(
            "legacy_ipc",
            "IPC",
            "other processes can map memory of rmm_uvm.ipc_pool",
            _legacy_ipc(facts.cuda) if has_device else _NO_DEVICE,
        ),
        feature(
            "pageable_memory_access",
            "HMM or ATS",
            "kernels use ordinary host memory (not needed)",
            _pageable(facts) if has_device else _NO_DEVICE,
        ),
    )


def format_version(version: Version) -> str:
    """Return a version as text, the parts after the second padded as NVIDIA writes them.

    Examples
    --------
    >>> format_version((580, 65, 6)), format_version((13, 0))
    ('580.65.06', '13.0')
    """
    return ".".join(
        f"{number:02}" if place > 1 else str(number) for place, number in enumerate(version)
    )


def software_reason(facts: Facts) -> str:
    """Return why there can be no pool, not even on a simulated device; empty if there can."""
    return facts.rmm_problem or facts.extension.reason


def _managed_pool(facts: Facts) -> Capability:
    cuda = facts.cuda
    if reason := software_reason(facts):
        return Capability.no(reason)
    if not cuda.devices:
        return Capability.no(cuda.reason or _NO_DEVICE.reason)
    if cuda.cuda_version and cuda.cuda_version < MINIMUM_CUDA[facts.cuda_major]:
        return Capability.no(
            f"the driver supports CUDA {format_version(cuda.cuda_version)}; RMM for CUDA "
            f"{facts.cuda_major} needs driver "
            f"{format_version(MINIMUM_DRIVER[facts.cuda_major])} or newer",
        )
    if lacking := [device for device in cuda.devices if not device.managed_memory]:
        return Capability.no(
            f"{_listed(lacking)} cannot allocate managed memory; on a virtual GPU, unified memory "
            "must be switched on by its administrator",
        )
    return Capability.yes()


def _concurrent_access(facts: Facts) -> Capability:
    if shared := [device for device in facts.cuda.devices if device.integrated]:
        return Capability.no(
            f"{_listed(shared)} has the host's memory, which counts once: nothing can leave it, so "
            "there is no budget and no prefetch; capacity is what the host has available",
        )
    if lacking := [d for d in facts.cuda.devices if not d.concurrent_managed_access]:
        where = "WSL2" if facts.kernel_driver.is_wsl else _listed(lacking)
        return Capability.no(
            f"{where} has no page migration: capacity is what the card has; "
            "beyond it an allocation fails, as it does without rmm-uvm",
        )
    if facts.kernel_driver.parameters.get("uvm_global_oversubscription") == "0":
        return Capability.no(
            "switched off by the nvidia-uvm module parameter uvm_global_oversubscription=0: "
            "capacity is what the card has",
        )
    return Capability.yes()


def _discard(facts: Facts) -> Capability:
    needed = f"driver {format_version(MINIMUM_DISCARD_DRIVER)} or newer is needed"
    version = facts.kernel_driver.version
    # Both are asked: the forward-compatibility package puts a new libcuda on an old kernel driver.
    if version and version < MINIMUM_DISCARD_DRIVER:
        return Capability.no(f"driver {format_version(version)} has none; {needed}")
    if not facts.cuda.has_discard:
        return Capability.no(f"the CUDA driver library has no cuMemDiscardBatchAsync; {needed}")
    if shared := [device for device in facts.cuda.devices if device.integrated]:
        return Capability.no(
            f"{_listed(shared)} has the host's memory, of which a discard frees nothing"
        )
    if not all(device.concurrent_managed_access for device in facts.cuda.devices):
        return Capability.no("needs concurrent managed access on every device")
    return Capability.yes()


def _attach(facts: Facts) -> Capability:
    # Switched off are only the counters of this process itself.
    if not facts.counters.available and "RMM_UVM_COUNTERS" not in facts.counters.reason:
        return facts.counters
    return facts.attach


def _peer_access(cuda: CudaFacts) -> Capability:
    found = describe(cuda)
    if len(found.devices) == 1:
        return Capability.no(found.reason)
    lacking: dict[str, list[str]] = {}
    for pair in found.pairs:
        if not pair.peer_access:
            lacking.setdefault(pair.peer_access.reason, []).append(
                f"{pair.first} and {pair.second}"
            )
    if lacking:
        return Capability.no(
            "; ".join(f"devices {_shortened(pairs)}: {reason}" for reason, pairs in lacking.items())
        )
    return Capability.yes(f"between each two of {len(found.devices)} devices")


def _legacy_ipc(cuda: CudaFacts) -> Capability:
    if lacking := [device for device in cuda.devices if not device.legacy_ipc]:
        return Capability.no(f"{_listed(lacking)} cannot share memory between processes")
    return Capability.yes()


def _pageable(facts: Facts) -> Capability:
    devices = facts.cuda.devices
    if all(device.pageable_memory_access for device in devices):
        if not all(device.host_page_tables for device in devices):
            return Capability.yes("HMM: migrated in software")
        return Capability.yes(f"ATS: through the page tables of the host{_remote_use(facts)}")
    if facts.kernel_driver.parameters.get("uvm_disable_hmm") == "Y":
        return Capability.no("HMM is off (nvidia-uvm module parameter uvm_disable_hmm=Y)")
    if facts.kernel_driver.is_open is False:
        return Capability.no("HMM needs NVIDIA's open kernel modules")
    return Capability.no("neither ATS nor HMM with this device, driver and kernel")


def _remote_use(facts: Facts) -> str:
    """Return what ATS means for managed memory that was evicted.

    As in ``is_migration_enabled`` of uvm_gpu_access_counters.c and in uvm_va_block.c, NVIDIA's
    open kernel modules 595.45.04.
    """
    if any(device.integrated for device in facts.cuda.devices):
        return ""
    name = "uvm_perf_access_counter_migration_enable"
    if facts.kernel_driver.parameters.get(name) == "0":
        return f"; evicted managed pages return by faults ({name}=0)"
    return (
        "; evicted managed pages are used where they are, without a fault, and return by access "
        "counters"
    )


def _listed(devices: Iterable[DeviceFacts]) -> str:
    """Return devices as a phrase: ``device 0 (NVIDIA H200)``."""
    return _shortened([f"device {device.index} ({device.name})" for device in devices])


def _shortened(items: list[str], limit: int = 3) -> str:
    """Return items as a list that stays short on a machine with many devices."""
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")
