# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Rounds of random programs, each in a process of its own that is watched.

    ci/chaos.sh [--gpu] [SECONDS [SEED]]

A round is what one seed makes, so that what a round found is found again by its seed alone.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from . import unseen
from .chaos import Chaos
from .on_gpu import ChaosOnGpu

PROGRAMS = 12  # of a round
STEPS = 50  # of a program
# A program takes 0.3 s alone on a machine of two processors; where it takes so many times as long,
# it hangs.
USUAL_SECONDS, MOST_TIMES = 0.3, 100
MOST_SECONDS_ON_GPU = 60
_MOST_SECONDS_TO_SAY_IT = 10


@dataclass
class Round:
    """What came of one: `finding` is "" where all was right."""

    seed: int
    programs: int
    operations: int
    seconds: float
    finding: str


def rounds(
    seconds: float,
    first_seed: int,
    folder: Path,
    programs: type[Chaos] = Chaos,
    most_seconds: float = USUAL_SECONDS * MOST_TIMES,
) -> Iterator[Round]:
    """Try one seed after the other: at least the first, and others while there is time.

    Parameters
    ----------
    folder : Path
        Keeps what a round wrote that found something, and a line for every round.
    most_seconds : float
        A program that takes longer hangs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    number = first_seed
    while number == first_seed or time.monotonic() < until:
        done = _round(number, folder / f"{number}.log", programs, most_seconds)
        with (folder / "rounds.jsonl").open("a") as file:
            file.write(json.dumps(vars(done)) + "\n")
        yield done
        number += 1


def _round(number: int, log: Path, programs: type[Chaos], most_seconds: float) -> Round:
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as places:  # of processes that may be killed
        return _watched(number, log, programs, most_seconds, places)


def _watched(
    number: int, log: Path, programs: type[Chaos], most_seconds: float, places: str
) -> Round:
    begin = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _try_programs(number, log, programs, writing, places)
    os.close(writing)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(child, child)  # as it does itself: whoever comes first
    told, hangs = b"", False
    ended = os.pidfd_open(child)  # processes that it began may keep the pipe open
    with os.fdopen(reading, "rb", buffering=0) as progress:
        while True:
            ready, _, _ = select.select([progress, ended], [], [], most_seconds)
            if progress in ready and (more := progress.read(4096)):
                told += more
                continue
            hangs = not ready
            break
    if hangs:
        _say_where(child, log)
        select.select([ended], [], [], _MOST_SECONDS_TO_SAY_IT)
    os.close(ended)
    _end_group(child)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    begun, _, operations = told.partition(b"=")
    finding = ""
    if hangs:
        finding = f"a program hangs: it took more than {most_seconds:g} s"
    elif status < 0:
        finding = f"the process was ended by {signal.Signals(-status).name}"
    elif status > 0:
        finding = "a program went wrong"
    else:
        log.unlink()
    return Round(
        number,
        len(begun),
        int(operations or 0),
        round(time.monotonic() - begin, 1),
        finding,
    )


def _try_programs(
    number: int, log: Path, programs: type[Chaos], progress: int, places: str
) -> NoReturn:
    """Try the programs of a seed, in a process that ends with them."""
    status = 1
    try:
        os.setpgid(0, 0)
        output = log.open("a")  # whoever looks at a hang writes there, too
        for standard in (1, 2):
            os.dup2(output.fileno(), standard)
        sys.stdout = sys.stderr = output  # pytest may have put others there
        faulthandler.enable(2)

        class Told(programs):  # type: ignore[valid-type, misc]
            def __init__(self) -> None:
                os.write(progress, b".")
                super().__init__()

        os.environ["XDG_RUNTIME_DIR"] = tempfile.tempdir = places
        unseen.note_exceptions()
        random.seed(number)
        gc.freeze()
        run_state_machine_as_test(
            seed(number)(type(programs.__name__, (Told,), {})),
            settings=settings(
                max_examples=PROGRAMS,
                stateful_step_count=STEPS,
                phases=[Phase.generate],
                derandomize=False,
                database=None,
                deadline=None,
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
        gc.collect()
        unseen.nothing_was_noted()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            output.flush()
            os.write(progress, b"=%d" % Chaos.operations)
        os._exit(status)


def _say_where(child: int, log: Path) -> None:
    """Append to the log where all threads of a group of processes are, and let them say it too."""
    with log.open("ab") as output:
        for process in _group(child):
            for task in sorted(Path(f"/proc/{process}/task").glob("*")):
                with contextlib.suppress(OSError):
                    name, where = (task / "comm").read_text(), (task / "wchan").read_text()
                    output.write(f"{process} {task.name} {name.strip()}: {where}\n".encode())
            if gdb := shutil.which("gdb"):
                output.flush()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(
                        [gdb, "-p", str(process), "-batch", "-ex", "thread apply all bt 16"],
                        stdout=output,
                        stderr=subprocess.DEVNULL,
                        timeout=30,
                        check=False,
                    )
    for process in _group(child):  # one after the other: they write into one file
        with contextlib.suppress(OSError):
            ends = os.pidfd_open(process)
            os.kill(process, signal.SIGABRT)  # faulthandler writes the stacks of Python
            select.select([ends], [], [], _MOST_SECONDS_TO_SAY_IT)
            os.close(ends)


def _group(child: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == child:
                found.append(int(path.parent.name))
    return found


def _end_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def main(words: list[str], folder: Path) -> int:
    """Return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="ci/chaos.sh", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "seconds",
        type=float,
        nargs="?",
        default=60,
        help="for so long seeds are tried, one at least",
    )
    parser.add_argument("seed", type=int, nargs="?", help="the first one; by default a new one")
    parser.add_argument("--gpu", action="store_true", help="on the first GPU, not a simulated one")
    arguments = parser.parse_args(words)
    first = arguments.seed
    if first is None:
        first = random.SystemRandom().randrange(1 << 32)
    print(f"chaos: seeds from {first}", flush=True)
    done = []
    on: Any = (ChaosOnGpu, MOST_SECONDS_ON_GPU) if arguments.gpu else ()
    for each in rounds(arguments.seconds, first, folder, *on):
        done.append(each)
        if each.finding:
            print(f"FOUND with seed {each.seed}: {each.finding}")
            print((folder / f"{each.seed}.log").read_text(errors="replace")[-6000:])
            print(f"all of it: {folder / f'{each.seed}.log'}")
            print(f"once more: ci/chaos.sh{' --gpu' * arguments.gpu} 1 {each.seed}", flush=True)
    findings = [each.seed for each in done if each.finding]
    print(
        f"chaos: {sum(each.seconds for each in done):.0f} s, seeds {first} to {done[-1].seed}, "
        f"{sum(each.programs for each in done)} programs, "
        f"{sum(each.operations for each in done)} operations, "
        f"{len(findings)} findings {findings or ''}"
    )
    return 1 if findings else 0
