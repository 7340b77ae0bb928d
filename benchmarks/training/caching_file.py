# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The result file of caching.py, which several calls and several machines add to.

Rows are replaced by model, type and factor, and by nothing that lacks a way that is there: a call
may measure a part, fail or be interrupted. Budgets of a factor are in its rows; torch's own memory,
which they came from, is measured by each call, and kept with what fits: it is compared with that.

``environment`` is that of the last call that measured rows on a GPU, ``kernels_environment`` of the
last one that recorded kernels, which needs none. A row says in what its call differed from that: in
card, kernel driver, torch or date, and kernels in what recorded them; commits are in all rows.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import harness
from benchmarks.training.caching_verdicts import (
    FACTORS,
    Case,
    case_of,
    not_measured,
    not_seen,
    verdicts_of,
)

Row = dict[str, Any]
# Of a row, what verdicts and documents need, and what tells why a figure is as it is.
_FIGURES = (
    *("model", "dtype", "factor", "way", "factors", "failed", "batch", "budget_bytes", "seconds"),
    *("each_seconds", "to_device_bytes", "to_host_bytes", "evictions", "gpu_faults"),
    *("faults_unknown", "peak_bytes", "reserved_bytes"),
)
_RESIDENCY = ("dropped_bytes", "fetched_bytes", "faulted_bytes", "failed_calls")
LABELS = ("device", "kernel_driver", "torch", "date")
_RECORDED_BY = ("torch", "transformers")


