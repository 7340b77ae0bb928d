# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a worker survive the journey; what came from elsewhere is taken as far as it goes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.worker.figures import NAME, NO_PRELOAD, WorkerFigures

FULL = WorkerFigures(
    reason="",
    device_id=0,
    device_name="NVIDIA H200",
    simulated=False,
    devices_total=1,
    footprint_bytes=200,
    resident_bytes=100,
    capacity_bytes=100,
    device_used_bytes=90,
    resident_exact=False,
    oversubscription_factor=2.0,
    host_to_device_bytes=7,
    device_to_host_bytes=6,
    evicted_bytes_estimate=5,
    host_to_device_bytes_per_second=1.5,
    device_to_host_bytes_per_second=0.0,
    evicted_bytes_estimate_per_second=0.5,
    findings_total=1,
    finding="device 0: pages leave; use fewer",
    finding_kind="eviction",
    ipc_pool_bytes=1 << 28,
    comm={"sent_staged_bytes": 3, "chunk_wait_seconds": 0.5},
    missing={"kernel_counters": "no /dev/nvidia-uvm-tools"},
    others=(WorkerFigures(device_id=1, footprint_bytes=3), WorkerFigures(device_id=2)),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def received(sent: dict[str, Any]) -> WorkerFigures:
    """Return what arrives of what is sent as Dask sends it."""
    return WorkerFigures.from_metrics(msgpack.loads(msgpack.dumps({NAME: sent})))


def test_figures_that_are_sent_arrive_whole() -> None:
    assert received(FULL.to_dict()) == FULL
    assert json.loads(json.dumps(FULL.to_dict())) == FULL.to_dict()


def test_figures_that_are_unknown_arrive_as_unknown() -> None:
    assert received(WorkerFigures().to_dict()) == WorkerFigures()
    assert WorkerFigures().to_dict()["footprint_bytes"] is None


def test_worker_that_sends_nothing_of_ours_has_a_reason() -> None:
    assert "preload rmm_uvm.dask" in NO_PRELOAD  # what is missing may be no more than that
    assert WorkerFigures.from_metrics({"memory": 5}).reason == NO_PRELOAD
    assert WorkerFigures.from_metrics({NAME: "text"}).reason == NO_PRELOAD


def test_fields_of_another_version_are_passed_over() -> None:
    sent = {**FULL.to_dict(), "temperature": 80}
    del sent["ipc_pool_bytes"]

    assert received(sent) == dataclasses.replace(FULL, ipc_pool_bytes=None)


@pytest.mark.parametrize(
    ("name", "value"), [("comm", {"sent_staged_bytes": "three"}), ("missing", {"counters": 3})]
)
def test_mapping_with_values_of_another_type_is_passed_over(name: str, value: Any) -> None:
    empty = getattr(WorkerFigures(), name)
    assert received({**FULL.to_dict(), name: value}) == dataclasses.replace(FULL, **{name: empty})


@given(st.dictionaries(st.sampled_from([f.name for f in dataclasses.fields(FULL)]), anything))
def test_values_of_any_type_are_read_without_an_error(sent: dict[str, Any]) -> None:
    figures = WorkerFigures.from_metrics({NAME: sent})

    for field in dataclasses.fields(WorkerFigures):
        value = getattr(figures, field.name)
        if field.type == "str":
            assert isinstance(value, str)
        elif field.name == "others":
            assert all(isinstance(each, WorkerFigures) for each in value)
        elif str(field.type).startswith("Mapping"):
            assert all(isinstance(key, str) for key in value)
        else:
            assert value is None or isinstance(value, bool | int | float)
            assert isinstance(value, bool) <= (field.type == "bool | None")
