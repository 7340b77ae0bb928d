# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Workloads from traces and from RMM's logs: what comes out of recordings that are whole."""

from __future__ import annotations

import gzip
import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rmm
from hypothesis import given
from hypothesis import strategies as st
from rmm.pylibrmm.memory_resource import _memory_resource

import rmm_uvm
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    BY_THE_CPU,
    FREE,
    TOUCH,
    WRITES,
    Slab,
    Workload,
)
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace import TraceWriter

from ...fuzz.slow_workload import problem

BASE = 0x7F00_0000_0000
MIB = 1 << 20
HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
FACTS = {
    "devices": [
        {"device_id": 0, "name": "NVIDIA H200", "total_bytes": 141 << 30},
        {"device_id": 1, "name": "other", "total_bytes": 0},
    ],
    "settings": {"prefetch": "auto"},
}

Write = Callable[[TraceWriter], object]


def traced(tmp_path: Path, write: Write, **facts: str) -> Path:
    path = tmp_path / "program.trace"
    with TraceWriter(path, {**FACTS, **facts}) as writer:
        write(writer)
    return path


def columns(
    workload: rmm_uvm.planner.workload.events.Workload, *names: str
) -> list[tuple[int, ...]]:
    return [tuple(row) for row in workload.events[list(names)].tolist()]


