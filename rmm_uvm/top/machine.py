# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The seams of this machine: the board, other processes' counters, NVML, the harvest board."""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm import harvest
from rmm_uvm._lib.cuda import Nvml
from rmm_uvm.errors import UvmError
from rmm_uvm.top.published import published
from rmm_uvm.top.seams import Candidate, DeviceMemory, Seams
from rmm_uvm.watch.sampling.nvml import gpu_memory
from rmm_uvm.watch.sampling.process import attach, cuda_processes

__all__ = ["real_seams"]


def real_seams() -> Seams:
    """Return the seams of this machine; NVML is opened once, at the first use."""
    kept: list[Nvml] = []

    def nvml() -> Nvml:
        if not kept:
            kept.append(Nvml())
        return kept[0]

    return Seams(
        processes=lambda: _processes(nvml()),
        attach=lambda pid, faults: attach(pid, faults=faults),
        published=published,
        devices=lambda: _devices(nvml()),
        harvest=harvest.read_board,
    )


def _processes(nvml: Nvml) -> Sequence[Candidate]:
    return [
        Candidate(each.pid, each.name, each.command, each.user, each.attachable, each.reason)
        for each in cuda_processes(nvml=nvml)
    ]


def _devices(nvml: Nvml) -> tuple[Sequence[DeviceMemory], str]:
    try:
        found = gpu_memory(nvml)
    except UvmError as error:
        return (), str(error)
    return [
        DeviceMemory(
            each.index, each.name, each.uuid, each.used_bytes, each.free_bytes, each.total_bytes
        )
        for each in found
    ], ""
