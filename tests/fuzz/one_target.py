# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes one target with atheris, until time is up or something is found.

    PYTHONPATH=tests python -P -m fuzz.one_target TARGET [libFuzzer's arguments]

A file as the only argument is tried once, and its traceback shown: so is what a run found.
Coverage is that of our Python code; the compiled decoder is driven, not followed.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys

import atheris

from . import json_changes

# Parts of the standard library that do the work of a reader are followed as well.
_FOLLOWED = [
    "rmm_uvm.support.kinds",
    "rmm_uvm.dask.comm.handshake",
    "rmm_uvm.dask.comm.receive",
    "rmm_uvm.dask.comm.wire",
    "rmm_uvm.dask.reports.advice",
    "rmm_uvm.dask.reports.documents",
    "rmm_uvm.dask.settings",
    "rmm_uvm.dask.reports.worker_recording",
    "rmm_uvm.harvest",
    "rmm_uvm.ipc.array",
    "rmm_uvm.ipc.handle",
    "rmm_uvm.ipc.table",
    "rmm_uvm._lib.limits",
    "rmm_uvm_mortgage.dictionary",
    "rmm_uvm.planner",
    "rmm_uvm.report",
    "rmm_uvm.residency.budget",
    "rmm_uvm.residency.neighbors",
    "rmm_uvm.run.handover",
    "rmm_uvm.run.summary",
    "rmm_uvm.simulator",
    "rmm_uvm.top",
    "rmm_uvm.trace",
    "rmm_uvm.support.units",
    "rmm_uvm.watch.telling.board",
    "rmm_uvm.recording.as_json",
    "rmm_uvm.recording.values",
    "rmm_uvm.recording.recorded",
    "rmm_uvm.watch.judging.thresholds",
    "tomllib",
]

# Nobody wants a line for each module.
with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=_FOLLOWED):
    from .targets import TARGETS


def fuzz(name: str, arguments: list[str]) -> None:
    """Fuzz one target with libFuzzer's arguments; it ends the process."""

    def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
        chance = random.Random(seed)
        found = json_changes.changed(name, data, chance) if chance.random() < 0.7 else data
        if found == data or len(found) > most_bytes:
            found = atheris.Mutate(data, most_bytes)
        return found

    own = {"custom_mutator": mutate} if name in json_changes.SKIPPED else {}
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name], **own)
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], sys.argv[2:])
