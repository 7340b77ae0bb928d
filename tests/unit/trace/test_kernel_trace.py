# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of given kernels: what is read is what was told, and what cannot have been is refused."""

from __future__ import annotations

import resource
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmm_uvm.errors import ConfigurationError, DataError, UvmError
from rmm_uvm.planner import plan, replay_paced
from rmm_uvm.report import Report
from rmm_uvm.trace import EventKind, KernelTraceWriter, read

MIB = 1 << 20


def rows(path: Path, *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in read(path).events[list(fields)].tolist()]


def test_what_is_told_is_read_with_times_streams_and_names(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path, {"program": "two kernels"}) as trace:
        data = trace.allocate("2MiB", address=4 * MIB, at=0.001)
        sums = trace.allocate(4096, address=8 * MIB, stream=7)
        with trace.stage("step"):
            trace.kernel("fill", writes=[data], seconds=0.002)
            trace.kernel("add", [data, (sums, 0, 64)], [(sums, 0, 64)], 0.5, stream=7, at=0.004)
        trace.free(data, stream=7, at=0.75)
        trace.cpu(reads=[(sums, 1024, 8)])
    found = read(path)
    assert rows(path, "time_ns", "kind", "address", "bytes", "stream") == [
        (1_000_000, EventKind.ALLOCATE, 4 * MIB, 2 * MIB, 0),
        (1_000_000, EventKind.ALLOCATE, 8 * MIB, 4096, 7),
        (1_000_000, EventKind.WRITE, 4 * MIB, 2 * MIB, 0),
        (4_000_000, EventKind.READ, 4 * MIB, 2 * MIB, 7),
        (4_000_000, EventKind.WRITE, 8 * MIB, 64, 7),
        (750_000_000, EventKind.FREE, 4 * MIB, 2 * MIB, 7),
        (750_000_000, EventKind.CPU_READ, 8 * MIB + 1024, 8, 0),
    ]
    assert found.kernels == ((0.001, "fill"), (0.004, "add"))
    [stage] = found.stages
    assert (stage.name, stage.begin_seconds, stage.end_seconds) == ("step", 0.001, 0.504)
    assert (found.facts, found.damaged, found.truncated) == ({"program": "two kernels"}, "", False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_kernels_of_one_stream_follow_one_another_and_of_two_run_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path) as trace:
        part = trace.allocate(64)
        for number in range(2):
            trace.kernel(f"long {number}", writes=[part], seconds=0.003, stream=1)
            trace.kernel(f"short {number}", writes=[part], seconds=0.001, stream=2)
        trace.free(part)
    assert read(path).kernels == (
        (0.0, "long 0"),
        (0.000001, "short 0"),
        (0.003, "long 1"),
        (0.003001, "short 1"),
    )
    assert rows(path, "time_ns")[-1] == (3_001_000,)  # of the default stream, which waits for none
    assert read(path).annotations == ((0.006, "end of the last kernel"),)


def test_kernels_shorter_than_a_microsecond_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path) as trace:
        part = trace.allocate(64)
        for name in "abc":
            trace.kernel(name, reads=[part], seconds=1e-7)
    assert read(path).kernels == ((0.0, "a"), (1e-6, "b"), (2e-6, "c"))


def test_kernels_that_begin_in_one_microsecond_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path) as trace:
        part = trace.allocate(64, at=1.0)
        for number in range(3):  # of streams that run at once
            begin = 1 + number * 2e-7
            trace.kernel(f"{number}", [part], seconds=0.01, stream=number, at=begin)
        more = trace.allocate(64, at=1 + 5e-7)
        with trace.stage("s"):
            trace.kernel("late", [more], seconds=0.001, at=1.0100004)
        with pytest.raises(ConfigurationError, match=r"the trace is at 1\.0110004 s already"):
            trace.free(more, at=1.01)
    assert read(path).kernels == ((1.0, "0"), (1.000001, "1"), (1.000002, "2"), (1.01, "late"))
    assert read(path).annotations[0][0] == 1.011


def test_what_the_cpu_does_in_a_stage_counts_there(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path) as trace:
        part = trace.allocate("4MiB")
        for name in ("load", "compute", "save"):
            with trace.stage(name):
                if name == "compute":
                    trace.kernel("k", writes=[part], seconds=0.01)
                else:
                    trace.cpu(reads=[part], writes=[part])
        trace.cpu(reads=[part])
    took = replay_paced(path, "16MiB", prefetch="never")
    assert took.stages["save"].to_host_bytes == 4 * MIB == took.to_host_bytes
    assert took.stages["compute"].to_device_bytes == 4 * MIB == took.to_device_bytes
    [moved] = [
        one for one in plan(path, "16MiB").cards[0].defaults.result.stages if one.name == "save"
    ]
    assert moved.to_host_bytes == 4 * MIB


