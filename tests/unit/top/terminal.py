# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A terminal for tests of what is shown on one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

COMMAND = [sys.executable, "-c", "from rmm_uvm.cli.main import main; main()", "top"]


class Terminal:
    """A pseudo-terminal with a command on it: ``rmm-uvm top``, if no other is named."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        command: Sequence[str] = COMMAND,
        columns: int = 80,
        **env: str,
    ) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, columns))
        self.process = subprocess.Popen(
            [*command, *words],
            cwd=folder,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder), "TERM": "xterm", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
        )
        os.close(theirs)
        self.output = ""

    def read_until(self, text: str) -> str:
        """Read until the output holds a text; return all of it."""
        while text not in self.output and self._read():
            pass
        assert text in self.output, self.output
        return self.output

    def set_line_mode(self) -> None:
        """Have keys come with the next Enter, and echoed, as a shell does for other programs."""
        mode = termios.tcgetattr(self._ours)
        mode[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(self._ours, termios.TCSANOW, mode)

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to the end; return the exit status."""
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(timeout=30)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 30)
        if not ready:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the last program on the terminal has ended
            return False
        self.output += data.decode(errors="replace")
        return bool(data)
