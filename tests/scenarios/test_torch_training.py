# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The training benchmark on rows that are made up: verdicts, document, and calls that go wrong."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from .residency_scripts import script

training = script("training/past_the_edge")
runs = script("training/training_runs")
verdicts = script("training/training_verdicts")
document = script("training/training_document")

PEAK_BYTES = 1 << 30


def rows(ours_seconds: float = 0.3, managed_seconds: float = 0.1) -> list[dict[str, Any]]:
    """Return rows of one transformer: 0.1 s to compute, 0.25 s on the link, faults 1.2 s."""
    seconds = {
        (0.0, "native"): 0.1,
        (0.0, "managed"): managed_seconds,
        (0.0, "save_on_cpu"): 0.5,
        (2.5, "lazy, memory of save_on_cpu"): 1.5 * ours_seconds,
        (1.25, "fault-driven"): 1.2,
        (1.25, "lazy"): 2 * ours_seconds,
        (1.25, "eager"): ours_seconds,
    }
    return [
        {
            "model": "gpt2",
            "dtype": "bf16",
            "factor": factor,
            "way": way,
            "seconds": value,
            "least_seconds": 0.9 * value,
            "batch": 2,
            "peak_bytes": PEAK_BYTES,
            "compute_seconds": 0.1,
            "link_seconds": 0.25 if factor else 0.0,
        }
        for (factor, way), value in seconds.items()
    ]


def losses(**changed: Any) -> dict[str, Any]:
    """Return what the comparison of losses finds of one model, equal to the bit."""
    return {
        **{"model": "unet3d", "dtype": "fp32", "batch": 1, "factor": 1.5, "steps": 50},
        **{"deterministic": True, "operators": [], "evicted_bytes": 1, "last_loss": 0.5},
        **{"equal_steps": 50, "equal_steps_of_two_that_fit": 50},
        **changed,
    }


class MadeUp:
    """Takes the place of `Trainer`: its runs are made up, and may fail.

    Attributes
    ----------
    failing, past : dict
        Errors by model: of every run, or of those on little managed memory.
    """

    failing: ClassVar[dict[str, Exception]] = {}
    past: ClassVar[dict[str, Exception]] = {}

    def __init__(self, name: str, dtype: str, batch_fraction: float, driver: Any) -> None:
        self.name, self.dtype, self.batch = name, dtype, round(8 * batch_fraction)

    def train(self, steps: int, wrap: Any = None) -> dict[str, Any]:
        if self.name in self.failing:
            raise self.failing[self.name]
        return {
            **{"seconds": 0.1234567, "least_seconds": 0.1234567, "host_seconds": 0.1},
            **{"batch": self.batch},
            **{
                "each_seconds": [0.1234567] * steps,
                "losses": [1.0 / (n + 1) for n in range(steps)],
            },
            **{"to_device_bytes": 12345678901.0, "to_host_bytes": 12345678901.0},
            **{"peak_bytes": PEAK_BYTES, "reserved_bytes": PEAK_BYTES},
        }

    def on_managed_memory(
        self, budget: Any, steps: int, activations: str = "migrate"
    ) -> dict[str, Any]:
        if self.name in self.past and budget.budget_bytes < PEAK_BYTES / 1.6:
            raise self.past[self.name]
        residency = {name: 12345678901 for name in runs._RESIDENCY} | {"policy": "repeat"}
        copies = {"copied_bytes": 12345678901} if activations == "copy" else None
        return {
            **self.train(steps),
            **{"residency": residency, "segments": {"refused": 0}, "activations": copies},
        }


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> type[MadeUp]:
    monkeypatch.setattr(training, "Trainer", MadeUp)
    monkeypatch.setattr(training, "duplex_rate", lambda _driver: 1e10)
    monkeypatch.setattr(training.harness, "environment", dict)
    monkeypatch.setattr(training, "clean", lambda: None)  # of hundreds of runs nothing is left
    monkeypatch.setattr(MadeUp, "failing", {})
    monkeypatch.setattr(MadeUp, "past", {})
    return MadeUp


