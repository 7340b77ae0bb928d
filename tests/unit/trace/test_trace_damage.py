# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces that are cut off, damaged or made up: what is whole is read, and the rest is said."""

from __future__ import annotations

import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import DataError
from rmm_uvm.trace import iter_events, read

from .conftest import CONTEXT, END, chunk, header, number

Make = Callable[..., Path]


def attempt(path: Path) -> str:
    """Read as much as there is; nothing but a DataError may come of it. Return what is wrong."""
    try:
        trace = read(path)
    except DataError as error:
        return str(error)
    trace.recording()
    return trace.damaged or ("truncated" if trace.truncated else "")


def test_trace_cut_off_anywhere_keeps_what_is_whole(small: Path, tmp_path: Path) -> None:
    whole, data = read(small), small.read_bytes()
    cut = tmp_path / "cut.uvmtrace"
    header_bytes = 20 + int.from_bytes(data[12:16], "little")
    seen = set()
    for length in range(len(data)):
        cut.write_bytes(data[:length])
        if length < header_bytes:
            with pytest.raises(DataError, match=r"empty|cut off|not a trace"):
                read(cut)
            continue
        part = read(cut)
        assert part.truncated
        assert not part.damaged
        assert part.events.tolist() == whole.events[: len(part.events)].tolist()
        seen.add(len(part.events))
    assert seen == {0, 2, 4, 5}
    assert not whole.truncated


def test_trace_with_any_bit_turned_is_noticed(small: Path, tmp_path: Path) -> None:
    whole, data = read(small), small.read_bytes()
    turned = tmp_path / "turned.uvmtrace"
    for place in range(len(data)):
        for bit in (0, 7):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            turned.write_bytes(changed)
            said = attempt(turned)
            assert "\n" not in said
            # Nobody reads the reserved bytes, and an unknown kind has a wrong checksum.
            assert said or place in (10, 11), place
    assert not whole.damaged


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_give_a_data_error_or_a_reason(data: bytes, with_header: bool) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write((header() if with_header else b"") + data)
        file.flush()
        assert attempt(Path(file.name))


@given(st.binary(max_size=300), st.sampled_from([1, 2]))
def test_random_payload_never_breaks_the_reader(payload: bytes, kind: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(header() + chunk(kind, CONTEXT + payload) + END)
        file.flush()
        attempt(Path(file.name))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (number(0) + b"\1\1", "a record comes before its context"),
        (number(6) + number(3), "a context was never described"),
        (CONTEXT + b"\xff" * 20, "a record is cut off"),
        (CONTEXT + number((1 << 54) << 3), "a time is past all bounds"),
        (CONTEXT + number(3) + number(1), "an allocation does not exist"),
        (CONTEXT + number(2) + number(0), "an allocation does not exist"),
        (CONTEXT + number(5) + number(9) + b"\1\1", "a touch of no kind"),
        (CONTEXT + number(7) + number(4), "a mark of no kind"),
        (CONTEXT + number(7) + number(2) + number(1), "a name was never spelt"),
        (CONTEXT + number(7) + number(2) + number(0) + number(1 << 40), "a name is too long"),
        (CONTEXT + number(7) + number(2) + number(0) + number(9) + b"x", "a record is cut off"),
        (number(6) + number(0) + number(1 << 40) + b"\0\0", "a device or thread has"),
        (CONTEXT + number(0), "a record is cut off"),
    ],
)
def test_record_that_makes_no_sense_is_said(made: Make, payload: bytes, reason: str) -> None:
    good = chunk(1, CONTEXT + number(0) + number(2) + number(16))
    path = made(header(), good, chunk(1, payload), END)

    trace = read(path)

    assert reason in trace.damaged
    assert len(trace.events) == 1
    batches = iter_events(path)
    assert len(next(batches)) == 1
    with pytest.raises(DataError, match="damaged"):
        list(batches)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (number(1 << 60), "a record is cut off"),
        (number(1) + b"\0" + number(1 << 15), "a sample of no kind"),
        (number(1) + b"\0\0\0", "bytes follow the last sample"),
    ],
)
def test_samples_that_make_no_sense_are_said(made: Make, payload: bytes, reason: str) -> None:
    assert reason in read(made(header(), chunk(2, payload), END)).damaged


def test_bombs_take_no_memory(made: Make) -> None:
    names = CONTEXT + number(7) + b"\2\0" + number(1024) + b"n" * 1024 + b"\7\2\0" * 100_000
    bombs = [
        chunk(1, b"", length=(1 << 32) - 1),
        chunk(2, number((1 << 64) - 1)),
        chunk(1, CONTEXT + number(7) + b"\2\0" + number((1 << 64) - 1)),
        chunk(1, names),
    ]
    for bomb in bombs:
        path = made(header(), bomb, END)
        tracemalloc.start()
        attempt(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 64 << 20


def test_deep_or_strange_header_is_a_data_error(made: Make) -> None:
    for facts in (b"[" * 100_000, b"[]", b"\xff", b'{"a": ' + b"9" * 5000 + b"}", b""):
        with pytest.raises(DataError, match="not a JSON object"):
            read(made(header(facts), END))


def test_hostile_facts_still_make_a_recording(made: Make) -> None:
    facts = (
        b'{"devices": [1, {"device_id": "x"}, {"device_id": 0, "total_bytes": -1, "chain": 7}],'
        b' "sources": [1], "settings": {"a": [1]}, "interval_seconds": 1e999, "began": null}'
    )
    recording = read(made(header(facts), END)).recording()

    assert [device.total_bytes for device in recording.devices] == [0]
    assert recording.interval_seconds == 0
    assert recording.settings == {"a": "[1]"}


def test_bytes_after_the_end_are_said(made: Make) -> None:
    assert "bytes follow the end" in read(made(header(), END, b"x")).damaged


def test_unknown_chunk_is_passed_over(made: Make) -> None:
    good = chunk(1, CONTEXT + number(0) + number(2) + number(16))
    trace = read(made(header(), chunk(77, b"later version"), good, END))
    assert (len(trace.events), trace.damaged) == (1, "")


def test_more_events_than_wanted_are_said(small: Path) -> None:
    whole = read(small)
    for most in (0, 3, len(whole.events) - 1):
        cut = read(small, most_events=most)
        assert f"more than {most} events" in cut.damaged
        assert cut.events.tolist() == whole.events[:most].tolist()
    assert read(small, most_events=len(whole.events)).damaged == ""


def test_events_of_several_chunks_end_where_they_are_enough(made: Make) -> None:
    one = chunk(1, CONTEXT + number(0) + number(2) + number(16))
    trace = made(header(), one, one, one, END)
    assert [len(read(trace, most_events=most).events) for most in range(5)] == [0, 1, 2, 3, 3]


def test_wrong_version_says_what_to_do(made: Make) -> None:
    with pytest.raises(DataError, match=r"version 9, .* reads version 1: use the release"):
        read(made(header(version=9)))


def test_other_files_are_no_traces(made: Make, tmp_path: Path) -> None:
    for data, reason in ((b"", "is empty"), (b"Thread,Time", "is not a trace of rmm_uvm")):
        with pytest.raises(DataError, match=reason):
            read(made(data))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(DataError, match="is not a file"):
            read(path)


def test_missing_or_forbidden_file_is_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"cannot be read: No such file or directory"):
        read(tmp_path / "missing")
    with pytest.raises(DataError, match=r"cannot be read: .*embedded null"):
        read("a\0b")

    def refuse(*_: object) -> int:  # root may read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        list(iter_events(tmp_path / "forbidden"))
