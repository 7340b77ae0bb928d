# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what works on the simulated device that ``RMM_UVM_DRIVER`` asks for.

No facts are needed: it is the same on every machine. `rmm_uvm.simulated_device` makes others, with
less and with more; a test holds this to the one that is made by name.
"""

from __future__ import annotations

from rmm_uvm.doctor.facts import Feature

__all__ = ["SIMULATED_FEATURES"]


def _yes(name: str, title: str, purpose: str) -> Feature:
    return Feature(name, title, purpose, available=True)


def _no(name: str, title: str, purpose: str, reason: str) -> Feature:
    return Feature(name, title, purpose, available=False, reason=reason)


SIMULATED_FEATURES = (
    _yes("managed_pool", "managed pool", "programs on RMM allocate managed memory, modelled"),
    _yes("concurrent_managed_access", "concurrent managed access", "data may outgrow the device"),
    _yes("discard", "discard", "dead data are dropped instead of copied"),
    _yes("kernel_counters", "kernel counters", "bytes moved each way, live and exact"),
    _yes("causes", "causes", "why data moved, without CUPTI"),
    _no(
        "kernels",
        "kernels",
        "cuDF, CuPy and PyTorch compute",
        "a simulated device has memory only: they need a GPU; `rmm-uvm mortgage` computes without "
        "them",
    ),
    _no(
        "peer_access",
        "peer access",
        "memory may leave to an idle neighbour device",
        "it has no neighbours; rmm_uvm.simulated_device(neighbors=1) makes one that has",
    ),
    _no(
        "legacy_ipc",
        "IPC",
        "other processes can map memory of rmm_uvm.ipc_pool",
        "no real bytes are behind it; rmm_uvm.simulated_device(backing=True) makes one with them",
    ),
)
"""As `rmm_uvm.doctor.features.features` has those of a machine; the managed pool is the first."""