def call(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the benchmark; return its exit status and the file."""
    arguments = training.parsed(["--json", str(path), *words])
    status = training.run_all(arguments, driver=None)
    return status, json.loads(path.read_text())


def test_verdicts_take_the_better_of_ours_and_the_larger_of_the_bounds() -> None:
    found = verdicts.verdicts_of(rows())
    assert all(verdict["reached"] for verdict in found.values())
    assert found["gpt2 bf16 at 1.25x: time / bound"]["ratio"] == pytest.approx(1.2)
    assert found["gpt2 bf16: ours / save_on_cpu in its memory"]["ratio"] == pytest.approx(0.9)
    assert found["1.25x: fault-driven / ours, geometric mean"]["value"] == pytest.approx(4.0)
    assert len(found) == 4  # of the factors that ran


def test_copies_are_ours_where_they_are_the_best() -> None:
    more = [{**row, "way": "copy", "seconds": 0.2} for row in rows() if row["way"] == "eager"]
    found = verdicts.verdicts_of([*rows(), *more])
    assert found["gpt2 bf16 at 1.25x: time / bound"]["ratio"] == pytest.approx(0.8)
    slower = [{**row, "seconds": 0.4} for row in more]
    found = verdicts.verdicts_of([*rows(), *slower])
    assert found["gpt2 bf16 at 1.25x: time / bound"]["ratio"] == pytest.approx(1.2)


def test_document_compares_copies_with_lazy_where_both_are_there() -> None:
    more = [{**row, "way": "copy"} for row in rows() if row["way"] == "eager"]
    other = [{**row, "model": "bert"} for row in rows() if row["way"] == "lazy"]
    slower = [{**row, "way": "copy", "seconds": 1.2} for row in other]
    part = document.computed_part({"rows": [*rows(), *more, *other, *slower], "losses": []})
    assert "| 1.25 | 1 of 2 | 1.00 | 0.50 (gpt2 bf16) | 2.00 (bert bf16) |" in part
    alone = document.computed_part({"rows": [*rows(), *more, *other], "losses": []})
    assert "| 1.25 | 1 of 1 | 0.50 | 0.50 (gpt2 bf16) | 0.50 (gpt2 bf16) |" in alone
    assert "Copy over lazy" not in document.computed_part({"rows": rows(), "losses": []})


def test_verdicts_say_what_is_missed() -> None:
    found = verdicts.verdicts_of(rows(ours_seconds=0.7, managed_seconds=0.11))
    assert not any(verdict["reached"] for verdict in found.values())


def test_what_fits_is_judged_at_the_full_batch_where_that_was_measured(
    made_up: type[MadeUp], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    words = ("--models", "gpt2", "--dtypes", "bf16", "--fits")
    status, result = call(path, *words)
    assert status == 0
    assert result["rows"] == []
    assert [(row["way"], row["batch"]) for row in result["fits"]] == [("native", 8), ("managed", 8)]
    call(path, *words, "--missing")  # it is there
    assert json.loads(path.read_text()) == result
    slow = {**result["fits"][1], "least_seconds": 0.5}
    name = "gpt2 bf16: everything fits, managed / native"
    for small, full, reached in ((rows(), result["fits"], True), (rows(), [slow], True)):
        assert verdicts.verdicts_of(small, full)[name]["reached"] is reached
    late = [result["fits"][0], slow]
    assert not verdicts.verdicts_of(rows(), late)[name]["reached"]
    late_at_small = rows(managed_seconds=0.11)
    assert not verdicts.verdicts_of(late_at_small)[name]["reached"]
    assert verdicts.verdicts_of(late_at_small, result["fits"])[name]["reached"]
    part = document.computed_part({"rows": rows(), "fits": late, "losses": []})
    assert "| gpt2 | bf16 | 8 | 1.00 | 123.5 | 500.0 | 4.05 |" in part
    assert "Everything fits, at the full batch" not in document.computed_part(
        {"rows": rows(), "losses": []}
    )
    with pytest.raises(SystemExit):
        training.parsed(["--json", str(path), "--fits", "--losses-steps", "4"])


def test_verdicts_of_a_model_that_failed_half_way_are_of_what_is_there() -> None:
    there = [row for row in rows() if row["way"] not in ("eager", "managed")]
    found = verdicts.verdicts_of(there)
    assert found["gpt2 bf16 at 1.25x: time / bound"]["ratio"] == pytest.approx(2.4)
    assert not any("everything fits" in name for name in found)
    assert verdicts.verdicts_of([row for row in there if row["way"] == "fault-driven"]) == {}


def test_losses_that_differ_are_missed_where_kernels_are_deterministic() -> None:
    [reached] = verdicts.verdicts_of_losses([losses()]).values()
    [missed] = verdicts.verdicts_of_losses(
        [losses(equal_steps=49, equal_steps_of_two_that_fit=49)]
    ).values()
    assert (reached["reached"], missed["reached"]) == (True, False)
    for name in ("evicted_bytes", "copied_bytes"):  # nothing moved
        [missed] = verdicts.verdicts_of_losses([losses(**{name: 0})]).values()
        assert not missed["reached"]


def test_rows_of_another_card_than_the_last_calls_say_so(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    for model, device in (("gpt2", "one"), ("bert", "one"), ("lstm", "another")):
        monkeypatch.setattr(
            training.harness, "environment", lambda device=device: {"device": device}
        )
        call(path, "--losses-steps", "4", "--models", model, "--dtypes", "fp32")
    result = json.loads(path.read_text())
    assert result["environment"] == {"device": "another"}
    told = {row["model"]: row.get("device") for row in result["losses"]}
    assert told == {"gpt2": "one", "bert": "one", "lstm": None}


def test_losses_are_those_of_the_way_of_ours_that_differs_first(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = MadeUp.on_managed_memory

    def differs(
        self: MadeUp, budget: Any, steps: int, activations: str = "migrate"
    ) -> dict[str, Any]:
        run = there(self, budget, steps, activations)
        return run if activations == "migrate" else {**run, "losses": [1.0, *run["losses"][:-1]]}

    monkeypatch.setattr(MadeUp, "on_managed_memory", differs)
    found = training.losses_of(MadeUp("gpt2", "fp32", 1, None), 4)
    assert found["equal_steps_of"] == {"lazy": 4, "eager": 4, "copy": 1}
    assert (found["equal_steps"], found["equal_steps_of_two_that_fit"]) == (1, 4)
    assert found["largest_difference"] == 0.5


def test_losses_without_deterministic_kernels_are_judged_by_two_runs_that_fit() -> None:
    some = losses(deterministic=False, equal_steps=3, equal_steps_of_two_that_fit=3)
    [(name, reached)] = verdicts.verdicts_of_losses([some]).items()
    assert reached["reached"]
    assert name == "unet3d fp32: losses are equal as far as those of two runs that fit"
    [missed] = verdicts.verdicts_of_losses([{**some, "equal_steps": 2}]).values()
    assert not missed["reached"]


@pytest.mark.parametrize(
    ("other", "steps"), [([3.0, 2.0, 1.0], 3), ([3.0, 2.5, 1.0], 1), ([0.0, 2.0, 1.0], 0)]
)
def test_losses_are_equal_up_to_the_first_that_differs(other: list[float], steps: int) -> None:
    assert training.equal({"losses": [3.0, 2.0, 1.0]}, {"losses": other}) == steps


def test_operator_without_a_deterministic_kernel_has_the_losses_compared_without_strictness(
    made_up: type[MadeUp], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = MadeUp.train

    def put(self: MadeUp, steps: int, wrap: Any = None) -> dict[str, Any]:
        torch.zeros(3).put_(torch.tensor([1]), torch.tensor([2.0]))  # torch has none, anywhere
        warnings.warn("something else", UserWarning, stacklevel=1)
        return train(self, steps, wrap)

    assert training.losses_of(MadeUp("gpt2", "fp32", 1, None), 4)["deterministic"]
    monkeypatch.setattr(MadeUp, "train", put)
    with pytest.warns(UserWarning, match="something else"):
        found = training.losses_of(MadeUp("gpt2", "fp32", 1, None), 4)
    assert found["deterministic"] is False
    assert found["operators"] == ["put_"]
    assert found["equal_steps"] == found["equal_steps_of_two_that_fit"] == 4
    assert not torch.are_deterministic_algorithms_enabled()


def test_other_errors_of_a_comparison_are_not_taken_for_that(made_up: type[MadeUp]) -> None:
    made_up.failing["gpt2"] = torch.OutOfMemoryError("no memory")
    with pytest.raises(torch.OutOfMemoryError, match="no memory"):
        training.losses_of(MadeUp("gpt2", "fp32", 1, None), 4)
    assert not torch.are_deterministic_algorithms_enabled()


def test_model_that_fails_is_kept_with_its_reason_and_the_others_are_measured(
    made_up: type[MadeUp], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.failing["gpt2"] = RuntimeError("no kernel\nmore of it")
    made_up.past["bert"] = torch.OutOfMemoryError("no memory")
    words = ("--models", "gpt2,bert,lstm", "--dtypes", "bf16")
    status, result = call(tmp_path / "found.json", *words)
    assert status == 1
    assert "gpt2 bf16 failed: RuntimeError: no kernel\n" in capsys.readouterr().err
    assert {one["model"]: one["reason"] for one in result["failed"]} == {
        "gpt2": "RuntimeError: no kernel",
        "bert": "OutOfMemoryError: no memory",
    }
    factors = {row["factor"] for row in result["rows"] if row["model"] == "bert"}
    assert factors == {0.0, 1.25, 1.5}  # what was done before is kept
    assert result["verdicts"]["gpt2 bf16: rows were measured"]["reached"] is False

    made_up.failing.clear()
    made_up.past.clear()
    _, again = call(tmp_path / "found.json", *words, "--missing")
    assert again["failed"] == []
    assert {row["model"] for row in again["rows"]} == {"gpt2", "bert", "lstm"}
    assert "gpt2 bf16: rows were measured" not in again["verdicts"]


def test_time_limit_begins_no_further_model_and_says_which_are_left(
    made_up: type[MadeUp],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = iter([0.0, 1.0, 11.0, 0.0, 1.0, 2.0])
    times = SimpleNamespace(monotonic=lambda: next(clock), perf_counter=lambda: 0.0)
    monkeypatch.setattr(training, "time", times)
    words = ("--models", "gpt2,bert,lstm", "--dtypes", "fp32", "--time-limit", "10", "--missing")
    _, result = call(tmp_path / "found.json", *words)
    assert "10 s are over; left for another call: bert fp32, lstm fp32\n" in capsys.readouterr().out
    assert {row["model"] for row in result["rows"]} == {"gpt2"}
    _, result = call(tmp_path / "found.json", *words)
    assert {row["model"] for row in result["rows"]} == {"gpt2", "bert", "lstm"}
    assert "left" not in capsys.readouterr().out


def test_file_of_all_models_is_small_and_its_document_has_all_of_them(
    made_up: type[MadeUp], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    status, result = call(path)
    call(path, "--losses-steps", "50")
    result = json.loads(path.read_text())
    assert len({verdicts.case_of(row) for row in result["rows"]}) == 22
    assert len(result["losses"]) == 22
    assert path.stat().st_size < 300_000
    assert status == 1  # the same times in every way are not enough
    part = document.computed_part(result)
    assert part.count("\n| whisper-small | bf16 |") == 1 + 2 + 2 + 1
    assert part.count("\n| lstm | fp32 |") == 2
    cell = "123 / 123 / 123 / 123 (1.0)"
    assert "Milliseconds a step, fault-driven / lazy / eager / copy, and in brackets" in part
    copied = [row for row in result["rows"] if "activations" in row]
    assert {row["way"].partition(",")[0] for row in copied} == {"copy"}
    assert len(copied) == 22 * 4 + 8 * 2
    assert f"| lstm | fp32 | 8 | 1.00 | 123 | 1.00 | {' | '.join([cell] * 4)} |" in part
    assert "- 1.5x: fault-driven / ours, geometric mean: 1, to be at least 3" in part


def test_document_says_what_failed_and_what_is_not_there() -> None:
    there = [row for row in rows() if row["way"] not in ("eager", "native")]
    failed = [{"model": "lstm", "dtype": "fp32", "part": "rows", "reason": "OSError: none"}]
    part = document.computed_part({"rows": there, "losses": [], "failed": failed})
    assert "| gpt2 | bf16 | - | - | - | - | 1200 / 600 / - (2.0) |" in part
    assert "- lstm fp32: rows were measured: no, OSError: none" in part
    assert "Losses" not in part
    reached = document.computed_part({"rows": rows(), "losses": [losses()], "failed": []})
    assert reached.endswith("Every bound is reached.")
    assert "| gpt2 | bf16 | 1.25 | 300 | 100 | 250 | 1.20 |" in reached
    assert "| gpt2 | bf16 | save_on_cpu | 500 | 1.00 | 450 | 0.90 |" in reached
    assert "| unet3d | fp32 | 1 | 50 | 50 | 50 |  |" in reached


def test_models_with_figures_of_their_own_come_first() -> None:
    assert training.parsed(["--json", "found.json"]).models[:4] == list(verdicts.TRANSFORMERS)
    assert sorted(training.NAMES) == sorted(script("training/models").NAMES)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--json", "x", "--write"],
        ["--json", "x", "--models", "lenet"],
        ["--json", "x", "--ways", "copy,teleport"],
    ],
)
def test_arguments_that_say_neither_or_both_or_name_no_model_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        training.parsed(words)
    assert caught.value.code == 2


def test_fault_driven_run_is_that_of_a_smaller_card() -> None:
    budget = runs.budgets(64 << 20)["fault-driven"]
    assert (budget.policy, budget.fetch, budget.discard_dead) == ("fifo", False, False)
