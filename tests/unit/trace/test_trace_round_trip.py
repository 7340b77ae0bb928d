# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is written is what is read, whatever a program does."""

from __future__ import annotations

import math
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.trace import EventKind, TraceWriter, iter_events, read

from .conftest import BASE, make_samples

KEPT = Path(__file__).parents[2] / "data" / "mortgage-h200.trace.gz"
ADDRESS = st.one_of(
    st.integers(0, 63).map(lambda slot: BASE + slot * 256), st.integers(0, (1 << 60) - 1)
)
SIZE = st.one_of(st.sampled_from([8, 1000, 4096, 1 << 21]), st.integers(0, (1 << 60) - 1))
EVENT = st.tuples(
    st.sampled_from(list(EventKind)[:6]),
    st.integers(-1, 3),
    ADDRESS,
    SIZE,
    st.one_of(st.integers(0, 3), st.integers(0, (1 << 64) - 1)),
)
ROW = st.lists(st.integers(0, (1 << 64) - 1), min_size=14, max_size=14)


def note(writer: TraceWriter, event: tuple[EventKind, int, int, int, int]) -> None:
    kind, device_id, address, nbytes, stream = event
    if kind == EventKind.ALLOCATE:
        writer.allocated(device_id, address, nbytes, stream)
    elif kind == EventKind.FREE:
        writer.freed(device_id, address, nbytes, stream)
    else:
        flags = kind - EventKind.READ
        writer.touched(device_id, address, nbytes, bool(flags & 1), bool(flags & 2))


def expected_ids(events: list[tuple[EventKind, int, int, int, int]]) -> list[int]:
    live: dict[tuple[int, int], int] = {}
    ids, count = [], 0
    for kind, device_id, address, *_ in events:
        place = (device_id, address)
        if kind == EventKind.ALLOCATE:
            live[place] = count
            count += 1
        ids.append(live.pop(place, -1) if kind == EventKind.FREE else live.get(place, -1))
    return ids


@settings(max_examples=200)
@given(st.lists(st.one_of(EVENT, st.just("flush")), max_size=60))
def test_events_of_any_program_are_read_as_written(program: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.uvmtrace")
        with TraceWriter(path, {}) as writer:
            for step in program:
                writer.flush() if step == "flush" else note(writer, step)
        trace = read(path)
        streamed = list(iter_events(path))
    events = [step for step in program if step != "flush"]

    assert not trace.damaged
    assert not trace.truncated
    assert trace.events["kind"].tolist() == [event[0] for event in events]
    assert trace.events["device_id"].tolist() == [event[1] for event in events]
    assert trace.events["address"].tolist() == [event[2] for event in events]
    assert trace.events["bytes"].tolist() == [event[3] for event in events]
    assert trace.events["stream"].tolist() == [
        event[4] if event[0] <= EventKind.FREE else 0 for event in events
    ]
    assert trace.events["id"].tolist() == expected_ids(events)
    assert (np.diff(trace.events["time_ns"].astype(np.int64)) >= 0).all()
    assert np.array_equal(np.concatenate([trace.events[:0], *streamed]), trace.events)


@given(st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), ROW, st.integers(0, 63))))
def test_samples_of_any_value_are_read_as_written(rows: list) -> None:
    samples = make_samples(len(rows))
    for place, (device_id, values, known) in enumerate(rows):
        samples[place] = (*values, device_id, known)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples.uvmtrace")
        with TraceWriter(path, {}) as writer:
            writer.samples(samples)
        trace = read(path)

    assert not trace.damaged
    assert np.array_equal(trace.samples, samples)


@given(st.lists(st.text(max_size=40), max_size=20))
def test_names_of_any_kind_are_read_as_written(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "names.uvmtrace")
        with TraceWriter(path, {}) as writer:
            for name in names:
                writer.stage_begin(name)
            writer.annotate("end")
        trace = read(path)

    written = [name.encode(errors="replace").decode() for name in names]
    assert [stage.name for stage in trace.stages] == written
    assert [text for _, text in trace.annotations] == ["end"]


