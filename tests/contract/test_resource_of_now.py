# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What RMM puts over the resource of now, and takes off again: its statistics and its log.

Asked of every chain. RMM's functions ask CUDA which device is current; on a simulated device they
are told that it is the first. docs/understand/contract.md says which of RMM's tests is asked where.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import rmm
import rmm.statistics
from rmm.statistics import (
    ProfilerRecords,
    Statistics,
    get_statistics,
    pop_statistics,
    profiler,
    push_statistics,
    statistics,
)

Record = ProfilerRecords.MemoryRecord


def of_now() -> Any:
    return rmm.mr.get_current_device_resource()


def rows(log: Path) -> list[tuple[str, int, int]]:
    """Return action, address and size of each row of RMM's log."""
    # RMM logs the devices without a GPU here to the same file, and each of them writes a heading.
    found = [row for row in csv.DictReader(log.read_text().splitlines()) if row["Size"] != "Size"]
    return [(row["Action"], int(row["Pointer"], 16), int(row["Size"])) for row in found]


def test_statistics_in_a_block_count_over_any_chain_and_leave_it(chain_of_now: Any) -> None:
    assert get_statistics() is None
    with statistics():
        counting = of_now()
        assert counting.upstream_mr is chain_of_now.mr
        first = rmm.DeviceBuffer(size=1000)
        assert get_statistics() == Statistics(1000, 1, 1000, 1, 1000, 1)
        with statistics():
            assert of_now() is counting
            second = rmm.DeviceBuffer(size=257)
            assert get_statistics() == Statistics(257, 1, 257, 1, 257, 1)
        assert get_statistics() == Statistics(1257, 2, 1257, 2, 1257, 2)
        del first, second
        assert get_statistics() == Statistics(0, 0, 1257, 2, 1257, 2)

    assert of_now() is chain_of_now.mr
    assert get_statistics() is None


def test_block_of_statistics_whose_resource_was_changed_is_refused(chain_of_now: Any) -> None:
    def change() -> None:
        with statistics():
            rmm.mr.set_current_device_resource(chain_of_now.mr)

    with pytest.raises(ValueError, match="source stack was changed"):
        change()


def test_statistics_that_are_off_are_none_over_any_chain(chain_of_now: Any) -> None:
    buffer = rmm.DeviceBuffer(size=1000)

    assert (get_statistics(), push_statistics(), pop_statistics()) == (None, None, None)
    assert of_now() is chain_of_now.mr
    assert buffer.size == 1000


def test_counters_over_any_chain_begin_anew_and_are_added_when_popped(chain: Any) -> None:
    mr = rmm.mr.StatisticsResourceAdaptor(chain.mr)
    outer = [rmm.DeviceBuffer(size=100, mr=mr) for _ in range(10)]

    assert mr.push_counters() == Statistics(1000, 10, 1000, 10, 1000, 10)
    inner = [rmm.DeviceBuffer(size=30, mr=mr)]
    assert mr.push_counters() == Statistics(30, 1, 30, 1, 30, 1)
    del inner[0]
    assert mr.pop_counters() == Statistics(-30, -1, 0, 0, 0, 0)  # freed what was there before
    inner += [rmm.DeviceBuffer(size=20, mr=mr) for _ in range(2)]
    assert mr.pop_counters() == Statistics(40, 2, 40, 2, 70, 3)
    inner.clear()
    assert mr.allocation_counts == Statistics(1000, 10, 1040, 12, 1070, 13)
    del outer
    with pytest.raises(IndexError, match="cannot pop the last counter pair"):
        mr.pop_counters()


def test_statistics_of_the_resource_of_now_are_those_of_any_chain(chain_of_now: Any) -> None:
    rmm.statistics.enable_statistics()
    rmm.statistics.enable_statistics()  # once is enough
    assert of_now().upstream_mr is chain_of_now.mr

    first = rmm.DeviceBuffer(size=1000)
    assert get_statistics() == Statistics(1000, 1, 1000, 1, 1000, 1)
    second = rmm.DeviceBuffer(size=257)
    assert push_statistics() == Statistics(1257, 2, 1257, 2, 1257, 2)
    del first
    assert pop_statistics() == Statistics(-1000, -1, 0, 0, 0, 0)
    del second
    assert get_statistics() == Statistics(0, 0, 1257, 2, 1257, 2)


def test_profiler_over_any_chain_has_bytes_of_each_function(
    chain_of_now: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmm.statistics.enable_statistics()
    records = ProfilerRecords()
    assert "No data" in records.report()

    @profiler(records=records, name="keeps one of two")
    def keep_one() -> rmm.DeviceBuffer:
        _dropped, kept = rmm.DeviceBuffer(size=40), rmm.DeviceBuffer(size=50)
        return kept

    @profiler(records=records)
    def call_another() -> None:
        _buffer = rmm.DeviceBuffer(size=10)
        keep_one()

    kept = [keep_one(), keep_one()]
    call_another()

    name = rmm.statistics._get_descriptive_name_of_object(call_another)
    assert records.records == {"keeps one of two": Record(3, 270, 90), name: Record(1, 100, 100)}
    assert name in records.report()

    default = rmm.statistics.default_profiler_records
    monkeypatch.setattr(default, "_records", defaultdict(Record))
    with profiler(name="allocates"):
        kept.append(rmm.DeviceBuffer(size=1000))
        with profiler(name="frees"):
            kept.clear()
    assert default.records == {"allocates": Record(1, 1000, 1000), "frees": Record(1, 0, 0)}


def test_profiler_without_statistics_over_any_chain_has_no_record(chain_of_now: Any) -> None:
    records = ProfilerRecords()
    with profiler(records=records, name="not counted"):
        buffer = rmm.DeviceBuffer(size=1000)

    assert records.records == {}
    assert buffer.size == 1000


def test_log_over_any_chain_can_be_switched_on_later_and_off(
    chain_of_now: Any, tmp_path: Path
) -> None:
    before = rmm.DeviceBuffer(size=300)
    rmm.mr.enable_logging(log_file_name=str(tmp_path / "log.csv"))
    logging = of_now()
    assert logging.upstream_mr is chain_of_now.mr
    assert rmm.mr.get_log_filenames()[0] == str(tmp_path / "log.dev0.csv")

    first, second = rmm.DeviceBuffer(size=1000), rmm.DeviceBuffer(size=257)
    pointers = first.ptr, second.ptr
    del first, second
    logging.flush()
    rmm.mr.disable_logging()
    after = rmm.DeviceBuffer(size=400)

    logged = rows(tmp_path / "log.dev0.csv")
    assert sorted(logged[:2]) == sorted(
        ("allocate", pointer, size) for pointer, size in zip(pointers, (1000, 257), strict=True)
    )
    assert sorted(logged[2:]) == sorted(
        ("free", pointer, size) for pointer, size in zip(pointers, (1000, 257), strict=True)
    )
    assert of_now() is chain_of_now.mr
    assert rmm.mr.get_log_filenames()[0] is None
    assert (before.size, after.size) == (300, 400)
