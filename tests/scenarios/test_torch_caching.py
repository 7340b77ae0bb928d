# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""With and without a caching allocator: the verdicts, the table, and who runs when one fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .residency_scripts import script

caching = script("training/caching")
verdicts = script("training/caching_verdicts")
document = script("training/caching_document")
recordings = script("training/recordings")
MIB = 1 << 20
ARGUMENTS = SimpleNamespace(
    json=Path("found.json"), factors="0,2", steps=3, batch_fraction=0.25, child_seconds=60
)


def a_row(factor: float, way: str, faults: int | None, moved_bytes: int) -> dict[str, Any]:
    return {
        "model": "gpt2",
        "dtype": "bf16",
        "batch": 2,
        "factor": factor,
        "way": way,
        "seconds": 0.1,
        "each_seconds": [0.4, 0.2, 0.1],
        "to_device_bytes": moved_bytes,
        "to_host_bytes": moved_bytes,
        "evictions": 3,
        "gpu_faults": faults,
        "faults_unknown": "" if faults is not None else "no leave",
        "peak_bytes": 1 << 30,
        "reserved_bytes": 3 << 29,
    }


def published() -> list[dict[str, Any]]:
    """Return rows of one model in which everything is as published."""
    return [
        a_row(0.0, "native", 0, 0),
        a_row(0.0, "on", 0, 0),
        a_row(0.0, "on, ours", 0, 0),
        a_row(0.0, "off", 5000, 0),
        a_row(2.0, "on", 2000, 300 * MIB),
        a_row(2.0, "on, ours", 10, 100 * MIB),
        a_row(2.0, "off", 8000, 100 * MIB),
    ]


def missed(rows: list[dict[str, Any]]) -> list[str]:
    return [name for name, one in verdicts.verdicts_of(rows).items() if not one["reached"]]


def test_verdicts_of_what_is_published_are_reached() -> None:
    found = verdicts.verdicts_of(published())
    assert found["everything fits: faults, without caching / with, geometric mean"]["value"] == 5000
    assert found["2x: bytes, with caching / without, geometric mean"]["value"] == 3
    assert not missed(published())
    assert not verdicts.not_seen(published())


def test_verdicts_say_what_is_not_seen() -> None:
    rows = [
        *(a_row(0.0, "on", 8, 0), a_row(0.0, "off", 7, 0)),
        *(a_row(2.0, "on", 9, MIB), a_row(2.0, "off", 8, 2 * MIB)),
    ]
    assert missed(rows) == [
        "everything fits: faults, without caching / with, geometric mean",
        "2x: bytes, with caching / without, geometric mean",
    ]
    assert [(one["factor"], one["what"]) for one in verdicts.not_seen(rows)] == [
        (0.0, "faults"),
        (2.0, "faults"),  # told, and not judged
        (2.0, "bytes"),
    ]


def test_nothing_against_nothing_is_not_seen() -> None:
    rows = [a_row(factor, way, 0, 0) for factor in (0.0, 2.0) for way in ("on", "off")]
    assert len(missed(rows)) == 2


def test_verdicts_of_nothing_of_failures_and_of_unknown_faults_are_missed() -> None:
    failure = {"model": "lstm", "dtype": "bf16", "way": "off", "failed": "exit status 1"}
    unknown = [{**row, "gpu_faults": None} for row in published()]
    assert missed([]) == ["cases that were compared"]
    assert missed([*published(), failure]) == ["processes that failed"]
    assert missed(unknown) == ["rows whose faults are not known"]


def a_kernel(model: str = "gpt2", dtype: str = "bf16", batch: int = 2) -> dict[str, Any]:
    return {
        **{"model": model, "dtype": dtype, "batch": batch, "kernels": 1293},
        **{"median_used_bytes": 9 * MIB, "mean_used_bytes": 11 * MIB},
        **{"most_used_bytes": 1178 * MIB, "recorded_peak_bytes": 5 << 30},
    }


