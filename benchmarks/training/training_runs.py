# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of one model: on torch's own allocator, on managed memory, with deterministic kernels."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch

import rmm_uvm
import rmm_uvm.torch
from benchmarks.residency import past_the_edge
from benchmarks.training import models
from rmm_uvm.residency import Budget

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS is not deterministic

PROBE_BYTES = 1 << 30
PROBE_EXCHANGES = 10  # rates of one differ by a fifth
PIECE_BYTES = 8 << 20
# Of a run, what verdicts and documents need, and what tells why a figure is as it is.
_FIGURES = ("seconds", "least_seconds", "host_seconds", "each_seconds", "batch", "peak_bytes")
_MOVED = ("to_device_bytes", "to_host_bytes")
_RESIDENCY = (
    *("evicted_bytes", "dropped_bytes", "fetched_bytes", "faulted_bytes", "peak_overshoot_bytes"),
    "failed_calls",
)
_RESIDENCY_BESIDE_COPIES = (
    *("evicted_bytes", "dropped_bytes", "faulted_bytes", "peak_overshoot_bytes", "failed_calls"),
)
_NOT_DETERMINISTIC = re.compile(r"^(\S+) does not have a deterministic implementation")


def budgets(budget_bytes: int) -> dict[str, Budget]:
    """Return what is compared at one budget."""
    modes = past_the_edge.modes(budget_bytes)
    return {
        "fault-driven": modes["fault-driven"],
        "lazy": modes["repeat"],
        "eager": modes["repeat, ahead"],
    }


def duplex_rate(driver: Any) -> float:
    """Return bytes a second each way, while pieces of two gibibytes change places."""
    mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
    halves = [mr.allocate(PROBE_BYTES) for _ in range(2)]

    def move(address: int, where: str) -> None:
        for offset in range(0, PROBE_BYTES, PIECE_BYTES):
            driver.migrate(address + offset, PIECE_BYTES, where)

    move(halves[0], "device")
    move(halves[1], "device")
    move(halves[1], "host")
    found = []
    for number in range(PROBE_EXCHANGES):
        out, into = halves[number % 2], halves[1 - number % 2]
        threads = [
            threading.Thread(target=move, args=(out, "host")),
            threading.Thread(target=move, args=(into, "device")),
        ]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(PROBE_BYTES / (time.perf_counter() - begin))
    for address in halves:
        mr.deallocate(address, PROBE_BYTES)
    return statistics.median(found[2:])  # the first two take host pages for the first time


class Trainer:
    """Trains one model in one way after the other.

    Parameters
    ----------
    name, dtype : str
        Of `make` of `models.py`.
    batch_fraction : float
        Of the model's full batch, which takes 8 to 16 GiB; > 0.
    driver : rmm_uvm.drivers.CudaDriver
        Of the device, whose counters are read.
    """

    def __init__(self, name: str, dtype: str, batch_fraction: float, driver: Any) -> None:
        self.name, self.dtype = name, dtype
        self.batch = max(1, round(models.full_batch(name) * batch_fraction))
        self.driver = driver

    def forget_peaks(self) -> None:
        """Let peaks of memory begin anew."""
        torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> dict[str, int]:
        """Return the most memory that tensors took since, and that was held for them."""
        return {
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(),
        }

    def counts(self) -> dict[str, int]:
        """Return what is counted of each step, until now."""
        to_device_bytes, to_host_bytes = self.driver.migrated_bytes()
        return {"to_device_bytes": to_device_bytes, "to_host_bytes": to_host_bytes}

    def more(self, _program: Any) -> dict[str, Any]:
        """Return what is measured after the steps whose time counts."""
        return {}

    def train(
        self, steps: int, wrap: Callable[[Any], Any] = contextlib.nullcontext
    ) -> dict[str, Any]:
        """Make the model and train it; return medians of a step, the losses and the peak.

        The first half of the steps is left out of the medians. ``host_seconds`` are those until the
        host has issued all of a step, with what it waited for as room was made.
        """
        self.forget_peaks()
        program = models.make(self.name, batch=self.batch, dtype=self.dtype, device="cuda")
        seconds, of_host, counts, losses = [], [], [], []
        for _ in range(steps):
            before = self.counts()
            begin = time.perf_counter()
            with wrap(program.model):
                losses.append(program.step())
            of_host.append(time.perf_counter() - begin)
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
            after = self.counts()
            counts.append({name: after[name] - before[name] for name in after})
        counted = slice(steps // 2, None)
        return {
            "seconds": statistics.median(seconds[counted]),
            "least_seconds": min(seconds[counted]),
            "host_seconds": statistics.median(of_host[counted]),
            "each_seconds": seconds,
            "batch": self.batch,
            **{name: statistics.median(one[name] for one in counts[counted]) for name in after},
            **self.peaks(),
            "losses": [loss.item() for loss in losses],
            **self.more(program),
        }

    def on_managed_memory(
        self, budget: Budget, steps: int, activations: Literal["migrate", "copy"] = "migrate"
    ) -> dict[str, Any]:
        """Train on managed memory under a budget."""
        with rmm_uvm.torch.managed(device_budget=budget, activations=activations) as memory:
            row = self.train(steps)
            row.update(memory.statistics())
        return row


def to_keep(run: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run that go into the result file.

    Of one with copies what they did, in the place of all that the budget did.
    """
    kept = {name: run[name] for name in (*_FIGURES, *_MOVED)}
    for name in ("seconds", "least_seconds", "host_seconds"):
        kept[name] = round(run[name], 6)
    for name in _MOVED:
        kept[name] = int(run[name])
    of_residency: tuple[str, ...] = _RESIDENCY
    if run.get("activations"):
        kept["activations"] = run["activations"]
        of_residency = _RESIDENCY_BESIDE_COPIES
    kept["each_seconds"] = [float(f"{each:.3g}") for each in run["each_seconds"]]
    if run.get("residency"):
        kept["residency"] = {name: run["residency"][name] for name in of_residency}
    return kept


@contextlib.contextmanager
def recomputing(model: Any) -> Iterator[None]:
    """Recompute activations, as Hugging Face's models do on request."""
    model.gradient_checkpointing_enable()
    yield


def saving_on_cpu(_model: Any) -> Any:
    """Keep what autograd saves in pinned host memory."""
    return torch.autograd.graph.save_on_cpu(pin_memory=True)


def clean() -> None:
    """Give back what torch keeps of the last run."""
    gc.collect()
    torch.cuda.empty_cache()


def operator_without_deterministic_kernel(message: object) -> str:
    """Return the operator that an error or a warning of torch names so; else ""."""
    found = _NOT_DETERMINISTIC.match(str(message))
    return found[1] if found else ""


@contextlib.contextmanager
def deterministic_kernels(*, strict: bool) -> Iterator[set[str]]:
    """Have torch choose kernels that give the same on every run.

    Parameters
    ----------
    strict : bool
        Whether an operator that has none is a RuntimeError. Otherwise its name is added to the set
        that the ``with`` statement gives, at the end.
    """
    operators: set[str] = set()
    caught: list[warnings.WarningMessage] = []
    fills = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=not strict)  # noqa: FBT003 - torch's own
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield operators
    finally:
        torch.use_deterministic_algorithms(False)  # noqa: FBT003
        torch.utils.deterministic.fill_uninitialized_memory = fills
        for one in caught:
            if operator := operator_without_deterministic_kernel(one.message):
                operators.add(operator)
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
