# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm top`` that is stopped and continued: the terminal is the shell's meanwhile."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest

from .terminal import COMMAND, Terminal

SHOWN, HIDDEN = "\x1b[?1049h", "\x1b[?1049l"


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(tmp_path: Path) -> None:
    # GIVEN a shell that runs it, and once it stops looks at the terminal and continues it
    shell = (
        f"stty -g > before; set -m; {shlex.join([*COMMAND, '--interval', '0.1'])}; "
        "stty -g > stopped; stty icanon echo; echo it has stopped; fg; echo ended $?; "
        "stty -g > after"
    )
    terminal = Terminal(tmp_path, shell, command=("bash", "--norc", "-c"))
    terminal.read_until("q quits")
    # WHEN Ctrl-Z is pressed
    terminal.write("\x1a")
    until_stopped, _, since = terminal.read_until("it has stopped").partition("it has stopped")
    # THEN its screen went, and the terminal is as it was
    assert until_stopped.count(SHOWN) == until_stopped.count(HIDDEN) == 1
    # THEN fg draws it anew, and a key needs no Enter
    terminal.output = since
    terminal.read_until(SHOWN)
    terminal.read_until("q quits")
    terminal.write("q")
    terminal.end()
    assert "ended 0" in terminal.output
    modes = [(tmp_path / name).read_text() for name in ("before", "stopped", "after")]
    assert modes[0] == modes[1] == modes[2]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_display_that_was_begun_in_the_background_takes_the_terminal_once_it_has_it(
    tmp_path: Path, threads: str
) -> None:
    # GIVEN one that a shell begins in the background: to take the terminal it has to wait
    shell = (
        f"set -m; {shlex.join([*COMMAND, '--interval', '0.1'])} & "
        "until [[ $(jobs -s) ]]; do sleep 0.05; done; echo it waits; fg; echo ended $?"
    )
    terminal = Terminal(
        tmp_path, shell, command=("bash", "--norc", "-c"), OPENBLAS_NUM_THREADS=threads
    )
    until_waiting, _, since = terminal.read_until("it waits").partition("it waits")
    assert SHOWN not in until_waiting
    # THEN it goes on where fg gives it the terminal
    terminal.output = since
    terminal.read_until("q quits")
    terminal.write("q")
    terminal.end()
    assert "ended 0" in terminal.output


def test_ctrl_z_stops_nothing_where_whoever_began_it_ignores_that(tmp_path: Path) -> None:
    shell = f"trap '' TSTP; {shlex.join([*COMMAND, '--interval', '0.1'])}; echo ended $?"
    terminal = Terminal(tmp_path, shell, command=("bash", "--norc", "-c"))
    terminal.read_until("q quits")
    terminal.write("\x1a")
    terminal.output = ""
    terminal.read_until("q quits")  # the next view
    assert HIDDEN not in terminal.output
    terminal.write("q")
    terminal.end()
    assert "ended 0" in terminal.output


def test_display_that_was_stopped_from_elsewhere_takes_keys_once_it_goes_on(
    tmp_path: Path,
) -> None:
    terminal = Terminal(tmp_path, "--interval", "0.1")
    terminal.read_until("q quits")
    # WHEN it is stopped without having been asked, and the terminal is used by another
    terminal.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
    terminal.set_line_mode()
    terminal.output = ""
    terminal.process.send_signal(signal.SIGCONT)
    # THEN it is drawn anew, and a key needs no Enter
    terminal.read_until(SHOWN)
    terminal.read_until("q quits")
    terminal.write("q")
    assert terminal.end() == 0
