# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training on managed memory with torch's caching allocator, and with none: what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import rmm
import torch

import rmm_uvm
import rmm_uvm.torch
from benchmarks.training.training_runs import Trainer, clean
from rmm_uvm.integrations.wiring import wire
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.residency import Budget

Row = dict[str, Any]


class Counting(Trainer):
    """Trains a model, and counts evictions too, and faults in one step more."""

    residency: Callable[[], Mapping[str, Any] | None] = staticmethod(lambda: None)

    def counts(self) -> dict[str, int]:
        """Return what is counted of each step, until now."""
        kept = self.residency() or {}
        return {
            **super().counts(),
            "evictions": kept.get("eviction_calls", 0),
            "evicted_bytes": kept.get("evicted_bytes", 0),
        }

    def more(self, program: Any) -> dict[str, Any]:
        """Return the faults of one step, or why they are not known."""
        counter = rmm_uvm.cuda_driver(0)  # its own: what counts faults goes with it
        granted = counter.request_faults()
        if not granted.available:
            return {"gpu_faults": None, "faults_unknown": granted.reason}
        _, before = counter.fault_counts()
        program.step()
        torch.cuda.synchronize()
        _, after = counter.fault_counts()
        counter.release_faults()
        return {"gpu_faults": after - before, "faults_unknown": ""}

    def on_managed_memory(self, budget: Budget, steps: int) -> Row:
        """Train with torch's caching allocator on managed memory."""
        with rmm_uvm.torch.managed(device_budget=budget) as memory:
            self.residency = memory.managed_mr.residency.residency
            row = self.train(steps)
            row.update(memory.statistics())
        return row


class Uncached(Counting):
    """Trains a model with every tensor an allocation of its own, through RMM."""

    def __init__(self, name: str, dtype: str, batch_fraction: float, driver: Any) -> None:
        super().__init__(name, dtype, batch_fraction, driver)
        # All of them stay: a tensor that torch itself keeps still lies in the one it came from.
        self._resources: list[UvmResourceAdaptor] = []

    def forget_peaks(self) -> None:
        """Let peaks of memory begin anew."""
        self._resources[-1].reset_peak()

    def peaks(self) -> dict[str, int]:
        """Return the most memory at once: tensors, and nothing is held beside them."""
        peak_bytes = self._resources[-1].peak_bytes
        return {"peak_bytes": peak_bytes, "reserved_bytes": peak_bytes}

    def on_managed_memory(self, budget: Budget, steps: int) -> Row:
        """Train with RMM's pluggable allocator on managed memory, without a pool."""
        mr = UvmResourceAdaptor(ManagedMemoryResource(self.driver, budget=budget))
        rmm.mr.set_per_device_resource(0, mr)
        if not self._resources:  # before torch's first allocation, and once in a process
            wiring = wire("torch")
            if not wiring.active:
                raise SystemExit(f"torch cannot allocate through RMM: {wiring.reason}")
        self._resources.append(mr)
        self.residency = mr.managed_mr.residency.residency
        with rmm_uvm.torch.announced(mr):
            row = self.train(steps)
        row["residency"] = self.residency()
        # What is freed later would be refused: it is freed through the resource of then.
        clean()
        torch._C._cuda_clearCublasWorkspaces()
        row["left_bytes"] = mr.get_allocated_bytes()
        return row
