# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Asks NVIDIA's management library (NVML) about devices and the links between them.

Like `rmm_uvm.doctor.cuda_library` it goes through NVIDIA's own Python bindings, creates no CUDA
context and needs nothing compiled by us. These are figures to print: a missing library, an old
one, a virtual GPU or a slice of one just leave them unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import combinations
from typing import Any

from rmm_uvm.doctor.facts import PairFacts

__all__ = ["NvmlFacts", "NvmlPart", "read_nvml"]

_P2P_REASONS = {
    "CHIPSET_NOT_SUPPORED": "the chipset does not support it",  # the bindings' spelling
    "GPU_NOT_SUPPORTED": "one of the GPUs does not support it",
    "IOH_TOPOLOGY_NOT_SUPPORTED": "no bus connects them without going through the processors",
    "DISABLED_BY_REGKEY": "an administrator switched it off in the driver",
    "NOT_SUPPORTED": "the driver does not support it between them",
}


@dataclass(frozen=True)
class NvmlPart:
    """One device; None for what is not told.

    Attributes
    ----------
    free_bytes : int or None
        Device memory that no process uses.
    is_mig : bool
        Whether it is an instance of a GPU that MIG divides.
    kernel_fraction : float or None
        Of NVML's latest sampling period in which a kernel ran.
    """

    free_bytes: int | None = None
    is_mig: bool = False
    kernel_fraction: float | None = None


@dataclass(frozen=True)
class NvmlFacts:
    """Devices by UUID as CUDA writes it, and pairs of those; empty without NVML."""

    devices: Mapping[str, NvmlPart] = field(default_factory=dict)
    pairs: Mapping[tuple[str, str], PairFacts] = field(default_factory=dict)


def read_nvml(uuids: Iterable[str], nvml: Any = None) -> NvmlFacts:
    """Ask NVML about devices and about each two of them.

    Parameters
    ----------
    uuids : iterable of str
        Without "GPU-" or "MIG-" before them.
    nvml : module, optional
        `cuda.bindings.nvml` or a stand-in for it; imported by default.

    Returns
    -------
    NvmlFacts
        Without what NVML does not know or does not tell.
    """
    try:
        nvml = nvml or import_module("cuda.bindings.nvml")
        nvml.init_v2()
    except Exception:
        return NvmlFacts()
    try:
        handles = {uuid: _handle(nvml, uuid) for uuid in uuids}
        known = {uuid: found for uuid, found in handles.items() if found is not None}
        return NvmlFacts(
            {uuid: _part(nvml, handle, is_mig=is_mig) for uuid, (handle, is_mig) in known.items()},
            {
                (a, b): _pair(nvml, known[a][0], known[b][0])
                for a, b in combinations(known, 2)
                if not (known[a][1] or known[b][1])
            },
        )
    finally:
        nvml.shutdown()


def _told(ask: Any, *arguments: Any) -> Any:
    """Return an answer, or None where there is none."""
    try:
        return ask(*arguments)
    except Exception:
        return None


def _handle(nvml: Any, uuid: str) -> tuple[Any, bool] | None:
    """Return the handle of a device and whether MIG divides it off; None if NVML knows it not."""
    for kind in ("GPU", "MIG"):
        handle = _told(nvml.device_get_handle_by_uuid, f"{kind}-{uuid}")
        if handle is not None:
            return handle, kind == "MIG"
    return None


def _part(nvml: Any, handle: Any, *, is_mig: bool) -> NvmlPart:
    free = _told(lambda: int(nvml.device_get_memory_info_v2(handle).free))
    kernels = _told(lambda: nvml.device_get_utilization_rates(handle).gpu / 100)
    return NvmlPart(free, is_mig, kernels)


def _pair(nvml: Any, first: Any, second: Any) -> PairFacts:
    def status(capability: str) -> str | None:
        """Return the name of NVML's answer."""
        index = getattr(nvml.GpuP2PCapsIndex, capability)
        return str(nvml.GpuP2PStatus(nvml.device_get_p2p_status(first, second, index)).name)

    nvlink, read = _told(status, "NVLINK"), _told(status, "READ")
    return PairFacts(
        has_nvlink=None if nvlink is None else nvlink == "OK",
        refusal=_P2P_REASONS.get(read or "", ""),
    )
