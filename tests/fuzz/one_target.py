# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes one target with atheris, until time is up or something is found.

    PYTHONPATH=tests python -P -m fuzz.one_target TARGET [libFuzzer's arguments]

Coverage is that of our Python code; the compiled decoder is driven, not followed.
"""

from __future__ import annotations

import sys

import atheris

# Parts of the standard library that do the work of a reader are followed as well.
_FOLLOWED = [
    "rmm_uvm.dask.checks",
    "rmm_uvm.dask.settings",
    "rmm_uvm.ipc.array",
    "rmm_uvm.ipc.handle",
    "rmm_uvm.planner",
    "rmm_uvm.simulator",
    "rmm_uvm.trace",
    "rmm_uvm.units",
    "rmm_uvm.watch.recording",
    "rmm_uvm.watch.thresholds",
    "tomllib",
]

with atheris.instrument_imports(include=_FOLLOWED):
    from .targets import TARGETS


def main() -> None:
    """Fuzz; libFuzzer ends the process."""
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
