# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker sends of its recording: read without believing any of it."""

from __future__ import annotations

import json
import pickle
import struct

import pytest

import rmm_uvm
from rmm_uvm.dask.worker_recording import packed, unpacked
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


@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(Harm()),
        struct.pack("<Q", 2) + b"{}"[:1],
        struct.pack("<Q", 8) + json.dumps({"a": 1}).encode(),
        struct.pack("<Q", 17) + b'{"recording": {}}',
        struct.pack("<Q", 17) + b'{"recording": {}}' + pickle.dumps(Harm()),
        b"",
    ],
    ids=["a pickle", "cut off", "an unknown field", "no samples", "a pickle in it", "nothing"],
)
def test_answer_that_is_none_is_refused_and_runs_nothing(answer: bytes) -> None:
    with pytest.raises(DataError, match="no recording of a worker"):
        unpacked(answer)
