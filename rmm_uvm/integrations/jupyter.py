# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Magics for IPython and Jupyter: ``%load_ext rmm_uvm``, then ``%%uvm`` and ``%uvm_report``.

``%%uvm`` runs a cell and prints below it what it moved, and advice about it. With a name the cell
is a stage of that name, as with `rmm_uvm.stage`; without one it is in no stage. ``%uvm_report``
shows the timeline. Both work on the monitors that `rmm_uvm.reinitialize` started, else on one that
runs. Where none watches all devices that have a pool of ours, ``%%uvm`` starts one for its cell.
"""

from __future__ import annotations

import ast
import dataclasses
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import CodeType
from typing import Any, NoReturn

from rmm_uvm.errors import AvailabilityError, UvmError
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import Report
from rmm_uvm.report.summary import cell_summary
from rmm_uvm.report.words import clock_text, plain_name
from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.requirements import install_extra
from rmm_uvm.watch.monitor import Monitor, running
from rmm_uvm.watch.sampling.sources import devices_to_watch
from rmm_uvm.watch.stages import stage

__all__ = ["load", "unload"]

_OPTIONS = {"--faults": "faults", "--attribution": "cupti", "--lines": "lines"}
"""By option: the source that it needs."""

_A_NAME = "write %%uvm etl, or %%uvm 'load data'"

_NO_MONITOR = "no monitor runs: rmm_uvm.reinitialize() starts one, and %%uvm does for its cell"


def load(shell: Any) -> None:
    """Register the magics with an ``InteractiveShell``; again replaces them.

    Raises
    ------
    AvailabilityError
        If there is no shell, as outside of a session, or IPython is too old.
    """
    problem = too_old("jupyter", "ipython")
    if not problem and shell is None:
        problem = f"there is no session of IPython or Jupyter: {install_extra('jupyter')}"
    if problem:
        raise AvailabilityError(f"magics of rmm_uvm: {problem}")
    unload(shell)
    magics = _Magics(shell)
    shell.register_magic_function(magics.uvm, "cell", "uvm")
    shell.register_magic_function(magics.uvm_report, "line", "uvm_report")


def unload(shell: Any) -> None:
    """Take the magics away, and end what they watch; nothing if they are not there."""
    if (magic := shell.magics_manager.magics["cell"].pop("uvm", None)) is not None:
        magic.__self__.close()
    shell.magics_manager.magics["line"].pop("uvm_report", None)


class _Magics:
    """The magics of one shell, and the recording of the last cell that was watched."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._last: Recording | None = None
        self._of_lines: Monitor | None = None  # goes on, so that later cells know older lines

    def close(self) -> None:
        """End the monitor of lines, if there is one."""
        if self._of_lines is not None:
            self._of_lines.stop()

    def uvm(self, line: str, cell: str) -> None:
        """Run a cell, then print what it moved and what to do about it.

        Usage: %%uvm [NAME] [--faults] [--attribution] [--lines]

        NAME makes a stage of the cell, which reports and traces then tell apart.
        --faults counts page faults: a program that only faults takes up to 10 % longer.
        --attribution tells why pages moved: one that faults takes two to four times as long.
        --lines tells what moved by the lines that allocated it, in this cell or, from the first
        such cell on, in any other: a monitor goes on watching them. Reports then hold lines of
        code and paths of files.
        """
        __tracebackhide__ = True
        name, wanted = self._asked(line)
        try:
            body, last = self._compiled(cell)
        except SyntaxError as error:
            if _awaits(error):
                self._refuse(
                    "%%uvm cannot watch a cell with await: put it into a function that "
                    "asyncio.run calls, or watch with %uvm_report"
                )
            raise error.with_traceback(None) from None  # where it was compiled is our business
        with self._watched(name, wanted):
            exec(body, self._shell.user_ns)
            if last is not None:
                exec(last, self._shell.user_ns)

    def uvm_report(self, line: str) -> None:
        """Show the timelines of all watched devices, or else that of the last %%uvm cell."""
        from IPython.display import HTML, display

        if line.strip():
            self._refuse(f"%uvm_report takes no options, but got {line.strip()!r}")
        recordings = [monitor.recording() for monitor in _of_all_devices()]
        if not recordings and self._last is not None:
            recordings = [self._last]
        if not recordings:
            print(_NO_MONITOR)
        for recording in recordings:
            report = Report(recording)
            try:
                display(HTML(report.inline()))
            except AvailabilityError as error:  # no Bokeh: the summary needs none
                print(f"{report}\n\n{error}")

    def _asked(self, line: str) -> tuple[str, tuple[str, ...]]:
        """Return the name of the cell's stage, "" for none, and the options."""
        try:
            given = shlex.split(line)
        except ValueError as error:
            self._refuse(f"%%uvm {line}: {str(error).lower()}; {_A_NAME}")
        options = tuple(each for each in given if each.startswith("-"))
        if unknown := [each for each in options if each not in _OPTIONS]:
            self._refuse(f"%%uvm has no option {unknown[0]!r}: {', '.join(_OPTIONS)}")
        names = [each for each in given if each not in options]
        if names[1:] or names == [""]:
            told = " ".join(map(repr, names))
            self._refuse(f"%%uvm takes one name for the cell's stage, and got {told}: {_A_NAME}")
        return "".join(names), options

    def _refuse(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError

        raise UsageError(message)

    def _compiled(self, cell: str) -> tuple[CodeType, CodeType | None]:
        """Return the code of a cell, its last expression apart, whose value is to be shown."""
        shell = self._shell
        source = shell.transform_cell(cell)
        name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
        tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            quiet = cell.rstrip().endswith(";")
            if not quiet:
                last = shell.compile(ast.Interactive([tree.body.pop()]), name, "single")
        return shell.compile(tree, name, "exec"), last

    @contextmanager
    def _watched(self, name: str, wanted: tuple[str, ...]) -> Iterator[None]:
        """Watch what runs inside; print at its end, also if it fails."""
        __tracebackhide__ = True
        monitor = of_lines = own = None
        problem = ""
        device_ids = devices_to_watch(None)
        try:
            if "--lines" in wanted:
                of_lines = self._monitor_of_lines(device_ids)
            others = tuple(each for each in wanted if each != "--lines")  # of this cell alone
            monitor = _found(others, device_ids)
            if monitor is None:
                own = monitor = _temporary(others)
        except UvmError as error:
            problem = str(error)
        lines = of_lines.recording().lines if of_lines is not None else None
        begin_seconds = 0.0 if monitor is None or own else _now(monitor)
        clock = time.perf_counter()
        try:
            with stage(name) if name else nullcontext():
                yield
        finally:
            if monitor is None:
                seconds = time.perf_counter() - clock
                told = f"uvm, {plain_name(name, 40)}" if name else "uvm"
                print(f"{told}: {clock_text(seconds)}, not watched: {problem}")
            else:
                end_seconds = _now(monitor)
                if own is not None:
                    own.stop()
                self._last = recording = monitor.recording()
                now = of_lines.recording().lines if of_lines is not None else None
                moved = now.since(lines) if now is not None else None
                recording = dataclasses.replace(recording, lines=moved)
                print(cell_summary(recording, begin_seconds, end_seconds, name))

    def _monitor_of_lines(self, device_ids: tuple[int, ...]) -> Monitor:
        """Return a monitor that tells lines, and goes on: one that runs, or else a new one."""
        found = _found(("--lines",), device_ids)
        if found is None:
            found = self._of_lines = _temporary(("--lines",))
        return found


def _awaits(error: SyntaxError) -> bool:
    """Whether a cell is right but for code that has to run in an event loop."""
    said = error.msg or ""
    return "outside" in said and ("await" in said or "async" in said)


def _found(wanted: tuple[str, ...], device_ids: tuple[int, ...] = ()) -> Monitor | None:
    """Return the monitor that started last, of those with these sources and devices, or None."""
    for monitor in reversed(running()):
        sources = monitor.sources
        watched = {facts.device_id for facts in monitor.devices}
        if watched.issuperset(device_ids) and all(sources.get(_OPTIONS[each]) for each in wanted):
            return monitor
    return None


def _of_all_devices() -> list[Monitor]:
    """Return the last monitors that watch what is watched now, in order of their devices."""
    found: list[Monitor] = []
    watched: set[int] = set()
    for monitor in reversed(running()):
        devices = {facts.device_id for facts in monitor.devices}
        if not devices <= watched:
            found.append(monitor)
            watched |= devices
    return sorted(found, key=lambda monitor: min(facts.device_id for facts in monitor.devices))


def _temporary(wanted: tuple[str, ...]) -> Monitor:
    # Nothing is to be warned of: the advice is printed below the cell.
    return Monitor(
        faults="--faults" in wanted,
        attribution="--attribution" in wanted,
        lines="--lines" in wanted,
        on_finding=None,
        publish=False,
    ).start()


def _now(monitor: Monitor) -> float:
    """Take a sample, look at it, and return its time since the monitor began, in seconds."""
    monitor._tick()  # so that advice about this cell is there when it ends
    return monitor.recording().duration_seconds
