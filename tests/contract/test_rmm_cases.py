# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What RMM's tests ask of its adaptors, asked of each of them over every chain.

docs/understand/contract.md says which of RMM's tests is asked where.
"""

from __future__ import annotations

import csv
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rmm

KIB = 1 << 10


def buffers(mr: Any, count: int, nbytes: int = 1000) -> list[rmm.DeviceBuffer]:
    return [rmm.DeviceBuffer(size=nbytes, mr=mr) for _ in range(count)]


def held_bytes(device: Any) -> int:
    statistics = device.statistics()
    return int(statistics["managed_bytes"] + statistics["device_bytes"])


def test_limit_over_any_chain_counts_and_is_never_passed(simulated_chain: Any) -> None:
    mr = rmm.mr.LimitingResourceAdaptor(simulated_chain.mr, allocation_limit=512 * KIB)
    alive = buffers(mr, 2, 256 * KIB)

    assert mr.get_allocation_limit() == 512 * KIB
    assert mr.get_allocated_bytes() == sum(buffer.size for buffer in alive)
    with pytest.raises(MemoryError):
        rmm.DeviceBuffer(size=1, mr=mr)
    del alive[0]
    alive += buffers(mr, 1)
    assert mr.get_allocated_bytes() == 256 * KIB + 1024  # RMM rounds up to 256 bytes here


def test_tracking_twice_over_any_chain_counts_each_what_went_through(simulated_chain: Any) -> None:
    inner = rmm.mr.TrackingResourceAdaptor(simulated_chain.mr)
    outer = rmm.mr.TrackingResourceAdaptor(inner)
    alive = buffers(inner, 10)[::2] + buffers(outer, 2)

    assert (inner.get_allocated_bytes(), outer.get_allocated_bytes()) == (7000, 2000)
    assert inner.get_outstanding_allocations_str()
    del alive
    assert (inner.get_allocated_bytes(), outer.get_allocated_bytes()) == (0, 0)
    assert inner.get_outstanding_allocations_str() == ""


def test_statistics_twice_over_any_chain_count_each_what_went_through(simulated_chain: Any) -> None:
    inner = rmm.mr.StatisticsResourceAdaptor(simulated_chain.mr)
    outer = rmm.mr.StatisticsResourceAdaptor(inner)
    alive = buffers(inner, 10)
    del alive[::2]
    alive += buffers(outer, 2)

    counts = inner.allocation_counts
    assert (counts.current_bytes, counts.current_count) == (7000, 7)
    assert (counts.peak_bytes, counts.peak_count) == (10000, 10)
    assert (counts.total_bytes, counts.total_count) == (12000, 12)
    counts = outer.allocation_counts
    assert (counts.current_bytes, counts.peak_bytes, counts.total_bytes) == (2000, 2000, 2000)


def test_log_over_any_chain_has_a_row_for_each_allocation_and_free(
    gpu_chain: Any, tmp_path: Path
) -> None:
    mr = rmm.mr.LoggingResourceAdaptor(gpu_chain.mr, str(tmp_path / "log.csv"))
    first, second = mr.allocate(1000), mr.allocate(257)
    mr.deallocate(first, 1000)
    mr.deallocate(second, 257)
    with pytest.raises(MemoryError):
        mr.allocate(1 << 40)
    mr.flush()

    *rows, failed = csv.DictReader(Path(mr.get_file_name()).read_text().splitlines())
    logged = [(row["Action"], int(row["Pointer"], 16), int(row["Size"])) for row in rows]
    assert logged == [
        ("allocate", first, 1000),
        ("allocate", second, 257),
        ("free", first, 1000),
        ("free", second, 257),
    ]
    assert (failed["Action"], failed["Size"]) == ("allocate failure", str(1 << 40))


def test_error_of_a_failure_callback_over_any_chain_reaches_the_caller(
    simulated_chain: Any,
) -> None:
    def refuse(nbytes: int) -> bool:
        raise RuntimeError(f"no callback for {nbytes} bytes")

    mr = rmm.mr.FailureCallbackResourceAdaptor(simulated_chain.mr, refuse)

    with pytest.raises(RuntimeError, match=f"no callback for {1 << 40} bytes"):
        mr.allocate(1 << 40)
    mr.deallocate(mr.allocate(1000), 1000)


@pytest.mark.parametrize("made", [lambda mr: mr, lambda mr: rmm.DeviceBuffer(size=1000, mr=mr)])
def test_chain_in_a_cycle_of_references_gives_all_back_once_collected(
    collectable_chain: Any, made: Callable[[Any], Any]
) -> None:
    device = collectable_chain.device
    if collectable_chain.name == "ManagedPool":  # has a device of its own
        device = collectable_chain.mr.driver
    cycle: list[Any] = [made(collectable_chain.mr)]
    cycle.append(cycle)
    object.__setattr__(collectable_chain, "mr", None)

    del cycle
    gc.collect(1)  # all of them takes long beside torch
    if held_bytes(device):
        gc.collect()  # one that came by itself has made the cycle an old one

    assert held_bytes(device) == 0
