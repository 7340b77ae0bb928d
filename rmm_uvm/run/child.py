# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs in the first Python process of a watched command: installs, watches, leaves a recording.

Called at the start of the process by ``hook/sitecustomize.py``. The folder that it is given belongs
to the command that started it, which prints the summary.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from pathlib import Path

from rmm_uvm.run import handover
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.tidying import tell_before
from rmm_uvm.run.watching import Watch

__all__ = ["CLAIM", "NOTES", "REQUEST", "begin"]

REQUEST = "request.json"
CLAIM = "claimed"
NOTES = "notes.json"


def begin(folder: str) -> bool:
    """Install and watch as the command asks, if no other process has done so.

    Parameters
    ----------
    folder : str
        With the request; a later process finds it claimed.

    Returns
    -------
    bool
        Whether this process is the first one.

    Raises
    ------
    UvmError
        As `Watch.begin`.
    """
    path = Path(folder)
    try:
        # Two processes may start at the same time: making the file decides who is the first.
        with (path / CLAIM).open("x") as claim:
            claim.write(str(os.getpid()))
    except FileExistsError:
        return False
    except FileNotFoundError:
        return False  # the command has ended; this process is a left-over of it
    watch = Watch(RunRequest.from_json((path / REQUEST).read_text()))
    watch.begin()
    leave = functools.partial(_leave, watch, path, os.getpid())
    atexit.register(leave)
    atexit.register(tell_before(lambda number: leave()))
    return True


def _ended_with() -> BaseException | None:
    """Return what the program did not catch, which the interpreter keeps while it ends."""
    # They keep errors there that they caught, for debuggers.
    if not {"IPython", "_pytest"}.isdisjoint(sys.modules):
        return None
    error = getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def _leave(watch: Watch, folder: Path, owner: int) -> None:
    if os.getpid() != owner:
        return  # a fork of it that ended by itself
    if (error := _ended_with()) is not None:
        watch.ended_with(error)
    recording = watch.recording()
    try:
        (folder / NOTES).write_text(json.dumps(watch.notes))
        if recording is not None:
            handover.save(recording, folder)
    except OSError:
        pass  # the command is gone, and with it whoever would read this