class Kept:
    """What a result file has, and what is added to it.

    Parameters
    ----------
    path : Path
        The file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        before = json.loads(path.read_text()) if path.exists() else {}
        self._path = path
        self.kernels: list[Row] = before.get("kernels", [])
        self.rows: list[Row] = before.get("rows", [])
        self._machine: Mapping[str, Any] = before.get("environment", {})
        # Before it was kept apart one call did both.
        self._recorder: Mapping[str, Any] = before.get("kernels_environment", self._machine)

    @property
    def result(self) -> dict[str, Any]:
        """What the file has."""
        return {
            "environment": self._machine,
            **{"kernels_environment": self._recorder, "kernels": self.kernels, "rows": self.rows},
            **{"not_seen": not_seen(self.rows), "verdicts": verdicts_of(self.rows)},
        }

    def knows(self, case: Case, batch: int) -> bool:
        """Return whether a model's kernels are there, at this batch."""
        return any((case_of(one), one["batch"]) == (case, batch) for one in self.kernels)

    def require_batch(self, case: Case, batch: int) -> None:
        """End the program where the file has rows of a model and type at another batch.

        Budgets are parts of a peak, which the batch decides: rows of two do not go together.
        """
        for row in self.rows:
            if case_of(row) == case and row.get("batch", batch) != batch:
                raise SystemExit(
                    f"{self._path} has {' '.join(case)} at batch {row['batch']}, not {batch}: "
                    "another batch needs a file of its own"
                )

    def put_rows(self, found: Sequence[Row]) -> None:
        """Add what this machine found of one model and type; write the file."""
        machine = harness.environment()
        commit = machine["commit"][:12]  # calls may be of several
        self._put_rows([{**trimmed(row), "commit": commit} for row in found], machine)
        self._write()

    def put_kernels(self, one: Row) -> None:
        """Replace what is there of one model and type; write the file."""
        self._put_kernels(one, harness.software())
        if not self.rows:
            self._machine = harness.environment()
        self._write()

    def merge(self, paths: Sequence[Path]) -> None:
        """Add what other files have, as if measured after this one's, in turn; write the file.

        Kernels that are known stay. Others may have begun as copies of this file: rows that are
        here do not count as measured again, or what one has measured would be replaced by what the
        next has copied. So all copies have to be given in one call.
        """
        here = [_labelled(row, self._machine) for row in self.rows]
        for other in map(Kept, paths):
            machine = other._machine
            found = [row for row in other.rows if _labelled(row, machine) not in here]
            self._put_rows(found, machine)
            for one in other.kernels:
                if not self.knows(case_of(one), one["batch"]):
                    self._put_kernels(one, other._recorder)
            self._machine = self._machine or other._machine
        self._write()

    def _put_rows(self, found: Sequence[Row], machine: Mapping[str, Any]) -> None:
        for row in found:
            if "batch" in row:
                self.require_batch(case_of(row), row["batch"])
        was, now = _ways(self.rows), _ways(found)
        better = {key for key, ways in now.items() if ways >= was.get(key, set())}
        added = [row for row in found if _key(row) in better or "failed" in row]
        kept = [
            row
            for row in self.rows
            if _key(row) not in better and not any(_fails_as(one, row) for one in added)
        ]
        together = [*kept, *added]
        added = [row for row in added if not _made_good(row, together)]
        if not added:
            return
        _label(kept, labels_of(self._machine), labels_of(machine))
        self._machine = machine
        self.rows = [*(row for row in kept if not _made_good(row, together)), *added]

    def _put_kernels(self, one: Row, recorder: Mapping[str, Any]) -> None:
        self.require_batch(case_of(one), one["batch"])
        _label(self.kernels, _recorded_by(self._recorder), _recorded_by(recorder))
        self._recorder = recorder
        cases = [case_of(row) for row in self.kernels]
        if case_of(one) in cases:
            self.kernels[cases.index(case_of(one))] = one
        else:
            self.kernels.append(one)

    def _write(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts are printed once, at the end
            harness.write_json(self._path, "torch_caching", self.result, self._machine)


def trimmed(row: Row) -> Row:
    """Return what a file of all models has room for."""
    kept = {name: row[name] for name in _FIGURES if name in row}
    if "seconds" in row:
        kept["seconds"] = round(row["seconds"], 6)
    if "each_seconds" in row:
        kept["each_seconds"] = [float(f"{each:.3g}") for each in row["each_seconds"]]
    for name in ("to_device_bytes", "to_host_bytes"):
        if name in row:
            kept[name] = int(row[name])
    if not row.get("faults_unknown"):
        kept.pop("faults_unknown", None)
    if row.get("residency"):
        kept["residency"] = {name: row["residency"][name] for name in _RESIDENCY}
    return kept


def _key(row: Row) -> tuple[Case, float] | None:
    """Return what is replaced together; nothing of a failure."""
    return None if "failed" in row else (case_of(row), row["factor"])


def _ways(rows: Sequence[Row]) -> dict[tuple[Case, float], set[str]]:
    """Return which ways are there, of what is replaced together."""
    found: dict[tuple[Case, float], set[str]] = {}
    for row in rows:
        if (key := _key(row)) is not None:
            found.setdefault(key, set()).add(row["way"])
    return found


def _fails_as(later: Row, row: Row) -> bool:
    """Return whether a failure is told again, of at least the same factors."""
    if "failed" not in later or "failed" not in row:
        return False
    same = (case_of(later), later["way"]) == (case_of(row), row["way"])
    return same and _factors(later) >= _factors(row)


def _made_good(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether all that a failed process was to measure is there."""
    return "failed" in row and not not_measured(rows, [case_of(row)], sorted(_factors(row)))


def _factors(failure: Row) -> set[float]:
    return set(failure.get("factors", FACTORS))


def _label(rows: Sequence[Row], was: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Let rows say in what their call differed from the one that is the last now."""
    for name, value in was.items():
        if now.get(name) != value:
            for row in rows:
                row.setdefault(name, value)


def _labelled(row: Row, machine: Mapping[str, Any]) -> Row:
    """Return a row that says in all what its machine was, in which file soever it is."""
    return {**labels_of(machine), **row}


def labels_of(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return what rows say of another machine, of an environment: "" where it is not known."""
    told = {**machine, "torch": machine.get("versions", {}).get("torch")}
    return {name: told.get(name) or "" for name in LABELS}


def _recorded_by(recorder: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions that decide what a recording has."""
    versions = recorder.get("versions", {})
    return {name: versions[name] for name in _RECORDED_BY if name in versions}
