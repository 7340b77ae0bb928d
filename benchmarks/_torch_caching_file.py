# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The result file of torch_caching.py, which several calls and several machines add to.

``environment`` is that of the last call that measured rows on a GPU, ``kernels_environment`` of the
last one that recorded kernels, which needs none. What is of another card, or was recorded by
another torch, says so in its row.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import _harness
from _torch_caching_verdicts import case_of, not_seen, verdicts_of

Row = dict[str, Any]
# Of a row, what verdicts and documents need, and what tells why a figure is as it is.
_FIGURES = (
    *("model", "dtype", "factor", "way", "failed", "batch", "budget_bytes", "seconds"),
    *("each_seconds", "to_device_bytes", "to_host_bytes", "evictions", "gpu_faults"),
    *("faults_unknown", "peak_bytes", "reserved_bytes"),
)
_RESIDENCY = ("dropped_bytes", "fetched_bytes", "faulted_bytes", "failed_calls")
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
        """What the file has beside its environment."""
        return {
            **{"kernels_environment": self._recorder, "kernels": self.kernels, "rows": self.rows},
            **{"not_seen": not_seen(self.rows), "verdicts": verdicts_of(self.rows)},
        }

    def knows(self, case: tuple[str, str], batch: int) -> bool:
        """Return whether a model's kernels are there, at this batch."""
        return any((case_of(one), one["batch"]) == (case, batch) for one in self.kernels)

    def put_rows(self, found: Sequence[Row]) -> None:
        """Replace the rows of one model and type by what this machine found; write the file."""
        machine = _harness.environment()
        commit = machine["commit"][:12]  # calls may be of several
        self._put_rows([{**trimmed(row), "commit": commit} for row in found], machine)
        self._write()

    def put_kernels(self, one: Row) -> None:
        """Replace what is there of one model and type; write the file."""
        self._put_kernels(one, _harness.software())
        self._write()

    def merge(self, path: Path) -> None:
        """Add what another file has, as if it had been measured after this one's; write the file.

        Its rows replace those of the same model and type; kernels that are known stay.
        """
        other = Kept(path)
        if other.rows:
            self._put_rows(other.rows, other._machine)
        for one in other.kernels:
            if not self.knows(case_of(one), one["batch"]):
                self._put_kernels(one, other._recorder)
        self._write()

    def _put_rows(self, found: Sequence[Row], machine: Mapping[str, Any]) -> None:
        if self.rows and self._machine["device"] != machine["device"]:
            for row in self.rows:
                row.setdefault("device", self._machine["device"])
        self._machine = machine
        cases = {case_of(row) for row in found}
        self.rows = [*(row for row in self.rows if case_of(row) not in cases), *found]

    def _put_kernels(self, one: Row, recorder: Mapping[str, Any]) -> None:
        was, now = _recorded_by(self._recorder), _recorded_by(recorder)
        if was != now:
            self.kernels = [{**row, **was, **row} for row in self.kernels]
        self._recorder = recorder
        cases = [case_of(row) for row in self.kernels]
        if case_of(one) in cases:
            self.kernels[cases.index(case_of(one))] = one
        else:
            self.kernels.append(one)

    def _write(self) -> None:
        machine = self._machine if self.rows else _harness.environment()
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts are printed once, at the end
            _harness.write_json(self._path, "torch_caching", self.result, machine)


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


def _recorded_by(recorder: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions that decide what a recording has."""
    versions = recorder.get("versions", {})
    return {name: versions[name] for name in _RECORDED_BY if name in versions}
