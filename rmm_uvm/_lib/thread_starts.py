# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The error message for a process that can start no more threads."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rmm_uvm.errors import AvailabilityError

# What C++ and Python say then; another RuntimeError has another cause.
_NO_MORE = (os.strerror(errno.EAGAIN), "can't start new thread")


@contextmanager
def starting_thread(what: str, instead: str) -> Iterator[None]:
    """Say whose thread could not begin: Python and C++ raise but a RuntimeError.

    Parameters
    ----------
    what : str
        What has the thread.
    instead : str
        What can be done without it, for the message.

    Raises
    ------
    AvailabilityError
        If there can be no more threads.
    """
    try:
        yield
    except RuntimeError as error:
        if str(error) not in _NO_MORE:
            raise
        raise AvailabilityError(
            f"{what} needs a thread, and there can be no more: {error}; raise the limit "
            f"(ulimit -u, or the container's), or {instead}"
        ) from error
