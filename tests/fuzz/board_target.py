# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What monitors publish: `rmm-uvm top` shows it whatever it is, or shows nothing."""

from __future__ import annotations

import io
import json
import os
import tempfile
from pathlib import Path

from rich.console import Console

from rmm_uvm import harvest
from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.published import published
from rmm_uvm.top.render import render
from rmm_uvm.top.seams import Seams
from rmm_uvm.top.view import View
from rmm_uvm.watch.telling.board import Board

from .promises import FOLDER, Finding, check_shown

_MOST = 2**64


def board(data: bytes) -> None:
    """Look at a board twice: a byte of zero parts what a process published from what came next.

    What says that a process lives and wrote the file is filled in where it is missing.
    """
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name) / "rmm-uvm"
        own = _own_facts(folder)
        now = [0.0]
        seams = Seams(
            processes=list,
            attach=_attach,
            published=lambda: published([folder]),
            devices=lambda: ((), ""),
            harvest=lambda: harvest.read_board(folder),
        )
        gatherer = Gatherer(seams, clock=lambda: now[0])
        before, _, after = data.partition(b"\0")
        for facts, width in ((before, 40), (after or before, 100)):
            path = folder / "1.json"
            path.write_bytes(_with_own(facts, own))
            path.chmod(0o600)
            _check(gatherer.look(), width)
            now[0] += 1.0


def _attach(pid: int, faults: bool) -> None:
    raise Finding(f"attached to {pid}")


def _own_facts(folder: Path) -> dict[str, object]:
    """Return what a file on the board says of the process that wrote it: this one."""
    Board([folder]).publish({})
    (path,) = folder.iterdir()
    told = json.loads(path.read_text())
    path.unlink()
    return {**told, "command": "python train.py", "interval_seconds": 0.1} | {
        name: [] for name in ("devices", "snapshots", "findings", "sources")
    }


def _with_own(facts: bytes, own: dict[str, object]) -> bytes:
    try:
        return json.dumps(own | json.loads(facts)).encode()
    except (ValueError, TypeError, RecursionError):
        return facts


def _check(view: View, width: int) -> None:
    json.loads(json.dumps(view.to_dict()))
    for row in view.processes:
        if row.pid != os.getpid():
            raise Finding(f"a row of a process that did not publish: {row}")
        numbers = [value for value in row.to_dict().values() if type(value) in (int, float)]
        if not all(0 <= value < _MOST * 1e9 for value in numbers):
            raise Finding(f"a number that cannot be: {row}")
    shown = io.StringIO()
    console = Console(file=shown, width=width, markup=False, emoji=False, highlight=False)
    console.print(render(view, width, plain_ascii=width < 60))
    check_shown(shown.getvalue())
