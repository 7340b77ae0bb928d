# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A whole run: the program or command, watched, with its summary and files at the end."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import datetime
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmm_uvm.errors import DataError, UvmError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.process_facts import about_command
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.run import child, handover, outputs
from rmm_uvm.run.attached import Follower
from rmm_uvm.run.command import environment, run_command
from rmm_uvm.run.cuda_hint import hint
from rmm_uvm.run.failure import of_status
from rmm_uvm.run.program import PythonProgram, run_as_main
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.summary import (
    about_watching,
    compose,
    most_allocated,
    unwatched,
    without_reason,
)
from rmm_uvm.run.tidying import outlasting_hangups, tell_before
from rmm_uvm.run.watching import Watch, say
from rmm_uvm.support.off_switch import OFF, is_off
from rmm_uvm.support.output import columns_of
from rmm_uvm.support.variables import likely_slips, setting
from rmm_uvm.top.seams import Seams
from rmm_uvm.watch.telling.board import tell_command

__all__ = ["prepare", "watch_command"]


def prepare(request: RunRequest, program: PythonProgram) -> Callable[[], None]:
    """Install and watch; return the function that runs the program and then ends the process.

    The summary comes when the process ends: after the program's threads and exit handlers.

    Raises
    ------
    UvmError, MemoryError
        As `rmm_uvm.run.watching.Watch.begin`.
    """
    interrupted: list[bool] = []
    atexit.register(_end_by_interrupt, interrupted)  # registered first: runs last
    as_module = ["-m"] * (program.kind == "module")
    tell_command([sys.executable, *as_module, program.target, *program.arguments])
    watch = Watch(request)
    watch.begin()
    # Registered last, so that it runs before handlers of the monitor and after the program's.
    tell = functools.partial(_tell, watch, os.getpid(), sys.stderr)
    atexit.register(tell)
    atexit.register(tell_before(functools.partial(_terminated, watch, tell)))
    return functools.partial(_run, program, watch, interrupted)


def _run(program: PythonProgram, watch: Watch, interrupted: list[bool]) -> None:
    def failed(error: BaseException) -> None:
        watch.ended_with(error)
        _say_hint(error, pool=watch.request.pool)

    try:
        run_as_main(program, failed)
        watch.status = 0
    except KeyboardInterrupt:
        interrupted.append(True)
        raise
    except SystemExit as ended:
        if not watch.failure:  # the status that follows an error says less
            watch.ended_with(ended)
        raise


def _terminated(watch: Watch, tell: Callable[[], None], number: int) -> None:
    watch.failure = watch.failure or of_status(128 + number)
    watch.status = 128 + number
    watch.request = _without_advice(watch.request, watch.notes)
    tell()


def _without_advice(request: RunRequest, notes: list[str]) -> RunRequest:
    """Return a request without advice, and note why: whoever ends a program does not wait long."""
    if request.advise:
        notes.append("not tried on a model: the program was ended")
    return dataclasses.replace(request, advise=False)


def _say_hint(error: BaseException, *, pool: bool) -> None:
    # What was asked for on the command line stands there too.
    driver = setting("RMM_UVM_DRIVER")
    line = hint(error, simulated=driver.startswith("simulated"), pool=pool)
    if line is not None:
        say(line)


def _end_by_interrupt(interrupted: list[bool]) -> None:
    """Let the interpreter end by SIGINT, as after any KeyboardInterrupt that nobody caught.

    It remembers one only until source text is run again, which dataclasses and named tuples do when
    a module is imported: by a handler at exit, for example to write a report.
    """
    if interrupted:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def watch_command(request: RunRequest, arguments: Sequence[str], seams: Seams) -> int:
    """Run a command as a child process, watched; return its exit status.

    Raises
    ------
    CommandError
        If it cannot be started.
    """
    if is_off():
        return _run_unwatched(request, arguments)
    follower = Follower(
        seams,
        faults=request.faults,
        interval_seconds=request.interval_seconds,
        clock=time.monotonic,
    )
    with outlasting_hangups(), tempfile.TemporaryDirectory(prefix="rmm-uvm-run-") as name:
        folder = Path(name)
        (folder / child.REQUEST).write_text(request.to_json())
        try:
            status = run_command(
                arguments,
                environment(folder, os.environ),
                follower.look,
                request.interval_seconds,
            )
        finally:
            follower.finish()
        _tell_command(request, folder, follower, arguments, status)
    return status