def test_tables_have_a_line_for_each_case_with_all_ways_at_each_factor() -> None:
    failure = {"model": "lstm", "dtype": "bf16", "way": "off", "failed": "exit status 1"}
    kernels = [a_kernel("lstm", "fp32", 80), a_kernel()]
    text = document.computed_part({"rows": [*published(), failure], "kernels": kernels})
    assert "| fits | 1 | 5,000 |  | 1.00 | 1.00 |" in text
    assert "| 2 | 1 | 4.00 | 3.00 | 1.00 | 1.00 |" in text
    assert "Not measured to the end: lstm bf16, off." in text
    assert "| gpt2 bf16 | 100 | 100 / 100 / 100 | 100 / 100 / 100 |" in text
    assert "| gpt2 bf16 | 0 / 0 / 5,000 | 2,000 / 10 / 8,000 |" in text
    assert "| gpt2 bf16 | 600 / 200 / 200 |" in text  # what fits does not move
    assert "| gpt2 bf16 | 3 / 3 / 3 |" in text
    footprint = "| 1293 | 9.0 | 11 | 1178 | 23% | 5.00 |"
    measured = f"| gpt2 bf16 | 2 {footprint} 1.00 | 1.50 / 1.50 / 1.50 |"
    # In the order of the models, and also of what is not measured yet.
    assert f"| lstm fp32 | 80 {footprint}  |  |\n{measured}" in text
    assert text.count("| gpt2 bf16 |") == 5
    unknown = document.computed_part({"rows": [a_row(2.0, "on", None, 0)], "kernels": []})
    assert "| gpt2 bf16 | not known / - / - |" in unknown
    assert "| gpt2 bf16 | 2 |  |  |  |  |  |  |  |  |" in unknown


def test_ratio_that_is_a_count_of_faults_is_told() -> None:
    told = "Cases without a page fault with caching: "
    text = document.computed_part({"rows": published(), "kernels": []})
    assert f"\n{told}1 where everything fits. None counts as one there" in text
    faulting = [{**row, "gpu_faults": row["gpu_faults"] or 8} for row in published()]
    assert told not in document.computed_part({"rows": faulting, "kernels": []})
    none = [{**row, "gpu_faults": 0} for row in published()]
    text = document.computed_part({"rows": none, "kernels": []})
    assert f"{told}1 where everything fits, 1 at 2. None" in text


def measured(case: tuple[str, str], *factors: float) -> list[dict[str, Any]]:
    """Return the rows of a case that was measured at some factors, in every way."""
    model, dtype = case
    ways = [(0.0, "native")]
    ways += [(factor, way) for factor in factors for way in ("on", "on, ours", "off")]
    return [{**a_row(*one, 1, 1), "model": model, "dtype": dtype} for one in ways]


def test_what_is_not_measured_is_stated_case_by_case() -> None:
    assert len(verdicts.CASES) == 22
    assert verdicts.FACTORS == (0.0, 1.25, 1.5, 2.0, 3.0)
    assert list(verdicts.not_measured([])) == list(verdicts.CASES)
    every = [row for case in verdicts.CASES for row in measured(case, *verdicts.FACTORS)]
    assert not verdicts.not_measured(every)
    told = "All 22 cases are measured in every way at each factor."
    whole = document.computed_part({"rows": every, "kernels": []})
    assert told in whole
    for case in verdicts.CASES:  # sizes, time, faults, bytes and evictions
        assert whole.count(f"\n| {' '.join(case)} |") == 5
    # One row less, one that budgets cannot be taken from, and one that failed.
    lost = {("lstm", "fp32", 2.0, "off"): [2.0]}
    lost |= {("bert", "fp32", 0.0, "native"): list(verdicts.FACTORS)}
    failed = {("gpt2", "bf16", 1.25, "on, ours"): [1.25]}
    keyed = [((*verdicts.case_of(row), row["factor"], row["way"]), row) for row in every]
    rows = [
        {**row, "failed": "killed"} if key in failed else row
        for key, row in keyed
        if key not in lost
    ]
    lacking = {key[:2]: factors for key, factors in (lost | failed).items()}
    assert verdicts.not_measured(rows) == lacking
    text = document.computed_part({"rows": rows, "kernels": []})
    told = (
        'at 2, the way "off": lstm fp32; at 1.25, the way "on, ours": gpt2 bf16; at all: bert fp32'
    )
    assert f"\nNot measured yet {told}.\n" in text


