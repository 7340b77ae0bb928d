# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings that are cut off, contradict themselves, are too large or none: what is said."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
from pathlib import Path

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.planner.workload import events, slabs
from rmm_uvm.planner.workload.loading import load_workload

from ...fuzz.payload import END, EVENTS, Payload, raw_trace
from ...fuzz.slow_workload import problem

BASE = 0x7F00_0000_0000
MIB = 1 << 20
WHOLE = (END, b"\0")
HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
LINE = "7,10:00:00.000001,allocate,0x7f0000000000,1048576,0x0\n"


def payload(device: int = 0) -> Payload:
    return Payload().context(0, device=device, stream=7, thread=1)


def made(folder: Path, *chunks: tuple[int, bytes]) -> Path:
    path = folder / "made.trace"
    path.write_bytes(raw_trace(b"{}", list(chunks)))
    return path


def logged(folder: Path, *lines: str) -> Path:
    path = folder / "rmm.csv"
    path.write_text(HEADER + "".join(lines))
    return path


def refused(path: Path, **arguments: object) -> str:
    """Return the message, which is of one line."""
    with pytest.raises(DataError) as caught:
        load_workload(path, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_trace_without_end_is_accepted_up_to_there_unless_strict(tmp_path: Path) -> None:
    path = made(tmp_path, (EVENTS, payload().allocate(BASE, 64).bytes))

    workload = load_workload(path)

    assert workload.allocations == 1
    assert workload.cut_off == "the trace has no end: its program was killed, or is still running"
    assert "has no end" in refused(path, strict=True)


def test_damaged_trace_is_accepted_up_to_the_damage(tmp_path: Path) -> None:
    good = payload().allocate(BASE, 64).bytes
    workload = load_workload(made(tmp_path, (EVENTS, good), (EVENTS, b"\0\1\1"), WHOLE))

    assert workload.allocations == 1
    assert workload.cut_off.startswith("the trace is damaged: a record comes before its context")


@pytest.mark.parametrize("kind", ["trace", "log"])
def test_compressed_recording_cut_off_anywhere_keeps_what_is_whole(
    tmp_path: Path, kind: str
) -> None:
    if kind == "trace":
        chunks = [(EVENTS, payload().allocate(BASE + n * MIB, 64).bytes) for n in range(50)]
        data = raw_trace(b"{}", [*chunks, WHOLE])
    else:
        lines = [f"7,10:00:00.{n:06},allocate,{4096 * (n + 1):#x},10,0\n" for n in range(50)]
        data = (HEADER + "".join(lines)).encode()
    packed, path = gzip.compress(data, 0), tmp_path / "cut.gz"
    found, refusals = set(), set()
    for length in range(len(packed) - 1, 0, -7):
        path.write_bytes(packed[:length])
        try:
            workload = load_workload(path)
        except DataError as error:
            refusals.add(str(error))
            continue
        assert "compressed file is cut off" in workload.cut_off
        assert problem(workload) == ""
        found.add(workload.allocations)
    assert found >= set(range(1, 49))
    assert refusals
    assert all(re.search("cut off|no allocation|not a log|neither", one) for one in refusals)


def test_compressed_recording_with_a_wrong_sum_says_so(tmp_path: Path) -> None:
    data = raw_trace(b"{}", [(EVENTS, payload().allocate(BASE, 64).bytes), WHOLE])
    packed = bytearray(gzip.compress(data))
    packed[-6] ^= 1
    path = tmp_path / "wrong.gz"
    path.write_bytes(packed)
    assert "compressed file is damaged" in load_workload(path).cut_off
    path.write_bytes(gzip.compress(data) + b"tail")
    assert "bytes follow the compressed data" in load_workload(path).cut_off
    path.write_bytes(gzip.compress(data) + bytes(100))  # padding, as tapes have it
    assert load_workload(path, strict=True).cut_off == ""


def test_log_that_begins_in_mid_run_is_mended_and_counted(tmp_path: Path) -> None:
    free = "7,10:00:00.000002,free,0x7f0000{:06x},64,0x0\n"
    earlier = free.replace("10:00:00.000002", "09:59:58.999999")
    path = logged(tmp_path, free.format(1 << 22), earlier.format(2 << 22), LINE)

    workload = load_workload(path)

    assert workload.allocations == 1
    assert workload.remarks == (
        "times more than a second before the line above: 1",
        "frees of memory that was not live, allocated before or freed twice: 2 "
        "(the first is line 2)",
    )
    assert "times more than a second before" in refused(path, strict=True)


def test_memory_freed_twice_is_counted_once(tmp_path: Path) -> None:
    records = payload().allocate(BASE, 64).free(1).free(1).allocate(BASE, 64)
    path = made(tmp_path, (EVENTS, records.bytes), WHOLE)

    workload = load_workload(path)

    assert problem(workload) == ""
    assert workload.remarks[0].endswith("or freed twice: 1 (the first is record 3)")
    assert "record 3" in refused(path, strict=True)


def test_lines_and_allocations_that_failed_are_remarks(tmp_path: Path) -> None:
    failed = "7,10:00:00.000001,allocate failure,(nil),99999999999999999,0x0\n"
    workload = load_workload(logged(tmp_path, LINE, "rubbish\n", failed, LINE[:20]))

    assert workload.allocations == 1
    assert workload.cut_off == "the last line is cut off"
    assert workload.remarks == (
        "line 3 was not understood (1 field and not 6)",
        "allocations that failed when it was recorded: 1 (the first is line 4)",
    )


def test_dropped_events_are_a_remark(tmp_path: Path) -> None:
    path = made(tmp_path, (EVENTS, payload().allocate(BASE, 64).bytes), (END, b"\5"))
    assert load_workload(path).remarks == ("events that the writer had to drop: 5",)


@pytest.mark.parametrize("distance", [-63, 0, 63])
def test_overlapping_allocations_are_refused_with_their_record(
    tmp_path: Path, distance: int
) -> None:
    first = (EVENTS, payload().allocate(BASE, 64).bytes)
    second = (EVENTS, payload().allocate(BASE + distance, 64).bytes)
    message = refused(made(tmp_path, first, second, WHOLE))
    assert (
        f"record 2 of {tmp_path}/made.trace allocates 64 bytes at {BASE + distance:#x}" in message
    )
    assert "over memory that was not freed" in message

    apart = (EVENTS, payload().allocate(BASE + 64, 64).bytes)
    assert load_workload(made(tmp_path, first, apart, WHOLE), strict=True).allocations == 2


def test_overlapping_lines_are_refused_with_their_number(tmp_path: Path) -> None:
    assert f"line 4 of {tmp_path}/rmm.csv allocates" in refused(
        logged(tmp_path, "rubbish\n", LINE, LINE)
    )


def test_free_of_another_size_is_refused(tmp_path: Path) -> None:
    records = payload().allocate(BASE, 64).free_at(BASE, 65)
    message = refused(made(tmp_path, (EVENTS, records.bytes), WHOLE))
    assert "record 2 of " in message
    assert "frees 65 bytes" in message
    assert "another size was allocated" in message


@pytest.mark.parametrize(
    ("address", "nbytes"), [(BASE, (8 << 40) + 1), (1 << 57, 64), (BASE, (1 << 60) - 1)]
)
def test_absurd_sizes_are_refused(tmp_path: Path, address: int, nbytes: int) -> None:
    path = made(tmp_path, (EVENTS, payload().allocate(address, nbytes).bytes), WHOLE)
    assert f"record 1 of {path} is of {nbytes} bytes at {address:#x}" in refused(path)


def test_absurd_sizes_of_failed_allocations_and_strays_do_not_matter(tmp_path: Path) -> None:
    huge = "7,10:00:00.000001,{},0x7f0000000000,9999999999999999999,0x0\n"
    path = logged(tmp_path, huge.format("allocate failure"), huge.format("free"), LINE)
    assert load_workload(path).allocations == 1


def test_addresses_of_more_memory_than_can_be_replayed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = payload()
    for number in range(3):
        records.allocate(BASE + (number << 43), 8 << 40)
    path = made(tmp_path, (EVENTS, records.bytes), WHOLE)
    assert "as of record 3 its addresses lie in 1 regions of 24576 GiB in all" in refused(path)

    monkeypatch.setattr(slabs, "MOST_SLABS", 2)
    few = payload().allocate(BASE, 1).allocate(BASE + 8 * MIB, 1).allocate(BASE + 64 * MIB, 1)
    assert "as of record 3 its addresses lie in 3 regions of 0 GiB" in refused(
        made(tmp_path, (EVENTS, few.bytes), WHOLE)
    )


@pytest.mark.parametrize("before", [0, 1, 5, 300])
def test_first_record_that_is_too_much_is_named(tmp_path: Path, before: int) -> None:
    records = payload()
    for number in range(before):
        records.allocate(BASE + number * 256, 256)
    for number in range(1, 5):
        records.allocate(BASE + (number << 43), 8 << 40)
    # Twice 8 TiB are just allowed, if nothing is beside them.
    too_much = before + (2 if before else 3)
    message = refused(made(tmp_path, (EVENTS, records.bytes), WHOLE))
    assert f"cannot be replayed: as of record {too_much} its addresses" in message


def test_log_of_lines_that_make_no_sense_says_which_is_the_first_and_why(tmp_path: Path) -> None:
    steal = LINE.replace("allocate", "steal")
    message = refused(logged(tmp_path, "\n", steal, "rubbish\n", steal))
    assert "has no allocation (3 lines were not understood, the first is line 3" in message
    assert "its action is 'steal' and not allocate, free" in message
    only_frees = refused(logged(tmp_path, LINE.replace("allocate", "free")))
    assert "has no allocation (frees of memory that was not live" in only_frees
    assert "the first is line 2" in only_frees
    assert "(" not in refused(logged(tmp_path)).replace(str(tmp_path), "")


def test_more_events_than_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logged(tmp_path, LINE, LINE.replace("allocate", "free"))
    assert len(load_workload(path, most_events=4).events) == 4
    assert "more than 3 events, assumed touches included" in refused(path, most_events=3)

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(events.EventRows, "extend", exhausted)
    assert "does not fit into memory" in refused(path)


def test_several_devices_have_to_be_chosen_from(tmp_path: Path) -> None:
    chunks = [(EVENTS, payload(device).allocate(BASE, 64).bytes) for device in (0, 3)]
    path = made(tmp_path, *chunks, WHOLE)
    assert "several devices, 0 and 3 among them: choose one with device=" in refused(path)
    assert f"{path} has no allocation on device 2, but on 0, 3" in refused(path, device=2)
    assert load_workload(path, device=3).allocations == 1

    for device in (0, 1):
        (tmp_path / f"log.dev{device}.csv").write_text(HEADER + LINE)
    assert "logs of the devices 0, 1" in refused(tmp_path / "log.csv")
    assert "2 is none of them" in refused(tmp_path / "log.csv", device=2)
    assert "no allocation on device 0, but on 1" in refused(tmp_path / "log.dev1.csv", device=0)


def test_recording_without_allocations_is_refused(tmp_path: Path) -> None:
    assert "there is nothing to replay" in refused(logged(tmp_path))
    assert "no allocation (the trace has no end" in refused(made(tmp_path))
    only_touched = (EVENTS, payload().touch(BASE, 64, 1).bytes)
    assert "no allocation (touches of memory" in refused(made(tmp_path, only_touched, WHOLE))


def test_trace_that_goes_back_in_time_is_mended_and_counted(tmp_path: Path) -> None:
    late = (EVENTS, payload().allocate(BASE, 64, ticks=1000).bytes)
    early = (EVENTS, payload().allocate(BASE + MIB, 64, ticks=5).bytes)
    workload = load_workload(made(tmp_path, late, early, WHOLE))

    assert workload.events["time_ns"].tolist() == [1_000_000] * 4
    assert workload.remarks == (
        "times before the time of the event above: 1 (the first is record 2)",
    )


def test_other_files_are_refused_in_a_line(tmp_path: Path) -> None:
    other = tmp_path / "other"
    for data, reason in (
        (b"", "is empty"),
        (b"\0" * 100, "neither a trace of rmm_uvm nor a log of RMM's"),
        (gzip.compress(b"PAR1" * 9), "neither a trace of rmm_uvm nor a log of RMM's"),
        (b"\x1f\x8b\x08", "cannot be read: the compressed file is cut off"),
        (b"\x1f\x8b\x08" + b"\xff" * 99, "cannot be read: the compressed file is damaged"),
        (raw_trace(b"{}", []).replace(b"\x01\x00", b"\x02\x00", 1), "is of version 2"),
        (raw_trace(b"{}", [])[:12], "cut off in its header"),
        (HEADER.encode()[:20], "is not a log of RMM's"),
    ):
        other.write_bytes(data)
        assert reason in refused(other)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path)
    assert "is not a file" in refused(tmp_path / "pipe")
    assert "No such file" in refused(tmp_path / "missing")
    assert "embedded null" in refused(tmp_path / "a\0b")
    assert "the name of a file is needed" in refused(5)  # type: ignore[arg-type]


def test_unpacked_bomb_takes_no_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(HEADER.encode() + b"x" * (64 * MIB)))
    assert bomb.stat().st_size < MIB
    tracemalloc.start()
    try:
        assert "no allocation" in refused(bomb)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 32 * MIB


def test_memory_is_that_of_the_workload_and_not_of_the_file(tmp_path: Path) -> None:
    free = LINE.replace("allocate", "free")
    path = logged(tmp_path, *[LINE, free] * 50_000, "rubbish of some length\n" * 2_000_000)
    tracemalloc.start()
    try:
        workload = load_workload(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert workload.events.nbytes == 200_000 * 32
    assert path.stat().st_size > 40 * MIB
    assert peak_bytes < 25 * MIB