def _run_unwatched(request: RunRequest, arguments: Sequence[str]) -> int:
    """Run a command as without us; its files say that nothing was seen."""
    say(OFF)
    began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    status = run_command(arguments, os.environ, lambda pid: None, request.interval_seconds)
    recording = Recording(
        samples=np.zeros(0, SAMPLE_DTYPE),
        devices=(),
        sources={"kernel_counters": Availability(available=False, reason=OFF)},
        began=began,
        interval_seconds=request.interval_seconds,
        failure=of_status(status),
        about={**about_command(arguments), "exit status": str(status)},
    )
    notes = [f"no trace was written to {request.trace}: {OFF}"] if request.trace else []
    _finish(request, recording, notes, sys.stderr)
    return status


def _tell(watch: Watch, owner: int, stream: Any) -> None:
    """Write the files and print the summary of a program that ran in this process."""
    if os.getpid() != owner:
        return  # a fork of it that ended by itself
    with contextlib.suppress(Exception):  # what the program printed comes before the summary
        sys.stdout.flush()
    recording = watch.recording()
    notes = list(watch.notes)
    _finish(watch.request, recording, notes, stream)


def _tell_command(
    request: RunRequest, folder: Path, follower: Follower, arguments: Sequence[str], status: int
) -> None:
    """Write the files and print the summary of a command."""
    notes: list[str] = []
    own_pid: int | None = None
    recording = None
    try:
        recording = handover.load(folder)
    except DataError as error:
        notes.append(str(error))
    with contextlib.suppress(OSError, ValueError, RecursionError):
        notes += json.loads((folder / child.NOTES).read_text())
    if recording is None:
        recording = follower.recording()
    else:
        own_pid = int((folder / child.CLAIM).read_text())
    notes += follower.others(own_pid)
    if status > 128:
        request = _without_advice(request, notes)
    recording = dataclasses.replace(
        recording,
        failure=recording.failure or of_status(status),  # the first says more
        about={**recording.about, **about_command(arguments), "exit status": str(status)},
    )
    _finish(request, recording, notes, sys.stderr)


def _with_remedies(request: RunRequest, recording: Recording) -> tuple[Recording, list[str]]:
    """Return the recording with what would have helped, and why it has nothing, in a line."""
    from rmm_uvm.planner.afterwards import with_remedies

    trace = Path(request.written_trace or "")
    if not trace.is_file():
        return recording, ["not tried on a model: no trace was written"]
    try:
        told, why = with_remedies(recording, trace, request.setting("prefetch"))
    except Exception as error:  # the report stands without
        return recording, [f"not tried on a model: {error or type(error).__name__}"]
    return told, [why] if why else []


def _finish(request: RunRequest, recording: Any, notes: list[str], stream: Any) -> None:
    body, problems = "", []
    if recording is not None and request.advise:
        recording, why = _with_remedies(request, recording)
        notes = [*notes, *why]
    outputs.drop_scratch(request)
    if recording is not None:
        reason = unwatched(recording)
        notes = about_watching(reason, notes)
        try:
            from rmm_uvm.report import Report
            from rmm_uvm.report.as_text import WIDTH

            problems = outputs.drop_empty_trace(request)
            problems += outputs.write(request, Report(recording))
            told = Report(without_reason(recording, reason))
            body = told.text(columns_of(stream, WIDTH)) + most_allocated(recording)
        except UvmError as error:
            problems.append(str(error))
        except Exception as error:
            problems.append(f"no report: {type(error).__name__}: {error}")
    notes = [*notes, *request.unused(), *likely_slips(os.environ)]
    if request.quiet:
        notes, body = [], ""
    text = compose(notes, body, problems)
    if text and stream is not None:  # print takes None, a closed error stream, for stdout
        with contextlib.suppress(OSError, ValueError):
            print(text, file=stream, flush=True)