def test_trace_of_a_pool_has_its_allocations_touches_and_stages(tmp_path: Path) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
    with TraceWriter(tmp_path / "pool.uvmtrace", {}) as writer:
        writer.observe(mr)
        writer.observe(device)
        writer.stage_begin("load")
        pointer = mr.allocate(1 << 20)
        device.touch(pointer, 1 << 20, write=True)
        device.cpu_touch(pointer, 4096)
        mr.deallocate(pointer, 1 << 20)
        writer.stage_end()
        mr.observe(None)
        device.observe(None)
        mr.deallocate(mr.allocate(1000), 1000)
    trace = read(tmp_path / "pool.uvmtrace")

    assert trace.events["kind"].tolist() == [
        EventKind.ALLOCATE,
        EventKind.WRITE,
        EventKind.CPU_READ,
        EventKind.FREE,
    ]
    assert set(trace.events["address"].tolist()) == {pointer}
    assert set(trace.events["id"].tolist()) == {0}
    (stage,) = trace.stages
    assert (stage.name, stage.thread) == ("load", "MainThread")
    assert stage.begin_seconds <= stage.end_seconds


def test_trace_of_refused_allocation_has_no_event(tmp_path: Path) -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="8MiB"
    )
    with TraceWriter(tmp_path / "pool.uvmtrace", {}) as writer:
        writer.observe(mr)
        with pytest.raises(MemoryError):
            mr.allocate(1 << 40)
        mr.observe(None)

    assert len(read(tmp_path / "pool.uvmtrace").events) == 0


def test_stages_nest_within_their_thread(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "stages.uvmtrace", {}) as writer:
        writer.stage_begin("outer")
        writer.stage_begin("inner")
        thread = threading.Thread(target=writer.stage_begin, args=("other",), name="worker")
        thread.start()
        thread.join()
        writer.stage_end()
        writer.stage_end()
        writer.stage_end()  # one too many
    stages = read(tmp_path / "stages.uvmtrace").stages

    assert [(one.name, one.depth) for one in stages] == [("outer", 0), ("inner", 1), ("other", 0)]
    assert [one.thread for one in stages] == ["MainThread", "MainThread", "worker"]
    assert [math.isnan(one.end_seconds) for one in stages] == [False, False, True]
    assert stages[1].end_seconds <= stages[0].end_seconds


def test_events_of_several_threads_are_all_there_in_order(tmp_path: Path) -> None:
    def work(slot: int) -> None:
        for step in range(5000):
            writer.allocated(0, BASE + slot * (1 << 30), step, slot)
            writer.freed(0, BASE + slot * (1 << 30), step, slot)

    with TraceWriter(tmp_path / "threads.uvmtrace", {}) as writer:
        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = read(tmp_path / "threads.uvmtrace").events

    assert (np.diff(events["time_ns"].astype(np.int64)) >= 0).all()
    assert len(np.unique(events["thread"])) == 4
    for slot in range(4):
        own = events[events["stream"] == slot]
        assert own["bytes"].tolist() == [step for step in range(5000) for _ in range(2)]


def test_a_loop_takes_at_most_12_bytes_for_an_allocation_and_its_free(tmp_path: Path) -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="32MiB")
    with TraceWriter(tmp_path / "loop.uvmtrace", {}) as writer:
        writer.observe(mr)
        for round_ in range(200):
            live = [(mr.allocate(nbytes), nbytes) for nbytes in range(1000, 50_000, 1000 + round_)]
            for address, nbytes in live:
                mr.deallocate(address, nbytes)
        mr.observe(None)
        writer.flush()
        counts = writer.counts

    assert counts["allocations"] == counts["frees"] > 5000
    assert counts["written_bytes"] <= 12 * counts["frees"]


def test_samples_of_a_trace_that_was_kept_are_read_as_they_were_written() -> None:
    samples = read(KEPT).samples

    assert len(samples) == 63
    assert sorted(set(samples["known"].tolist())) == [9, 29]
    assert samples["time_ns"][-1] == 1_685_346_995
    assert samples["footprint_bytes"].max() == 1_027_246_594
    assert samples["device_used_bytes"].max() == 9_942_466_560
