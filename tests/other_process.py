# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Another Python process that does what it is told, one line at a time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# Evaluates an expression, or executes statements; answers with its value, or with its error.
_PROGRAM = """
import ctypes, gc, json, os, sys
import rmm, rmm_uvm
from rmm_uvm.ipc.slabs import slabs
names = dict(globals())
for line in sys.stdin:
    code = json.loads(line)
    try:
        try:
            value = eval(compile(code, "told", "eval"), names)
        except SyntaxError:
            exec(compile(code, "told", "exec"), names)
            value = None
        answer = {"value": value.hex() if isinstance(value, bytes) else value}
    except Exception as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
"""


class OtherError(Exception):
    """What the other process raised; begins with the name of its class."""


class OtherProcess:
    """One with `rmm`, `rmm_uvm`, `ctypes` and so on imported."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, code: str) -> None:
        """Let it run code, and do not wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return what it answers next; bytes come as hexadecimal digits."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise OtherError(f"{answer['error']}: {answer['message']}")
        return answer["value"]

    def ask(self, code: str) -> Any:
        """Let it run code; return the value, or raise `OtherError`."""
        self.tell(code)
        return self.answer()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self.signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Let it end; idempotent. Its own children may live on, and keep its pipes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


@contextlib.contextmanager
def other_process() -> Iterator[OtherProcess]:
    """Start one, and end it."""
    process = OtherProcess()
    try:
        yield process
    finally:
        process.end()