def test_what_is_not_as_published_and_what_was_measured_apart_is_told() -> None:
    text = document.computed_part({"rows": published(), "kernels": []})
    assert "of 3 comparisons here all are as published." in text
    assert "by commit" not in text
    rows = [{**row, "commit": "c3c3e55"} for row in published()]
    rows[-1] = {**rows[-1], "gpu_faults": 1500, "to_device_bytes": 0}
    others = measured(("lstm", "fp32"), 0.0)
    rows += [{**row, "commit": "3fe253d", "device": "NVIDIA H100"} for row in others]
    machine = {"device": "NVIDIA H200", "kernel_driver": "580.159.04", "date": "2026-11-23"}
    result = {"environment": machine, "rows": rows, "kernels": []}
    text = document.computed_part(result)
    assert "of 4 comparisons here 1 is not, faults, off / on, at 2: gpt2 bf16 (0.75)." in text
    here = "at c3c3e55 (card NVIDIA H200) gpt2 bf16"
    assert f"by commit: {here}; at 3fe253d (card NVIDIA H100) lstm fp32." in text


def test_calls_are_told_by_what_differs_of_their_machines_and_by_factors_of_a_case_in_two() -> None:
    machine = {"device": "NVIDIA H200", "kernel_driver": "580.159.04", "date": "2026-11-23"}
    other = {"kernel_driver": "570.1", "date": "2026-11-25", "device": "NVIDIA H200"}

    def told(*rows: dict[str, Any]) -> str:
        result = {"environment": machine, "rows": rows, "kernels": []}
        text: str = document.computed_part(result)
        return text.partition("by commit: ")[2].partition("\n")[0]

    gpt2 = [{**row, "commit": "3fe253d"} for row in published()]
    lstm = [{**row, "commit": "3fe253d"} for row in measured(("lstm", "fp32"), 0.0)]
    assert told(*gpt2, *lstm) == ""
    assert told(*gpt2, *({**row, **machine} for row in lstm)) == ""
    later = [{**row, "factor": 3.0, **other} for row in gpt2 if row["factor"] == 2.0]
    words = "kernel driver 580.159.04, date 2026-11-23"
    others = "kernel driver 570.1, date 2026-11-25"
    assert told(*gpt2, *later, *({**row, **other} for row in lstm)) == (
        f"at 3fe253d ({words}) gpt2 bf16 (where everything fits and at 2); "
        f"at 3fe253d ({others}) gpt2 bf16 (at 3), lstm fp32."
    )
    assert told(*gpt2, *({**row, "torch": "2.13.0"} for row in lstm)) == (
        "at 3fe253d (torch not known) gpt2 bf16; at 3fe253d (torch 2.13.0) lstm fp32."
    )


