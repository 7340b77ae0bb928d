# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The result file of training/caching.py: what adds to it, and what each part is of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import committed
from .test_torch_caching import a_kernel, measured
from .torch_caching_calls import (
    BERT,
    GPT2,
    LSTM,
    caching,
    call,
    file,
    machine_of,
    put,
    verdicts,
)


def test_kernels_recorded_without_a_gpu_leave_what_the_file_says_of_the_gpu(
    here: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "found.json"
    before = put(path, GPT2)
    assert before["environment"]["device"] == "NVIDIA H200"
    here("simulated device", commit="3fe253d")
    monkeypatch.setattr(caching, "kernels_of", lambda name, dtype, batch: a_kernel(name, dtype))
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    call(monkeypatch, path, "--kernels-only", "--models", "gpt2,bert", "--dtypes", "bf16")
    after = json.loads(path.read_text())
    assert after["environment"] == before["environment"]
    assert after["kernels_environment"]["commit"] == "3fe253d"
    assert [(one["model"], one["dtype"]) for one in after["kernels"]] == [GPT2, BERT]
    assert after["rows"] == before["rows"]
    # Rows change it.
    assert put(path, BERT)["environment"]["device"] == "simulated device"


def test_file_without_rows_is_of_the_machine_that_recorded(
    here: Callable[..., None], tmp_path: Path
) -> None:
    here("simulated device")
    found = put(tmp_path / "found.json", GPT2, kernels=True)
    assert found["environment"]["device"] == "simulated device"
    here("NVIDIA H200")
    found = put(tmp_path / "found.json", GPT2)
    assert found["environment"]["device"] == "NVIDIA H200"
    assert not any("device" in row for row in found["rows"])


@pytest.mark.parametrize("name", ["device", "kernel_driver", "torch", "date"])
def test_rows_of_another_machine_than_the_last_calls_say_in_what(
    name: str, here: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    for case, value in ((GPT2, "one"), (BERT, "one"), (LSTM, "another")):
        here(**{"device": "NVIDIA H200", name: value})
        result = put(path, case)
    environment = result["environment"]
    assert {**environment, **environment["versions"]}[name] == "another"
    for row in result["rows"]:
        told = {label: row[label] for label in file.LABELS if label in row}
        assert told == ({} if verdicts.case_of(row) == LSTM else {name: "one"})
    # Merged, it is the same.
    other = tmp_path / "other.json"
    here(**{"device": "NVIDIA H200", name: "a third"})
    put(other, GPT2)
    kept = file.Kept(path)
    kept.merge([other])
    found = {verdicts.case_of(row): row.get(name) for row in kept.rows}
    assert found == {GPT2: None, BERT: "one", LSTM: "another"}


def test_kernels_that_another_torch_recorded_say_so(
    here: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    for case, torch in ((GPT2, "2.11.0"), (BERT, "2.13.0"), (LSTM, "2.13.0")):
        here("simulated device", torch)
        result = put(path, case, kernels=True)
    told = {verdicts.case_of(one): one.get("torch") for one in result["kernels"]}
    assert told == {GPT2: "2.11.0", BERT: None, LSTM: None}
    assert put(path, GPT2, kernels=True)["kernels"][0] == a_kernel(*GPT2)  # anew, in its place


def test_merged_files_are_as_if_measured_one_after_the_other(
    here: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, part, other = (tmp_path / f"{name}.json" for name in ("whole", "part", "other"))
    put(whole, GPT2, LSTM)
    put(whole, GPT2, kernels=True)
    here("NVIDIA H100", commit="3fe253d")
    put(part, GPT2)
    kept = file.Kept(part)
    kept.put_kernels({**a_kernel(*GPT2), "kernels": 1})
    kept.put_kernels(a_kernel(*BERT))
    put(other, BERT)
    call(monkeypatch, whole, "--merge", str(part), str(other))
    result = json.loads(whole.read_text())
    cases = {case: 0 for case in (LSTM, GPT2, BERT)}
    for row in result["rows"]:
        cases[verdicts.case_of(row)] += 1
    assert cases == dict.fromkeys(cases, 7)
    assert result["environment"] == machine_of("NVIDIA H100", commit="3fe253d")
    told = {verdicts.case_of(row): (row["commit"], row.get("device")) for row in result["rows"]}
    new = ("3fe253d", None)
    assert told == {LSTM: ("c3c3e55", "NVIDIA H200"), GPT2: new, BERT: new}
    assert result["kernels"] == [a_kernel(*GPT2), a_kernel(*BERT)]
    assert result["verdicts"] == verdicts.verdicts_of(result["rows"])
    assert result["verdicts"]["cases that were compared"]["value"] == 3


def test_copies_of_a_file_add_what_each_measured_and_replace_nothing_by_older_copies(
    here: Callable[..., None], tmp_path: Path
) -> None:
    whole, one, other = (tmp_path / f"{name}.json" for name in ("whole", "one", "other"))
    old = put(whole, GPT2, BERT, LSTM)
    here("NVIDIA H100", commit="3fe253d")
    for path, case in ((one, GPT2), (other, BERT)):
        path.write_text(json.dumps(old))
        file.Kept(path).put_rows([{**row, "seconds": 2.0} for row in measured(case, 0.0, 2.0)])
    kept = file.Kept(whole)
    kept.merge([one, other])
    found = {verdicts.case_of(row): (row["seconds"], row.get("device")) for row in kept.rows}
    (was,) = {row["seconds"] for row in old["rows"]}
    assert was != 2.0
    assert found == {GPT2: (2.0, None), BERT: (2.0, None), LSTM: (was, "NVIDIA H200")}


@pytest.mark.parametrize("words", [["--merge"], ["--write"]])
def test_file_that_is_not_there_is_an_error_and_nothing_is_written(
    words: list[str],
    here: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here("NVIDIA H200")
    path, absent = tmp_path / "found.json", tmp_path / "absent.json"
    document = tmp_path / "training.md"
    monkeypatch.setattr(caching, "DOCUMENT", document)
    put(path, GPT2)
    before = path.read_bytes()
    where = absent if words == ["--write"] else path
    more = [str(path), str(absent)] if words == ["--merge"] else []
    with pytest.raises(SystemExit) as caught:
        call(monkeypatch, where, *words, *more)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: no file {absent}\n")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_merge_of_files_without_rows_asks_for_no_device(
    here: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("simulated device")
    other = put(tmp_path / "other.json", GPT2, kernels=True)

    def no_device() -> None:
        raise AssertionError("a device was asked for")

    monkeypatch.setattr(file.harness, "environment", no_device)
    call(monkeypatch, tmp_path / "found.json", "--merge", str(tmp_path / "other.json"))
    assert json.loads((tmp_path / "found.json").read_text()) == other


def a_whole_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as long as one of a large model, with all that a child tells."""
    longest: dict[str, Any] = max(
        (one for one in committed("torch_caching")["rows"] if one["way"] == row["way"]),
        key=lambda one: len(json.dumps(one)),
    )
    whole = {**longest, **row, "seconds": 1.234567890123, "peak_bytes": 12345678901}
    whole |= {"to_device_bytes": 12345678901.0, "to_host_bytes": 12345678901.0}
    whole["each_seconds"] = [1.23456789012345] * len(longest["each_seconds"])
    if "residency" in longest:
        whole["residency"] = dict.fromkeys(
            (*longest["residency"], "dropped_bytes", "fetched_bytes", "faulted_bytes"), 12345678901
        )
    return whole


def test_file_of_all_models_and_factors_is_small(
    here: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "found.json"
    kept = file.Kept(path)
    write, writes = kept._write, []
    monkeypatch.setattr(kept, "_write", lambda: writes.append(None))  # once is enough
    here("NVIDIA H100 80GB HBM3", "2.13.0+cu130")
    for case in verdicts.CASES:
        if case == verdicts.CASES[-1]:  # the others are then of another machine, and say so
            here("NVIDIA H200", kernel_driver="570.172.08", date="2026-11-24")
        kept.put_kernels(a_kernel(*case))
        kept.put_rows([a_whole_row(row) for row in measured(case, *verdicts.FACTORS)])
    write()
    result = json.loads(path.read_text())
    assert len(writes) == 44
    assert len(result["rows"]) == 22 * 16
    assert not verdicts.not_measured(result["rows"])
    assert sum(set(file.LABELS) <= row.keys() for row in result["rows"]) == 21 * 16
    assert path.stat().st_size < 300_000
    first = next(row for row in result["rows"] if row["way"] == "on, ours")
    assert first["each_seconds"] == [1.23] * 6
    assert first["seconds"] == 1.234568
    assert "segments" not in first
    assert "dropped_bytes" in first["residency"]
    unknown = file.trimmed({"gpu_faults": None, "faults_unknown": "no leave"})
    assert unknown == {"gpu_faults": None, "faults_unknown": "no leave"}
