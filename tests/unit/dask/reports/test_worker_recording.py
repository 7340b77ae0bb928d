# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker sends of its recording: read without believing any of it."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import rmm_uvm
from rmm_uvm.dask.reports.worker_recording import packed, unpacked
from rmm_uvm.errors import DataError


@pytest.fixture(scope="module")
def recording() -> object:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as watched:
        with rmm_uvm.stage("etl"):
            watched.snapshot()
        return watched.recording()


def test_recording_that_travels_is_as_it_was(recording: object) -> None:
    back = unpacked(packed({"comm": {"messages": 2.0}, "samples_total": 7}, recording))  # type: ignore[arg-type]
    assert (back["comm"], back["samples_total"]) == ({"messages": 2.0}, 7)
    assert repr(back["recording"]) == repr(recording)


def test_reason_without_a_recording_travels() -> None:
    assert unpacked(packed({"reason": "no monitor"}, None)) == {"reason": "no monitor"}


class Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("code of a worker ran in the client",)


def claiming(count: int) -> bytes:
    """Return a .npy file that says it holds so many numbers, and holds none."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<u8", "fortran_order": False, "shape": (count,)}
    )
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"")
    return file.getvalue()


def with_samples(raw: bytes) -> bytes:
    return struct.pack("<Q", 17) + b'{"recording": {}}' + raw


@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(Harm()),
        struct.pack("<Q", 2) + b"{}"[:1],
        struct.pack("<Q", 8) + json.dumps({"a": 1}).encode(),
        with_samples(b""),
        with_samples(pickle.dumps(Harm())),
        with_samples(claiming(1 << 28)),
        with_samples(claiming(1 << 40)),
        with_samples(zipped()),
        with_samples(b"PK\x03\x04"),
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        struct.pack("<Q", 100_017) + b'{"recording": ' + b"[" * 100_000,
        b"",
    ],
    ids=[
        *("a pickle", "cut off", "an unknown field", "no samples", "a pickle in it"),
        *("claims 2 GiB", "claims 8 TiB", "an archive", "no archive", "deep", "deep within"),
        "nothing",
    ],
)
def test_answer_that_is_none_is_refused_and_runs_nothing(answer: bytes) -> None:
    with pytest.raises(DataError, match="no recording of a worker"):
        unpacked(answer)


@pytest.mark.parametrize("count", [1 << 28, 1 << 40])
def test_samples_that_claim_more_than_is_there_use_no_memory(recording: object, count: int) -> None:
    whole = packed({}, recording)  # type: ignore[arg-type]
    (length,) = struct.unpack_from("<Q", whole)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="bytes of samples, of 120 each: cut off"):
            unpacked(whole[: 8 + length] + claiming(count))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_samples_of_another_layout_are_refused(recording: object) -> None:
    whole = packed({}, recording)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="another layout"):
        unpacked(whole.replace(b"own_to_host_bytes", b"was_to_host_bytes"))
