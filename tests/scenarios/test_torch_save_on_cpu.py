# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of `save_on_cpu` and ours in one cap, with runs that are made up."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from .residency_scripts import script

part = script("training/save_on_cpu")

MIB = 1 << 20
PEAK_BYTES, MOST_BYTES = 3200 * MIB, 4800 * MIB
TOTAL_BYTES = 1 << 37


class MadeUp:
    """Takes the place of `Trainer`: `save_on_cpu` needs some memory, and both take some time."""

    needed_bytes = 3700 * MIB
    more_later_bytes = 0  # that are needed in a seventh step
    seconds: ClassVar[dict[str, float]] = {"theirs": 0.5, "ours": 0.4}
    allowed: ClassVar[list[int]] = [TOTAL_BYTES]
    budgets: ClassVar[list[int]] = []

    def __init__(self, name: str, dtype: str, _fraction: float, _driver: Any) -> None:
        self.name, self.dtype = name, dtype

    def train(self, steps: int, _wrap: Any = None, way: str = "theirs") -> dict[str, Any]:
        needed_bytes = self.needed_bytes + (self.more_later_bytes if steps > 6 else 0)
        if way == "theirs" and self.allowed[0] < needed_bytes:
            raise torch.OutOfMemoryError("no memory")
        each = self.seconds[way]
        return {
            **dict.fromkeys(("seconds", "least_seconds", "host_seconds"), each),
            **{"each_seconds": [each] * steps, "batch": 8, "losses": [1.0] * steps},
            **{"to_device_bytes": 0, "to_host_bytes": 0},
            **{"peak_bytes": PEAK_BYTES, "reserved_bytes": MOST_BYTES},
        }

    def on_managed_memory(self, budget: Any, steps: int, activations: str) -> dict[str, Any]:
        assert activations == "copy"
        assert self.allowed[0] == TOTAL_BYTES
        self.budgets.append(budget.budget_bytes)
        return self.train(steps, way="ours")


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> type[MadeUp]:
    def allow(fraction: float) -> None:
        MadeUp.allowed[0] = round(fraction * TOTAL_BYTES)

    monkeypatch.setattr(MadeUp, "allowed", [TOTAL_BYTES])
    monkeypatch.setattr(MadeUp, "budgets", [])
    monkeypatch.setattr(part, "Trainer", MadeUp)
    monkeypatch.setattr(part, "clean", lambda: None)
    monkeypatch.setattr(part.harness, "environment", dict)
    monkeypatch.setattr(part.harness, "require_managed_limit", lambda _free: 0)
    monkeypatch.setattr(
        part.rmm_uvm, "cuda_driver", lambda _: SimpleNamespace(memory=lambda: (TOTAL_BYTES, 0))
    )
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", allow)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (TOTAL_BYTES, TOTAL_BYTES))
    return MadeUp


def call(path: Path) -> tuple[int, dict[str, Any]]:
    words = ["--json", str(path), "--models", "gpt2", "--dtypes", "bf16"]
    return part.main(words), json.loads(path.read_text())


def test_both_train_in_the_least_memory_that_is_enough(
    made_up: type[MadeUp], tmp_path: Path
) -> None:
    status, result = call(tmp_path / "found.json")
    [case] = result["cases"]
    assert case["cap_bytes"] == 3700 * MIB
    assert max(case["too_little_bytes"]) == 3600 * MIB
    assert made_up.budgets == [(3700 - 64) * MIB] * 3  # with what copies go through
    assert [row["way"] for row in case["rows"]] == [part.UNCAPPED, part.CAPPED, part.OURS] * 3
    assert {row["model"] for row in case["rows"]} == {"gpt2"}
    assert {one["ratio"] for one in result["verdicts"].values()} == {0.8}
    assert status == 0
    assert made_up.allowed == [TOTAL_BYTES]


@pytest.mark.parametrize(
    ("needed", "found", "too_little"), [(3200, 3200, 0), (3201, 3300, 1), (4800, 4800, 4)]
)
def test_cap_is_between_what_tensors_take_and_what_torch_takes(
    made_up: type[MadeUp],
    monkeypatch: pytest.MonkeyPatch,
    needed: int,
    found: int,
    too_little: int,
) -> None:
    monkeypatch.setattr(made_up, "needed_bytes", needed * MIB)
    cap_bytes, less = part.least_cap(MadeUp("gpt2", "bf16", 1, None), PEAK_BYTES, MOST_BYTES)
    assert (cap_bytes, len(less)) == (found * MIB, too_little)
    assert less == sorted(less)


def test_cap_in_which_more_steps_do_not_train_is_raised(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(made_up, "more_later_bytes", 150 * MIB)
    _, result = call(tmp_path / "found.json")
    [case] = result["cases"]
    assert case["cap_bytes"] == 3900 * MIB
    assert case["too_little_bytes"][-2:] == [3700 * MIB, 3800 * MIB]
    assert len(case["rows"]) == 9


def test_slower_than_without_a_cap_is_missed(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(made_up, "seconds", {"theirs": 0.5, "ours": 0.6})
    status, result = call(tmp_path / "found.json")
    assert status == 1
    assert not any(one["reached"] for one in result["verdicts"].values())


def test_other_errors_are_not_taken_for_too_little(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> dict[str, Any]:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(made_up, "train", fail)
    with pytest.raises(RuntimeError, match="no kernel"):
        part.trains_in(MadeUp("gpt2", "bf16", 1, None), PEAK_BYTES)
    assert made_up.allowed == [TOTAL_BYTES]


def test_memory_that_ours_runs_out_of_is_an_error(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: Any) -> dict[str, Any]:
        raise torch.OutOfMemoryError("past RMM_UVM_MANAGED_LIMIT")

    monkeypatch.setattr(made_up, "on_managed_memory", fail)
    with pytest.raises(torch.OutOfMemoryError, match="past RMM_UVM_MANAGED_LIMIT"):
        call(tmp_path / "found.json")


def test_unknown_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        part.main(["--json", str(tmp_path / "found.json"), "--models", "resnet50"])
    assert "no model resnet50: there are gpt2" in capsys.readouterr().err
