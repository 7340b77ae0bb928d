# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Folders and processes of a command that do not outlive it, also where a signal ends it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rmm_uvm.run.termination import tell_before

__all__ = ["ended_with_us", "temporary_folder"]

_CHILD_SECONDS = 5.0  # a child that ends by SIGTERM does so at once
_duties: list[Callable[[], None]] = []  # the newest last


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that goes with the context, or with a signal that ends this process.

    Parameters
    ----------
    prefix : str
        What its name begins with.
    """
    # Named by us: what is to be removed is known before it is there.
    path = Path(tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    with _done_before_ending(remove):
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path)


@contextlib.contextmanager
def ended_with_us(child: subprocess.Popen[Any]) -> Iterator[None]:
    """End a child process where a signal ends this one, before folders go that it writes to."""

    def end() -> None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_CHILD_SECONDS)

    with _done_before_ending(end):
        yield


@contextlib.contextmanager
def _done_before_ending(duty: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # no handler can be set from here
        return
    _duties.append(duty)
    take_back = tell_before(_do_all)  # of inner contexts nothing: the outermost one's does all
    try:
        yield
    finally:
        take_back()
        _duties.remove(duty)


def _do_all(number: int) -> None:
    del number
    for duty in reversed(_duties):
        duty()
