# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What every target holds its reader to: it accepts, or refuses in a line or two, and no more."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError, UvmError

FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files are written: in memory where that can be; None is the system's place."""


class Finding(AssertionError):  # noqa: N818 - what fuzzing calls it
    """A reader did what it may not do."""


def attempted(
    call: Callable[[], Any], refusals: tuple[type[UvmError], ...] = (DataError, ConfigurationError)
) -> Any:
    """Return what a reader returns, or None if it refuses as it should."""
    try:
        return call()
    except refusals as error:
        text = str(error)
        if not text or len(text) > 600 or text.count("\n") > 1:
            raise Finding(f"not one or two lines: {text[:3000]!r}") from error
        return None


def check_shown(text: str) -> None:
    """Check that a text can be written to a terminal, and does nothing to it."""
    text.encode()  # no half of a character
    if wrong := {one for one in text if not one.isprintable() and one != "\n"}:
        raise Finding(f"a terminal would get {wrong}: {text[:3000]!r}")


@contextlib.contextmanager
def written(data: bytes) -> Iterator[Path]:
    """Write the input to a file."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(data)
        file.flush()
        yield Path(file.name)