def test_trace_without_touches_has_assumed_ones(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.allocated(0, BASE + 4 * MIB, 1000)
        writer.freed(0, BASE, MIB)

    workload = load_workload(traced(tmp_path, program))

    assert columns(workload, "kind", "flags", "address", "nbytes") == [
        (ALLOCATE, 0, BASE, MIB),
        (TOUCH, WRITES, BASE, MIB),
        (ALLOCATE, 0, BASE + 4 * MIB, 1000),
        (TOUCH, WRITES, BASE + 4 * MIB, 1000),
        (TOUCH, 0, BASE, MIB),
        (FREE, 0, BASE, MIB),
    ]
    assert workload.touches_assumed
    assert workload.slabs == (Slab(BASE, 2 * MIB), Slab(BASE + 4 * MIB, 2 * MIB))
    assert (workload.kind, workload.cut_off, workload.remarks) == ("trace", "", ())
    assert (workload.device_name, workload.device_bytes) == ("NVIDIA H200", 141 << 30)
    assert workload.settings == {"prefetch": "auto"}
    assert workload.peak_live_bytes == workload.allocated_bytes == MIB + 1000
    assert workload.allocations == 2
    assert workload.events["time_ns"][-1] == round(workload.seconds * 1e9)
    assert not workload.events.flags.writeable


def test_recording_that_goes_on_after_the_last_event_tells_for_how_long(tmp_path: Path) -> None:
    def sampled(*times_ns: int) -> Workload:
        def program(writer: TraceWriter) -> None:
            writer.allocated(0, BASE, MIB)
            rows = np.zeros(len(times_ns), SAMPLE_DTYPE)
            rows["time_ns"] = times_ns
            writer.samples(rows)

        folder = tmp_path / f"{len(times_ns)} samples"
        folder.mkdir()
        return load_workload(traced(folder, program))

    begun, early, long = sampled(), sampled(1), sampled(1, 500_000_000_000)

    assert (begun.trailing_seconds, early.trailing_seconds) == (0, 0)
    assert early.whole_seconds == early.seconds
    assert long.seconds < 100  # predicted times rest on it
    assert long.whole_seconds == pytest.approx(500, abs=1e-6)


def test_trace_with_touches_keeps_those_and_assumes_none(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.flush()  # the first chunk knows of no touch
        writer.touched(0, BASE, 4096, write=True)
        writer.touched(0, BASE + 4096, 4096, by_cpu=True)
        writer.touched(0, BASE, 1, write=True, by_cpu=True)
        writer.touched(0, BASE, 2)
        writer.freed(0, BASE, MIB)

    workload = load_workload(traced(tmp_path, program))

    assert columns(workload, "kind", "flags", "nbytes") == [
        (ALLOCATE, 0, MIB),
        (TOUCH, WRITES, 4096),
        (TOUCH, BY_THE_CPU, 4096),
        (TOUCH, WRITES | BY_THE_CPU, 1),
        (TOUCH, 0, 2),
        (FREE, 0, MIB),
    ]
    assert not workload.touches_assumed


def test_trace_of_announced_uses_keeps_those_and_assumes_the_first_writes(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.allocated(0, BASE + 4 * MIB, 1000)
        writer.freed(0, BASE + 4 * MIB, 1000)
        writer.flush()  # the first chunk knows of no use
        writer.touched(0, BASE, 4096)
        writer.touched(0, BASE, 4096, write=True)
        writer.allocated(0, BASE + 8 * MIB, 2000)
        writer.freed(0, BASE, MIB)

    workload = load_workload(traced(tmp_path, program, uses="announced"))

    assert columns(workload, "kind", "flags", "nbytes") == [
        (ALLOCATE, 0, MIB),
        (TOUCH, WRITES, MIB),
        (ALLOCATE, 0, 1000),
        (TOUCH, WRITES, 1000),
        (FREE, 0, 1000),
        (TOUCH, 0, 4096),
        (TOUCH, WRITES, 4096),
        (ALLOCATE, 0, 2000),
        (TOUCH, WRITES, 2000),
        (FREE, 0, MIB),
    ]
    assert workload.uses_announced
    assert not workload.touches_assumed


@pytest.mark.parametrize("uses", ["by kernels", "announced"])
def test_trace_that_says_whose_uses_it_would_have_and_has_none_has_assumed_ones(
    tmp_path: Path, uses: str
) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.freed(0, BASE, MIB)

    workload = load_workload(traced(tmp_path, program, uses=uses))

    assert columns(workload, "kind") == [(ALLOCATE,), (TOUCH,), (TOUCH,), (FREE,)]
    assert workload.touches_assumed
    assert not workload.uses_announced


def test_program_on_a_simulated_device_is_a_workload_of_its_touches(tmp_path: Path) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="8MiB", maximum_pool_size="32MiB", prefetch="never"
    )
    with TraceWriter(tmp_path / "t") as writer:
        writer.observe(mr)
        writer.observe(device)
        address = mr.allocate(3 * MIB)
        device.touch(address, 3 * MIB)
        mr.deallocate(address, 3 * MIB)

    workload = load_workload(tmp_path / "t")

    assert columns(workload, "kind", "nbytes") == [
        (ALLOCATE, 3 * MIB),
        (TOUCH, 3 * MIB),
        (FREE, 3 * MIB),
    ]
    assert problem(workload) == ""


def test_stages_number_the_events_in_them(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with TraceWriter(path) as writer:
        writer.allocated(0, BASE, 64)
        with_stage(writer, "etl", lambda: writer.allocated(0, BASE + 256, 64))
        writer.stage_begin("train")
        pause(writer)
        writer.allocated(0, BASE + 512, 64)
        with_stage(writer, "etl", lambda: writer.freed(0, BASE + 512, 64))
        writer.freed(0, BASE + 256, 64)
        pause(writer)
        writer.stage_end()
        pause(writer)
        writer.freed(0, BASE, 64)

    workload = load_workload(path)

    assert workload.stages == ("outside any stage", "etl", "train")
    assert workload.events["stage"].tolist() == [0, 0, 1, 1, 2, 2, 1, 1, 2, 2, 0, 0]


def with_stage(writer: TraceWriter, name: str, call: Callable[[], object]) -> None:
    pause(writer)
    writer.stage_begin(name)
    call()
    pause(writer)
    writer.stage_end()
    pause(writer)


def pause(writer: TraceWriter) -> None:
    """Let a microsecond pass, the traces' unit of time."""
    for _ in range(200):
        writer.counts  # noqa: B018


def test_one_of_several_devices_is_chosen(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.allocated(1, BASE, 64)

    path = traced(tmp_path, program)

    second = load_workload(path, device=1)
    assert columns(second, "nbytes") == [(64,), (64,)]
    assert (second.device_name, second.device_bytes) == ("other", None)
    assert load_workload(path, device=0).allocated_bytes == MIB


def test_log_of_rmm_is_a_workload_with_assumed_touches(tmp_path: Path) -> None:
    path = tmp_path / "rmm.csv"
    path.write_text(
        HEADER + "7,23:59:59.500000,allocate,0x7f0000000000,1048576,0x0\n"
        "7,23:59:59.600000,allocate,0x7f0000100000,64,0x0\n"
        "7,00:00:01.500000,free,0x7f0000000000,1048576,0x0\n"
    )
    workload = load_workload(path, strict=True)

    assert workload.kind == "rmm-log"
    assert workload.touches_assumed
    assert columns(workload, "kind", "address", "nbytes", "time_ns") == [
        (ALLOCATE, BASE, MIB, 0),
        (TOUCH, BASE, MIB, 0),
        (ALLOCATE, BASE + MIB, 64, 100_000_000),
        (TOUCH, BASE + MIB, 64, 100_000_000),
        (TOUCH, BASE, MIB, 2_000_000_000),
        (FREE, BASE, MIB, 2_000_000_000),
    ]
    assert (workload.seconds, workload.device_name, workload.device_bytes) == (2.0, "", None)
    assert workload.slabs == (Slab(BASE, 2 * MIB),)


def test_log_of_many_threads_is_whole_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is freed is logged before anybody can have it again; times may be out of order."""
    monkeypatch.setattr(_memory_resource, "getDevice", lambda: 0)  # there is no GPU to ask
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="8MiB"
    )
    logging_mr = rmm.mr.LoggingResourceAdaptor(mr, log_file_name=str(tmp_path / "rmm.csv"))

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(1000):
            nbytes = chance.choice((256, 512, 1024))
            logging_mr.deallocate(logging_mr.allocate(nbytes), nbytes)

    with TraceWriter(tmp_path / "t") as writer:
        writer.observe(mr)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    logging_mr.flush()

    for path in (tmp_path / "t", tmp_path / "rmm.csv"):
        workload = load_workload(path, strict=True)
        assert problem(workload) == ""
        assert workload.allocations == 4000


def test_logs_of_several_devices_are_found_by_the_name_that_rmm_was_given(tmp_path: Path) -> None:
    for device in (0, 1):
        text = f"{HEADER}7,10:00:00.000000,allocate,0x100,{device + 1},0x0\n"
        (tmp_path / f"rmm.dev{device}.csv").write_text(text)

    assert load_workload(tmp_path / "rmm.csv", device=1).allocated_bytes == 2
    assert load_workload(tmp_path / "rmm.dev1.csv").allocated_bytes == 2
    (tmp_path / "rmm.dev1.csv").unlink()
    assert load_workload(tmp_path / "rmm.csv").allocated_bytes == 1


@pytest.mark.parametrize("members", [1, 2])
def test_compressed_recordings_are_the_same_workloads(tmp_path: Path, members: int) -> None:
    def program(writer: TraceWriter) -> None:
        for number in range(30_000):
            writer.allocated(0, BASE + 4096 * number, 4096)

    trace = traced(tmp_path, program)
    log = tmp_path / "rmm.csv"
    lines = [f"7,10:00:00.{n:06},allocate,{4096 * n:#x},10,0x0\n" for n in range(30_000)]
    log.write_text(HEADER + "".join(lines))

    for path in (trace, log):
        data = path.read_bytes()
        cut = len(data) // members
        packed = path.with_name(f"{path.name}.gz")
        packed.write_bytes(
            b"".join(gzip.compress(data[at : at + cut]) for at in range(0, len(data), cut))
        )
        plain, unpacked = load_workload(path, strict=True), load_workload(packed, strict=True)
        assert (plain.events == unpacked.events).all()
        assert len(unpacked.events) == 60_000


def test_progress_tells_of_bytes_of_the_file(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        for number in range(100_000):
            writer.allocated(0, BASE + 4096 * number, 4096)

    path = traced(tmp_path, program)
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        seen: list[tuple[int, int]] = []
        load_workload(file, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert len(seen) > 1
        assert seen == sorted(seen)
        assert {total for _, total in seen} == {file.stat().st_size}
        assert 0 < seen[0][0] <= seen[-1][0] <= file.stat().st_size


def test_allocation_that_is_never_freed_is_written_and_kept(tmp_path: Path) -> None:
    path = traced(tmp_path, lambda writer: writer.allocated(0, BASE, 5))
    assert columns(load_workload(path, strict=True), "kind") == [(ALLOCATE,), (TOUCH,)]


def test_allocation_of_no_bytes_is_left_out(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, 0, 0)
        writer.allocated(0, BASE, 8)
        writer.freed(0, 0, 0)

    workload = load_workload(traced(tmp_path, program), strict=True)
    assert workload.allocations == 1
    assert len(workload.events) == 2


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["allocate", "free", "free", "touch", "flush"]),
        st.integers(0, 40),
        st.integers(1, 5 * MIB),
    ),
    max_size=60,
)


@given(_STEPS)
def test_workload_of_any_program_adds_up(steps: list[tuple[str, int, int]]) -> None:
    """Also with frees and touches of what is not live, which are counted."""
    live: dict[int, int] = {}
    strays = touched_strays = 0
    with tempfile.TemporaryDirectory() as folder, TraceWriter(f"{folder}/t") as writer:
        writer.allocated(0, BASE - 1024, 1024)
        for what, place, nbytes in steps:
            address = BASE + 6 * MIB * place
            if what == "allocate" and address not in live:
                live[address] = nbytes
                writer.allocated(0, address, nbytes)
            elif what == "free":
                strays += address not in live
                writer.freed(0, address, live.pop(address, nbytes))
            elif what == "touch":
                touched_strays += nbytes > live.get(address, 0)
                writer.touched(0, address, nbytes, write=nbytes % 2 == 0)
            elif what == "flush":
                writer.flush()
        writer.close()
        workload = load_workload(f"{folder}/t")

    assert problem(workload) == ""
    kept = workload.events["nbytes"][workload.events["kind"] == ALLOCATE].astype(np.int64).sum()
    freed = workload.events["nbytes"][workload.events["kind"] == FREE].astype(np.int64).sum()
    assert kept - freed == sum(live.values()) + 1024
    counted = [int(remark.split(": ")[1].split()[0]) for remark in workload.remarks]
    assert counted == [count for count in (strays, touched_strays) if count]
