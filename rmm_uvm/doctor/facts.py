# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The facts that the doctor finds on a machine, before anything is concluded from them.

Plain frozen values, so that a test can describe any machine: `Facts` of them make one. `Probe` is
the source they come from; `rmm_uvm.doctor.probe.SystemProbe` is the real one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.support.requirements import Version

__all__ = [
    "Capability",
    "CudaFacts",
    "DeviceFacts",
    "Feature",
    "KernelDriverFacts",
    "PairFacts",
    "Probe",
]


@dataclass(frozen=True)
class Capability(Availability):
    """Whether something can be used, and if not, why.

    Attributes
    ----------
    available : bool
    reason : str
        Why not, and what to do; empty if available.
    detail : str
        What there is, such as the path of a library; may be empty.
    """

    detail: str = ""

    @classmethod
    def yes(cls, detail: str = "") -> Capability:
        """Return that something can be used."""
        return cls(available=True, detail=detail)

    @classmethod
    def no(cls, reason: str) -> Capability:
        """Return that something cannot be used, and why."""
        return cls(available=False, reason=reason)


@dataclass(frozen=True)
class Feature:
    """Something that rmm-uvm uses, and whether it can be used here.

    Attributes
    ----------
    name : str
        Identifier, such as ``"legacy_ipc"``.
    title : str
        The same for a reader.
    purpose : str
        What it is good for, in a few words.
    available : bool
    reason : str
        Why not, and what to do; empty if available.
    detail : str
        More about what there is; may be empty.
    """

    name: str
    title: str
    purpose: str
    available: bool
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class DeviceFacts:
    """One CUDA device, as the process would see it.

    Attributes
    ----------
    index : int
        CUDA device number.
    name, uuid : str
    compute_capability : tuple of int
        Major and minor number.
    total_bytes : int
        Device memory.
    free_bytes : int or None
        Device memory that no process uses; None if it cannot be told without a CUDA context.
    managed_memory : bool
        Whether ``cudaMallocManaged`` works.
    concurrent_managed_access : bool
        Whether managed memory migrates on demand, and so may exceed the device.
    pageable_memory_access, host_page_tables : bool
        Whether kernels can use ordinary host memory, and whether they do so through the page
        tables of the host (ATS) or by migration in software (HMM).
    integrated : bool
        Whether its memory is the host's (DGX Spark, Jetson).
    numa_node : int or None
        The NUMA node of the host that its memory is (Grace); None if it is none.
    legacy_ipc : bool
        Whether ``cudaMalloc`` memory can be opened by another process.
    is_mig : bool
        Whether it is an instance of a GPU that MIG divides.
    kernel_fraction : float or None
        Of NVML's latest sampling period in which a kernel ran; None if it is not told.
    """

    index: int
    name: str
    uuid: str
    compute_capability: tuple[int, int]
    total_bytes: int
    free_bytes: int | None
    managed_memory: bool
    concurrent_managed_access: bool
    pageable_memory_access: bool
    host_page_tables: bool
    legacy_ipc: bool
    integrated: bool = False
    numa_node: int | None = None
    is_mig: bool = False
    kernel_fraction: float | None = None


@dataclass(frozen=True)
class PairFacts:
    """Facts that NVML tells about two devices.

    Attributes
    ----------
    has_nvlink : bool or None
        Whether NVLink connects them; None if it is not told.
    refusal : str
        Why one cannot read the other's memory; empty if it can or it is not told.
    """

    has_nvlink: bool | None = None
    refusal: str = ""


@dataclass(frozen=True)
class CudaFacts:
    """Answers of the CUDA driver library (libcuda).

    Attributes
    ----------
    reason : str
        Why there is no usable device; empty if there is one.
    cuda_version : tuple of int or None
        Newest CUDA version that the library supports.
    devices : tuple of DeviceFacts
    has_discard : bool
        Whether the library has the functions that discard managed memory.
    peers : frozenset of (int, int)
        Pairs (a, b) of devices where a can access the memory of b.
    pairs : mapping of (int, int) to PairFacts
        What NVML tells of devices a < b; pairs that it knows not are missing.
    """

    reason: str = ""
    cuda_version: Version | None = None
    devices: tuple[DeviceFacts, ...] = ()
    has_discard: bool = False
    peers: frozenset[tuple[int, int]] = frozenset()
    pairs: Mapping[tuple[int, int], PairFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelDriverFacts:
    """NVIDIA's kernel modules, and the operating system they run in.

    Attributes
    ----------
    version : tuple of int or None
        Driver version; None if no driver is loaded or, as in WSL2, the version is not shown.
    is_open : bool or None
        Whether it is the open kernel module.
    is_wsl : bool
        Whether this is the Windows Subsystem for Linux.
    parameters : mapping of str to str
        Parameters of the UVM kernel driver.
    """

    version: Version | None = None
    is_open: bool | None = None
    is_wsl: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HarvestFacts:
    """The agreement of processes about the idle memory of one device.

    Attributes
    ----------
    uuid : str
        In the notation of nvidia-smi.
    offered_bytes : int or None
        What all others may hold there together; None if nobody offers.
    claimed_bytes : int
        What they hold.
    busy : bool
        Whether a process there wants the links for itself.
    """

    uuid: str
    offered_bytes: int | None
    claimed_bytes: int
    busy: bool = False


@dataclass(frozen=True)
class BoardFacts:
    """The harvest board of this user.

    Attributes
    ----------
    reason : str
        Why there is none; empty if there is one.
    path : str
        Its file.
    processes : tuple of int
        Those that have joined, as they see themselves.
    devices : tuple of HarvestFacts
        Those that anything is said of.
    """

    reason: str = ""
    path: str = ""
    processes: tuple[int, ...] = ()
    devices: tuple[HarvestFacts, ...] = ()


class Probe(Protocol):
    """Source of facts about a machine. No method creates a CUDA context."""

    def cuda(self) -> CudaFacts:
        """Return what the CUDA driver library answers."""

    def kernel_driver(self) -> KernelDriverFacts:
        """Return the version and parameters of the kernel modules."""

    def packages(self) -> Mapping[str, str]:
        """Return version by name of the installed packages that matter.

        Raises
        ------
        AvailabilityError
            If they cannot be told.
        """

    def extras(self) -> tuple[Feature, ...]:
        """Return which optional packages are there, by extra; none where `packages` cannot tell."""

    def extension(self) -> Capability:
        """Return whether the compiled part of rmm-uvm can be loaded."""

    def counters(self) -> Capability:
        """Return whether the counters of the UVM kernel driver can be opened."""

    def attach(self) -> Capability:
        """Return whether the counters of other processes can be opened."""

    def nvml(self) -> Capability:
        """Return whether NVIDIA's management library can be used."""

    def cupti(self) -> Capability:
        """Return whether CUPTI can be loaded."""

    def harvest_board(self) -> BoardFacts:
        """Return what processes of this user have agreed about idle device memory."""

    def driver_setting(self) -> str:
        """Return what the environment asks for in the place of a GPU, "" for nothing."""

    def variables(self) -> tuple[str, ...]:
        """Return the names of all environment variables."""

    def host_memory(self, device_nodes: Collection[int] = ()) -> HostMemory:
        """Return the host memory that is left, without the NUMA nodes that are GPUs'.

        Raises
        ------
        AvailabilityError
            If it cannot be told.
        """
