# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The seams of this machine: the board, other processes' counters, NVML, the harvest board."""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm import harvest
from rmm_uvm._lib.cuda import Nvml
from rmm_uvm.errors import UvmError
from rmm_uvm.top.published import published
from rmm_uvm.top.seams import Seams
from rmm_uvm.watch.sampling.nvml import GpuMemory, gpu_memory
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
        processes=lambda: cuda_processes(nvml=nvml()),
        attach=lambda pid, faults: attach(pid, faults=faults),
        published=published,
        devices=lambda: _devices(nvml()),
        harvest=harvest.read_board,
    )


def _devices(nvml: Nvml) -> tuple[Sequence[GpuMemory], str]:
    try:
        return gpu_memory(nvml), ""
    except UvmError as error:
        return (), str(error)
