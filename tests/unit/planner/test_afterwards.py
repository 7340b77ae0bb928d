# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A run that has ended, done again on a model: what is found out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm.planner import afterwards
from rmm_uvm.planner.afterwards import grows_to_the_end, like, with_remedies
from rmm_uvm.planner.workload.events import ALLOCATE, FREE, REPLAY_DTYPE
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.watch.judging.wording import own_remedies

from .workloads import workload

MIB = 1 << 20


def allocated(*sizes: int) -> np.ndarray:
    """Return events: a size is allocated, and freed where it is negative."""
    rows = np.zeros(len(sizes), REPLAY_DTYPE)
    rows["kind"] = [ALLOCATE if size > 0 else FREE for size in sizes]
    rows["nbytes"] = np.abs(sizes)
    return rows


@pytest.mark.parametrize(
    ("sizes", "grows"),
    [
        ([MIB, 8 * MIB, -8 * MIB] * 40, True),  # a little is kept in each round
        ([MIB, 8 * MIB, -8 * MIB] * 40 + [-MIB] * 40, True),  # and freed at the end
        ([8 * MIB, -8 * MIB] * 60, False),
        ([MIB] * 20 + [8 * MIB, -8 * MIB] * 60, False),  # loaded, and then used
        ([MIB] * 20 + [-MIB] * 20 + [MIB, -MIB] * 40, False),  # a peak
        ([MIB, 8 * MIB, -8 * MIB, 4 * MIB, -4 * MIB, -MIB] * 20, False),
        ([MIB] * 5, False),  # too few to tell
    ],
)
def test_what_grows_to_the_end_is_told_from_a_peak(sizes: list[int], grows: bool) -> None:
    peak = int(np.cumsum(sizes).max())
    assert grows_to_the_end(workload(allocated(*sizes), peak_bytes=peak)) is grows


@pytest.mark.parametrize(
    ("gpu", "name", "known"),
    [
        ("NVIDIA H100", "h100-pcie5", True),
        ("NVIDIA A100 80GB PCIe", "a100-pcie4", True),
        ("NVIDIA L4", "l4-pcie4", True),
        ("NVIDIA L40S", "l40s-pcie4", True),
        ("NVIDIA GeForce RTX 3080 Ti", "rtx3080ti-pcie3", True),
        ("NVIDIA H2000", "h200-pcie5", False),
        ("", "h200-pcie5", False),
    ],
)
def test_model_is_that_of_the_gpu(gpu: str, name: str, known: bool) -> None:
    machine, found = like(gpu)
    assert (machine.name, found) == (name, known)


def recorded(folder: Path, device: str = "64MiB") -> Recording:
    """Use three times 24 MiB in rounds."""
    card = rmm_uvm.simulated_device(device)
    with rmm_uvm.reinitialize(driver=card, libraries=(), monitor=False):
        with rmm_uvm.monitor(driver=card, trace=folder / "run.trace", on_finding=None) as m:
            data = [rmm.DeviceBuffer(size=24 * MIB) for _ in range(3)]
            for one in [*data] * 6:
                card.touch(one.ptr, one.size, write=True)
            del data, one
        return m.recording()


def test_run_that_announces_nothing_is_told_to(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    told, why = with_remedies(recording, tmp_path / "run.trace", "auto")
    assert why == ""
    first, *_ = told.findings
    assert first.kind == "replayed"
    assert first.remedy == "announce what kernels use next: rmm_uvm.touch"
    assert first.value > 1.1
    assert "(h200-pcie5)" in first.message


def test_run_that_fits_is_told_that_nothing_saves_time(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "512MiB")
    told, why = with_remedies(recording, tmp_path / "run.trace", "auto")
    assert told.findings == recording.findings
    assert why == "tried on a model: no other way saves time"


def test_long_run_and_one_of_no_device_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(tmp_path)
    monkeypatch.setattr(afterwards, "MOST_EVENTS", 10)
    told, why = with_remedies(recording, tmp_path / "run.trace", "auto")
    assert told is recording
    assert why.startswith("not tried on a model: 24 events are too many (at most 10)")
    nowhere = Recording(samples=recording.samples, devices=())
    assert with_remedies(nowhere, tmp_path / "run.trace", "auto")[1].endswith(
        "no device was watched"
    )


def test_what_others_advise_of_this_package_is_left_out_once_it_was_tried() -> None:
    from rmm_uvm.recording.finding import Finding

    for budgeted in (False, True):
        own = own_remedies(ours=True, budgeted=budgeted)
        finding = Finding("eviction", 0, 1.0, 2.0, 1.0, "much leaves", f"{own}use less")
        assert afterwards._without_own_remedies(finding).remedy == "use less"