def test_kernels_of_another_thread_are_in_the_stage_that_runs(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        part = trace.allocate("2MiB")
        with trace.stage("step"):
            other = threading.Thread(target=trace.kernel, args=("k", [part], [], 0.01))
            other.start()
            other.join()
    assert replay_paced(tmp_path / "a", "16MiB").stages["step"].kernels == 1


def test_places_are_used_again_smallest_first_and_grow_together(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a.trace") as trace:
        parts = [trace.allocate(nbytes) for nbytes in (1000, 256, 2048, 256, 500)]
        for part in (parts[0], parts[2]):
            trace.free(part)
        trace.allocate(900)  # into the first hole, of 1024 bytes, not that of 2048
        trace.free(parts[1])  # between a hole's rest and a hole
        trace.allocate(2304)
        trace.allocate(1)
    allocated = read(tmp_path / "a.trace").of(EventKind.ALLOCATE)["address"].tolist()
    offsets = [address - allocated[0] for address in allocated[1:]]
    assert offsets == [1024, 1280, 3328, 3584, 0, 1024, 4096]


REFUSED: dict[str, tuple[Callable[[KernelTraceWriter, int], object], str]] = {
    "use after free": (
        lambda trace, part: (trace.free(part), trace.kernel("k", reads=[part])),
        r"allocation 0 was freed: allocate it again",
    ),
    "double free": (
        lambda trace, part: (trace.free(part), trace.free(part)),
        r"allocation 0 was freed: allocate it again",
    ),
    "unknown allocation": (
        lambda trace, _: trace.kernel("k", writes=[1]),
        r"allocation 1: there are 1, numbered from 0",
    ),
    "no allocation": (lambda trace, _: trace.free(True), r"allocation True: there are 1"),
    "past the end": (
        lambda trace, part: trace.kernel("k", reads=[(part, 4000, 97)]),
        r"\(0, 4000, 97\): allocation 0 has 4096 bytes",
    ),
    "before the begin": (
        lambda trace, part: trace.cpu(writes=[(part, -1, 8)]),
        r"\(0, -1, 8\): allocation 0 has 4096 bytes",
    ),
    "part of nothing": (
        lambda trace, part: trace.kernel("k", reads=[(part, 0, 0)]),
        r"\(0, 0, 0\): .* has a byte at least",
    ),
    "half a part": (
        lambda trace, part: trace.kernel("k", reads=[(part, 0)]),
        r"\(0, 0\): a part is \(allocation, first byte, bytes\)",
    ),
    "negative time": (lambda trace, _: trace.kernel("k", seconds=-1), r"seconds=-1: seconds, 0 to"),
    "time that is none": (
        lambda trace, _: trace.allocate(1, address=1, at=float("nan")),
        r"at=nan: seconds, 0 to 1e\+09",
    ),
    "back in time": (
        lambda trace, _: trace.kernel("k", at=0.5),
        r"at=0.5: the trace is at 1 s already; write calls in order of time",
    ),
    "no stream": (lambda trace, _: trace.kernel("k", stream="fast"), "'fast' is not a CUDA stream"),
    "negative stream": (lambda trace, _: trace.kernel("k", stream=-1), "stream=-1: a handle is"),
    "overlap": (
        lambda trace, _: trace.allocate(8192, address=MIB - 8191),
        r"8192 bytes there overlap the 4096 bytes at 0x100000, which live; free them first",
    ),
    "overlap from within": (
        lambda trace, _: trace.allocate(1, address=MIB + 4095),
        r"address=0x100fff: 1 bytes there overlap",
    ),
    "one without an address": (
        lambda trace, _: trace.allocate(1),
        r"address=None: give the address of every allocation, or of none",
    ),
    "address of no machine": (
        lambda trace, _: trace.allocate(1, address=1 << 60),
        r"address=1152921504606846976: a number from 1",
    ),
    "address that is no whole number": (
        lambda trace, _: trace.allocate(1, address=4096.0),  # type: ignore[arg-type]
        r"address=4096.0: a number from 1",
    ),
    "time that no float holds": (
        lambda trace, _: trace.kernel("k", seconds=10**400),
        r"seconds=1000.*: seconds, 0 to",
    ),
    "end that no trace holds": (
        lambda trace, _: trace.kernel("k", seconds=1e9, at=1.5),
        r"seconds=1000000000.0: the kernel would end 1e\+09 s after the trace began",
    ),
    "uses without a list": (
        lambda trace, part: trace.kernel("k", reads=part),
        r"reads=0: a list of allocations and parts",
    ),
    "no bytes": (lambda trace, _: trace.allocate(0, address=1), "nbytes=0"),
    "too many bytes": (lambda trace, _: trace.allocate("9TiB", address=1), "at most 8"),
    "name that is none": (lambda trace, _: trace.kernel(3), "name=3: a kernel's name is text"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_have_been_is_refused_and_leaves_no_file(tmp_path: Path, what: str) -> None:
    wrong, message = REFUSED[what]
    path = tmp_path / "a.trace"

    def written() -> None:
        with KernelTraceWriter(path) as trace:
            wrong(trace, trace.allocate(4096, address=MIB, at=1.0))

    with pytest.raises(UvmError, match=message):
        written()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", REFUSED)
def test_trace_whose_program_goes_on_is_as_without_what_was_refused(
    tmp_path: Path, what: str
) -> None:
    wrong, _ = REFUSED[what]
    for name in ("with", "without"):
        with KernelTraceWriter(tmp_path / name) as trace:
            part = trace.allocate(4096, address=MIB, at=1.0)
            if name == "with":
                with pytest.raises(UvmError):
                    wrong(trace, part)
            elif "free" in what:
                trace.free(part)
            trace.allocate(4096, address=2 * MIB)
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()


def test_neighbours_do_not_overlap_and_freed_ranges_are_used_again(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a.trace") as trace:
        middle = trace.allocate(4096, address=MIB)
        trace.allocate(4096, address=MIB - 4096)
        trace.allocate(4096, address=MIB + 4096)
        trace.free(middle)
        trace.allocate(4096, address=MIB)
    assert not read(tmp_path / "a.trace").events["flags"].any()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        part = trace.allocate(np.int64(4096), address=np.uint8(128))
        numbers = (np.uint8(part), np.uint8(0), np.int16(4096))
        trace.kernel("k", [numbers], seconds=np.float32(0.25))  # type: ignore[list-item,arg-type]
        trace.free(part, at=np.int64(1))  # type: ignore[arg-type]
    assert rows(tmp_path / "a", "time_ns", "address", "bytes") == [
        (0, 128, 4096),
        (0, 128, 4096),
        (10**9, 128, 4096),
    ]
    assert read(tmp_path / "a").annotations == ((1.0, "end of the last kernel"),)


def test_addresses_end_where_plans_can_read_them(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        most = [trace.allocate("8TiB") for _ in range((1 << 13) - 1)]
        with pytest.raises(ConfigurationError, match="no address is left below 0x1000"):
            trace.allocate("8TiB")
        trace.free(most[0])
        trace.allocate("8TiB")
    assert int(read(tmp_path / "a").events["address"].max()) < 1 << 56


def test_existing_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("precious")
    with pytest.raises(ConfigurationError, match="exists: name another"), KernelTraceWriter(path):
        pass
    assert path.read_text() == "precious"


def test_writer_outside_its_block_says_so(tmp_path: Path) -> None:
    trace = KernelTraceWriter(tmp_path / "a.trace")
    with pytest.raises(ConfigurationError, match="is not open: write in `with KernelTraceWriter"):
        trace.allocate(1)
    with trace:
        part = trace.allocate(1)
    with pytest.raises(ConfigurationError, match="is not open"):
        trace.free(part)
    with pytest.raises(ConfigurationError, match="was begun already"):
        trace.__enter__()


def test_facts_that_are_too_large_leave_no_file(tmp_path: Path) -> None:
    trace = KernelTraceWriter(tmp_path / "a", {"much": "x" * (1 << 20)})
    with pytest.raises(DataError, match="leave something out"), trace:
        pass
    assert list(tmp_path.iterdir()) == []


def test_disk_that_is_full_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    def written() -> None:
        with KernelTraceWriter(tmp_path / "a.trace") as trace:
            part = trace.allocate(64)
            for number in range(10_000):
                trace.kernel(f"kernel {number}", writes=[part])

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, limits[1]))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(DataError, match="cannot be written: File too large"):
            written()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    written()
    assert len(read(tmp_path / "a.trace").kernels) == 10_000


def test_plans_and_reports_are_made_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    with KernelTraceWriter(path) as trace:
        parts = [trace.allocate("16MiB") for _ in range(2)]
        with trace.stage("step"):
            for _ in range(3):
                for part in parts:
                    trace.kernel("add", reads=[part], writes=[part], seconds=0.01)
    made = plan(path, ["24MiB", "64MiB"])
    assert made.workload.peak_live_bytes == 32 * MIB
    assert made.workload.seconds == 0.06
    assert not made.workload.touches_assumed
    small, large = made.cards
    # Kernels alone take 0.06 s: the kernel driver's work comes on top, also where all fits.
    assert made.fitting_seconds == 0.06 + large.defaults.result.migration_seconds
    assert small.defaults.result.evicted_bytes > 0 == large.defaults.result.evicted_bytes
    shown = repr(Report(read(path).recording()))
    assert "32.00 MiB" in shown
    assert "watched memory for 0.060 s" in shown  # until the last kernel's end
    assert read(path).duration_seconds == 0.06
