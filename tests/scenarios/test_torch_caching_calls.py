# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of training/caching.py that add to a file: what they measure, and what they leave there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .test_torch_caching import measured
from .torch_caching_calls import BERT, GPT2, Case, caching, call, file, there

WAYS = ["off", "on", "on, ours"]
WHOLE = {0.0: ["native", *WAYS], 1.25: WAYS, 2.0: WAYS}


def failure(way: str, *factors: float) -> dict[str, Any]:
    what = dict(zip(("model", "dtype"), GPT2, strict=True))
    return {**what, "way": way, "factors": list(factors), "failed": "exit status 1"}


def whole_file(path: Path) -> Any:
    """Return a file with one case at three factors."""
    kept = file.Kept(path)
    kept.put_rows(measured(GPT2, 0.0, 1.25, 2.0))
    assert there(path) == WHOLE
    return kept


def commits(path: Path) -> dict[tuple[float, str], str]:
    rows = json.loads(path.read_text())["rows"]
    return {(row["factor"], row["way"]): row["commit"] for row in rows if "failed" not in row}


def test_factor_that_is_added_leaves_the_others_and_says_its_commit(
    here: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    whole_file(path)
    here("NVIDIA H200", commit="3fe253d")
    file.Kept(path).put_rows(measured(GPT2, 3.0))  # and torch's own memory, which is there
    assert there(path) == {**WHOLE, 3.0: WAYS}
    assert {at for at, commit in commits(path).items() if commit == "3fe253d"} == {
        (3.0, way) for way in WAYS
    }
    file.Kept(path).put_rows(measured(GPT2, 0.0, 2.0))  # whole: anew
    assert there(path) == {**WHOLE, 3.0: WAYS}
    old = {at for at, commit in commits(path).items() if commit != "3fe253d"}
    assert old == {(1.25, way) for way in WAYS}


@pytest.mark.usefixtures("here")
def test_call_that_fails_or_is_interrupted_replaces_nothing_that_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    kept = whole_file(path)
    rows = json.loads(path.read_text())["rows"]
    first = [row for row in measured(GPT2, 0.0, 1.25, 2.0) if row["way"] != "off"]
    for found in (
        [failure("on", 0.0, 2.0), failure("off", 0.0, 2.0)],
        [*first, failure("off", 0.0, 1.25, 2.0)],
        first,  # what is saved between the two processes
    ):
        kept.put_rows(found)
        assert json.loads(path.read_text())["rows"] == rows
    # At a factor that is new, what there is, and the failure until that is there.
    half = [row for row in measured(GPT2, 3.0) if row["way"] != "off"]
    for _ in range(2):
        kept.put_rows([*half, failure("off", 3.0)])
        assert there(path) == {**WHOLE, 3.0: ["on", "on, ours"]}
        result = json.loads(path.read_text())
        assert result["verdicts"]["processes that failed"]["value"] == 1
    kept.put_rows(measured(GPT2, 3.0))
    assert there(path) == {**WHOLE, 3.0: WAYS}
    assert json.loads(path.read_text())["verdicts"]["processes that failed"]["reached"]


def test_merge_of_a_failed_or_partial_file_replaces_nothing_that_is_whole(
    here: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, part, failed = (tmp_path / f"{name}.json" for name in ("whole", "part", "failed"))
    whole_file(whole)
    before = json.loads(whole.read_text())
    here("NVIDIA H100", commit="3fe253d")
    file.Kept(failed).put_rows([failure("on", 0.0, 2.0)])
    file.Kept(part).put_rows([row for row in measured(GPT2, 0.0, 2.0) if row["way"] != "off"])
    call(monkeypatch, whole, "--merge", str(part), str(failed))
    assert json.loads(whole.read_text()) == before  # its machine too


def test_missing_factor_is_added_to_those_that_are_there(
    measuring: list[tuple[Case, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "found.json"
    words = ("--models", "gpt2", "--dtypes", "bf16", "--missing", "--factors")
    for factors in ("0,1.25,2", "3"):
        with pytest.raises(SystemExit):
            call(monkeypatch, path, *words, factors)
    assert there(path) == {**WHOLE, 3.0: WAYS}
    assert len(measuring) == 2


def test_call_whose_processes_fail_ends_with_1_also_where_the_file_stays_whole(
    measuring: list[tuple[Case, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "found.json"
    words = ("--models", "gpt2", "--dtypes", "bf16", "--factors", "0,2")
    with pytest.raises(SystemExit) as caught:
        call(monkeypatch, path, *words)
    assert caught.value.code == 0
    before = path.read_bytes()

    def compared(_case: Case, _arguments: Any, save: Callable[[Any], None]) -> int:
        save([failure("on", 0.0, 2.0)])
        return 1

    monkeypatch.setattr(caching, "compared", compared)
    with pytest.raises(SystemExit) as caught:
        call(monkeypatch, path, *words)
    assert caught.value.code == 1
    assert path.read_bytes() == before
    assert len(measuring) == 1


@pytest.mark.parametrize("words", [["--missing"], [], ["--kernels-only"]])
def test_other_batch_than_that_of_the_file_is_refused_and_nothing_is_measured(
    words: list[str],
    measuring: list[tuple[Case, bool]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "found.json"
    models = ("--models", "gpt2,bert", "--dtypes", "bf16", *words)
    with pytest.raises(SystemExit):
        call(monkeypatch, path, "--models", "bert", "--dtypes", "bf16")
    before, begun = path.read_bytes(), len(measuring)
    with pytest.raises(SystemExit, match="has bert bf16 at batch 4, not 8: another batch needs"):
        call(monkeypatch, path, *models, "--batch-fraction", "0.25")
    assert len(measuring) == begun
    if words != ["--kernels-only"]:  # which adds those that it can
        assert path.read_bytes() == before
    other = tmp_path / "other.json"
    with pytest.raises(SystemExit):
        call(monkeypatch, other, *models[:4], "--batch-fraction", "0.25")
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="another batch needs"):
        call(monkeypatch, path, "--merge", str(other))
    assert path.read_bytes() == before


def test_missing_measures_what_lacks_a_factor_and_nothing_else(
    measuring: list[tuple[Case, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--models", "gpt2,bert", "--dtypes", "bf16", "--missing")
    for factors in ("0,2", "0,2", "0,2,3"):
        with pytest.raises(SystemExit):
            call(monkeypatch, tmp_path / "found.json", *words, "--factors", factors)
    # Kernels are recorded once.
    assert measuring == [(GPT2, True), (BERT, True)] * 2
    measuring.clear()
    with pytest.raises(SystemExit):
        call(monkeypatch, tmp_path / "other.json", *words, "--rows-only")
    assert [case for case, _ in measuring] == [GPT2, BERT]
    assert not json.loads((tmp_path / "other.json").read_text())["kernels"]


def test_calls_end_when_their_time_is_over_and_say_what_is_left(
    measuring: list[tuple[Case, bool]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--models", "gpt2,bert,lstm", "--dtypes", "bf16", "--time-limit")
    for limit, left in (("10", "bert bf16, lstm bf16"), ("0", "gpt2 bf16, bert bf16, lstm bf16")):
        clock = iter([0.0, 1.0, 11.0])
        monkeypatch.setattr(
            caching, "time", SimpleNamespace(monotonic=lambda clock=clock: next(clock))
        )
        with pytest.raises(SystemExit):
            call(monkeypatch, tmp_path / "found.json", *words, limit)
        said = capsys.readouterr().out
        assert f"{limit} s are over; left for another call: {left}\n" in said
    assert [case for case, _ in measuring] == [GPT2]
