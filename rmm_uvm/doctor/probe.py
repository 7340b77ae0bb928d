# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The probe of the machine that this process runs on.

See Also
--------
rmm_uvm.doctor.facts : what each method returns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path

from rmm_uvm.doctor.cuda_library import read_cuda
from rmm_uvm.doctor.extras import extras
from rmm_uvm.doctor.facts import (
    BoardFacts,
    Capability,
    CudaFacts,
    Feature,
    HarvestFacts,
    KernelDriverFacts,
)
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.cupti_library import find_cupti
from rmm_uvm.machine.host_memory import HostMemory, host_memory
from rmm_uvm.support.optional_packages import requirements
from rmm_uvm.support.package_files import no_more_files
from rmm_uvm.support.requirements import installed_packages, installed_version, parse_version

__all__ = ["SystemProbe"]

_TOOLS_DEVICE = Path("dev/nvidia-uvm-tools")
_PARAMETERS = (
    *("uvm_global_oversubscription", "uvm_disable_hmm"),
    "uvm_perf_access_counter_migration_enable",
)
_PTRACE_SCOPE = "proc/sys/kernel/yama/ptrace_scope"
_CAP_SYS_PTRACE = 19  # linux/capability.h
_PIDFD_GETFD = (5, 6)


class SystemProbe:
    """Facts about this machine; see `rmm_uvm.doctor.facts.Probe`.

    Parameters
    ----------
    root : Path
        Directory that stands for ``/`` wherever a file is read.
    environment : mapping of str to str, optional
        Environment variables; those of the process by default.
    """

    def __init__(
        self, root: Path = Path("/"), environment: Mapping[str, str] | None = None
    ) -> None:
        self._root = root
        self._environment = os.environ if environment is None else environment

    def cuda(self) -> CudaFacts:
        """Return what the CUDA driver library answers."""
        return read_cuda()

    def kernel_driver(self) -> KernelDriverFacts:
        """Return the version and parameters of the kernel modules."""
        text = self._text("proc/driver/nvidia/version")
        # "... Open Kernel Module for x86_64  580.159.04 ..." or "... Kernel Module  535.54.03 ..."
        match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
        return KernelDriverFacts(
            version=parse_version(match[1]) if match else None,
            is_open="Open Kernel Module" in text if match else None,
            is_wsl="microsoft" in self._text("proc/sys/kernel/osrelease").lower(),
            parameters={
                name: self._text(f"sys/module/nvidia_uvm/parameters/{name}").strip()
                for name in _PARAMETERS
            },
        )

    def packages(self) -> Mapping[str, str]:
        """Return version by name of the installed packages that matter.

        Raises
        ------
        AvailabilityError
            If this process can open no more files: nothing would seem to be installed.
        """
        if reason := no_more_files():
            raise AvailabilityError(f"what is installed here cannot be read: {reason}")
        return installed_packages()

    def extras(self) -> tuple[Feature, ...]:
        """Return which optional packages are there, by extra; none where `packages` cannot tell."""
        return () if no_more_files() else extras(requirements(), installed_version)

    def extension(self) -> Capability:
        """Return whether the compiled part of rmm-uvm can be loaded."""
        try:
            import_module("rmm_uvm._lib.mr")
        except (ImportError, OSError) as error:
            return Capability.no(f"the compiled part of rmm-uvm cannot be loaded: {error}")
        return Capability.yes()

    def counters(self) -> Capability:
        """Return whether the counters of the UVM kernel driver can be opened."""
        if self._environment.get("RMM_UVM_COUNTERS", "").strip().lower() == "off":
            return Capability.no("switched off by RMM_UVM_COUNTERS=off")
        device, name = self._root / _TOOLS_DEVICE, f"/{_TOOLS_DEVICE}"
        if not device.exists():
            return Capability.no(
                f"{name} does not exist: run `nvidia-modprobe -u -c 0` as root, "
                "or pass the device into the container",
            )
        if not os.access(device, os.R_OK | os.W_OK):
            return Capability.no(f"no permission to open {name} for reading and writing")
        return Capability.yes(name)

    def attach(self) -> Capability:
        """Return which other processes' counters can be opened, going by kernel and permissions."""
        release = parse_version(self._text("proc/sys/kernel/osrelease"))
        if release and release[:2] < _PIDFD_GETFD:
            return Capability.no("this kernel is older than Linux 5.6, which brought pidfd_getfd")
        match = re.search(r"^CapEff:\s*([0-9a-f]+)", self._text("proc/self/status"), re.MULTILINE)
        if match and int(match[1], 16) >> _CAP_SYS_PTRACE & 1:
            return Capability.yes("any process")
        scope = self._text(_PTRACE_SCOPE).strip() or "0"
        if scope != "0":
            return Capability.no(
                f"/{_PTRACE_SCOPE} is {scope}: it takes root or CAP_SYS_PTRACE, or 0 there for "
                "processes of the same user"
            )
        return Capability.yes("processes of the same user")

    def nvml(self) -> Capability:
        """Return whether NVML can be loaded and initialised."""
        try:
            from rmm_uvm._lib.cuda import Nvml

            found = Nvml().available
        except (ImportError, OSError) as error:
            return Capability.no(f"the compiled part of rmm-uvm cannot be loaded: {error}")
        return Capability.yes() if found else Capability.no(found.reason)

    def cupti(self) -> Capability:
        """Return whether CUPTI can be loaded: from a wheel, the loader's path or a CUDA toolkit."""
        path, found = find_cupti(self._root / "usr/local/cuda")
        return Capability.no(found.reason) if path is None else Capability.yes(path)

    def driver_setting(self) -> str:
        """Return what the environment asks for in the place of a GPU, "" for nothing."""
        return self._environment.get("RMM_UVM_DRIVER", "").strip()

    def variables(self) -> tuple[str, ...]:
        """Return the names of all environment variables."""
        return tuple(self._environment)

    def harvest_board(self) -> BoardFacts:
        """Return what processes of this user have agreed about idle device memory."""
        try:
            from rmm_uvm.harvest import USUAL_DIRECTORY, read_board
        except (ImportError, OSError) as error:
            return BoardFacts(f"the compiled part of rmm-uvm cannot be loaded: {error}")
        board = read_board(self._root / USUAL_DIRECTORY.lstrip("/"))
        devices = (
            HarvestFacts(each.uuid, each.offered_bytes, each.claimed_bytes, each.busy)
            for each in board.devices
        )
        return BoardFacts(board.reason, board.path, board.processes, tuple(devices))

    def host_memory(self, device_nodes: Collection[int] = ()) -> HostMemory:
        """Return the host memory that is left, without the NUMA nodes that are GPUs'."""
        return host_memory(self._root, device_nodes=device_nodes)

    def _text(self, path: str) -> str:
        """Return the text of a file below the root, empty if it cannot be read."""
        try:
            return (self._root / path).read_text()
        except OSError:
            return ""
