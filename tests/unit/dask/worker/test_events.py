# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Findings as Dask events: whole at the other end, or not taken for findings."""

from __future__ import annotations

import re
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm import errors
from rmm_uvm.dask.worker.findings import FindingEvent
from rmm_uvm.recording.finding import WARNING_OF, Finding

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "use" / "watching-a-cluster.md"


@pytest.mark.parametrize("kind", WARNING_OF)
def test_finding_arrives_with_its_class_and_figures(kind: str) -> None:
    finding = Finding(kind, 1, 3.0, 2, 1, "pages leave", "use fewer")
    sent = FindingEvent.of_finding(finding, "NVIDIA H200", "tcp://10.0.0.1:5").to_dict()
    event = FindingEvent.from_dict(msgpack.loads(msgpack.dumps(sent)))

    assert event is not None
    assert event.warning is WARNING_OF[kind]
    assert event.text == "pages leave; use fewer"
    assert (event.value, event.threshold, event.device_id) == (2.0, 1.0, 1)
    assert event.worker == "tcp://10.0.0.1:5"


def test_document_names_every_field_of_an_event() -> None:
    text = DOCUMENT.read_text().partition("Fields: ")[2].partition("\n\n")[0]
    sent = FindingEvent.of_transfers("waiting", "transfers wait", "tcp://10.0.0.1:5").to_dict()
    assert set(re.findall(r"`(\w+)`", text)) == set(sent)


def test_sources_that_fail_are_told_apart_and_evictions_are_not() -> None:
    def about(kind: str, message: str) -> str:
        return FindingEvent.of_finding(Finding(kind, 0, 1.0, 2.0, 1.0, message, ""), "", "").about

    assert about("monitor", "no counters") != about("monitor", "no NVML")
    assert about("eviction", "1 GB/s leave") == about("eviction", "2 GB/s leave")


def test_notice_of_transfers_arrives_as_a_warning_of_the_ipc_pool() -> None:
    sent = FindingEvent.of_transfers("waiting", "transfers waited", "tcp://10.0.0.1:5").to_dict()
    event = FindingEvent.from_dict(sent)

    assert event is not None
    assert event.warning is errors.IpcPoolWarning
    assert (event.kind, event.about, event.text) == ("ipc_pool", "waiting", "transfers waited")


@pytest.mark.parametrize(
    "category", ["WarningOfALaterVersion", "UvmError", "__name__", "annotations"]
)
def test_class_that_is_not_known_becomes_the_root_of_all_findings(category: str) -> None:
    assert FindingEvent("new", category, "something").warning is errors.FindingWarning


@given(
    st.dictionaries(
        st.sampled_from(["kind", "category", "message", "about", "value", "worker", "device_id"]),
        st.none() | st.text() | st.integers() | st.floats() | st.lists(st.text()),
    )
)
def test_message_of_any_shape_is_an_event_or_none(sent: dict[str, object]) -> None:
    event = FindingEvent.from_dict({"action": "finding", **sent})

    needed = [sent.get(name) for name in ("kind", "category", "message")]
    assert (event is not None) == all(isinstance(text, str) for text in needed)
    if event is not None:
        assert isinstance(event.text, str)
        assert isinstance(event.worker, str)
        assert issubclass(event.warning, errors.FindingWarning)


@pytest.mark.parametrize(
    "message", [None, "text", {}, {"action": "begin"}, [("action", "finding")]]
)
def test_message_that_is_no_finding_is_none(message: object) -> None:
    assert FindingEvent.from_dict(message) is None
