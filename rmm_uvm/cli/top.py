# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm top``: a live view of processes that use managed memory."""

from __future__ import annotations

import json
import sys
import time

import click

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.numbers import Pid, finite
from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.loop import can_live, look_twice, run_live, shown
from rmm_uvm.top.machine import real_seams
from rmm_uvm.top.seams import Seams

__all__ = ["command", "watch"]


@click.command("top")
@click.argument("pids", metavar="[PID]...", nargs=-1, type=Pid())
@click.option(
    "--interval",
    callback=finite,
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two tables.",
)
@click.option(
    "--faults",
    is_flag=True,
    help="Count page faults too; a program that only faults takes up to 10 % longer.",
)
@click.option("--once", is_flag=True, help="Print one table and leave.")
@click.option("--json", "as_json", is_flag=True, help="Print one look as JSON, sizes in bytes.")
def command(
    *, pids: tuple[int, ...], interval: float, faults: bool, once: bool, as_json: bool
) -> None:
    """Show what managed memory moves, live, of any CUDA process.

    Processes that run rmm-uvm publish their figures; to the others this command attaches, as far
    as it may (root, or CAP_SYS_PTRACE in a container), and lets go when they end. You need not
    change them. RESIDENT is device memory behind managed pages: on a simulated device also what the
    driver keeps behind data that left for a BUDGET. IN is to the device, OUT to the host; EVICTED
    is an estimate of what the kernel driver evicted, counted since the process was watched first.
    HARVEST is what lies on other devices; below a device stands who
    holds how much of its idle memory, and what is offered. `q` or Ctrl-C leaves.
    """
    sys.exit(
        watch(real_seams(), pids, interval=interval, faults=faults, once=once, as_json=as_json)
    )


def watch(
    seams: Seams,
    pids: tuple[int, ...],
    *,
    interval: float,
    faults: bool,
    once: bool,
    as_json: bool,
) -> int:
    """Do what the command does; return its exit status."""
    gatherer = Gatherer(seams, pids, faults=faults, interval_seconds=interval, clock=time.monotonic)
    try:
        problems = gatherer.require()
        for problem in problems:
            click.echo(f"Error: {problem}", err=True)
        if problems:
            return 1
        console = make_console()
        if as_json:
            click.echo(json.dumps(look_twice(gatherer, interval).to_dict(), indent=2))
        elif once or not can_live(console):
            console.print(shown(look_twice(gatherer, interval), console))
        else:
            run_live(gatherer, console, interval)
    except KeyboardInterrupt:
        pass  # the way to leave
    finally:
        gatherer.close()
    return 0