def test_document_gets_the_table_between_its_marks_and_is_refused_without() -> None:
    result = {"rows": published(), "kernels": []}
    text = f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n"
    changed = document.document_with(text, result)
    assert changed.startswith(f"before\n{document.BEGIN}\nGeometric means")
    assert "old" not in changed
    assert document.document_with(changed, result) == changed
    with pytest.raises(ValueError, match=r"training\.md has no part"):
        document.document_with("before\nafter\n", result)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--models", "gpt3"], "no model 'gpt3': there are alexnet"),
        (["--dtypes", "fp16"], "no type 'fp16': there are fp32, bf16"),
        (["--factors", "0,0.5"], "factor 0.5: 0 is what fits, others are greater than 1"),
        (["--steps", "1"], "--steps 1: at least 2"),
        (["--kernels-only", "--rows-only"], "not allowed with argument --kernels-only"),
    ],
)
def test_arguments_that_cannot_be_end_the_program(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["caching.py", "--json", "found.json", *words])
    with pytest.raises(SystemExit) as caught:
        caching.main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def child(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_rows_of_a_child_come_as_it_tells_them() -> None:
    rows: list[dict[str, Any]] = []
    program = f"print('a word'); print({caching.ROW!r} + '{{\"factor\": 2}}')"
    assert caching.run_child(child(program), rows.append, 60) == ""
    assert rows == [{"factor": 2}]


def test_child_that_fails_keeps_its_rows_and_says_why() -> None:
    rows: list[dict[str, Any]] = []
    program = f"print({caching.ROW!r} + '{{}}', flush=True); raise MemoryError('8 GiB asked')"
    reason = caching.run_child(child(program), rows.append, 60)
    assert reason == "exit status 1: MemoryError: 8 GiB asked"
    assert rows == [{}]


def test_child_that_does_not_end_is_ended() -> None:
    program = "import threading; print('waits', flush=True); threading.Event().wait()"
    assert caching.run_child(child(program), [].append, 0.5).startswith("ended after 0.5 s: ")


def test_without_a_native_run_the_other_child_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []
    saved: list[list[dict[str, Any]]] = []

    def run_child(command: list[str], _add: object, _seconds: float) -> str:
        begun.append(command)
        return "exit status 1: RuntimeError: no"

    monkeypatch.setattr(caching, "run_child", run_child)
    failed = caching.compared(("gpt2", "bf16"), ARGUMENTS, lambda found: saved.append(list(found)))
    assert failed == 2
    assert len(begun) == 1
    assert [row["way"] for row in saved[-1]] == ["on", "off"]
    assert [len(found) for found in saved] == [1, 2]
    assert "no run of torch's own allocator" in saved[-1][1]["failed"]


def test_budgets_of_the_other_child_are_those_of_the_native_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[list[str]] = []

    def run_child(command: list[str], add: Any, _seconds: float) -> str:
        begun.append(command)
        add(a_row(0.0, "native" if len(begun) == 1 else "off", 0, 0))
        return ""

    monkeypatch.setattr(caching, "run_child", run_child)
    saved: list[list[dict[str, Any]]] = []
    caching.compared(("gpt2", "bf16"), ARGUMENTS, lambda found: saved.append(list(found)))
    assert "--native-bytes" not in begun[0]
    assert begun[1][-3:] == ["--native-bytes", str(1 << 30), str(3 << 29)]
    assert not any("failed" in row for row in saved[-1])
    # What is written there is what the child understands.
    monkeypatch.setattr(sys, "argv", begun[1][1:])
    assert caching.asked().native_bytes == [1 << 30, 3 << 29]


def test_program_ends_with_1_where_a_child_fails_and_the_file_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    words = ["--json", str(path), "--models", "gpt2", "--dtypes", "bf16", "--factors", "2"]
    monkeypatch.setattr(sys, "argv", ["caching.py", *words])
    monkeypatch.setattr(caching, "run_child", lambda *_: "exit status 9: killed")
    monkeypatch.setattr(caching, "kernels_of", lambda *_: a_kernel())
    monkeypatch.setattr(
        caching.rmm_uvm, "cuda_driver", lambda _: caching.rmm_uvm.simulated_device()
    )
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1GiB")
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    with pytest.raises(SystemExit) as caught:
        caching.main()
    assert caught.value.code == 1
    kept = json.loads(path.read_text())
    assert kept["rows"][0]["failed"] == "exit status 9: killed"
    assert kept["rows"][0]["factors"] == [2.0]
    assert kept["rows"][0]["commit"] == kept["environment"]["commit"][:12]
    assert not kept["verdicts"]["processes that failed"]["reached"]


def test_kernels_of_a_recorded_step_use_less_than_its_peak() -> None:
    found = recordings.kernels_of("alexnet", "bf16", 2, "small")
    assert 0 < found["median_used_bytes"] <= found["mean_used_bytes"] * 4
    assert found["mean_used_bytes"] <= found["most_used_bytes"] <= found["recorded_peak_bytes"]
    assert found["kernels"] > 20
    larger = recordings.kernels_of("alexnet", "bf16", 4, "small")
    assert larger["recorded_peak_bytes"] > found["recorded_peak_bytes"]


def test_without_a_cap_on_managed_memory_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["caching.py", "--json", str(tmp_path / "found.json")])
    monkeypatch.setattr(
        caching.rmm_uvm, "cuda_driver", lambda _: caching.rmm_uvm.simulated_device()
    )
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)
    with pytest.raises(SystemExit, match="no GPU run without it"):
        caching.main()
    assert not list(tmp_path.iterdir())


def test_time_of_a_step_is_that_of_the_last_one() -> None:
    row = {**a_row(2.0, "on", 0, 0), "seconds": 0.15, "each_seconds": [0.4, 0.2, 0.1]}
    assert verdicts.step_seconds(row) == 0.1
    assert "| gpt2 bf16 |  | 100 / - / - |" in document.computed_part(
        {"kernels": [], "rows": [row]}
    )
