# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a machine can run out of: threads, descriptors, room on a disk and addresses.

All of this process, for as long as an operation takes, and taken back at once.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .world import MIB, World

_ATTRIBUTES_BYTES = 64  # of pthread_attr_t, 56 on x86-64
_NO_STACK_BYTES = 1 << 46  # more addresses than a process has


def _limited(which: int, limit: int) -> Callable[[], None]:
    """Set a soft limit; return what sets it back."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (limit, before[1]))
    return lambda: resource.setrlimit(which, before)


@contextmanager
def no_threads(_world: World) -> Iterator[Callable[[], bool]]:
    """Let no thread begin, of Python or of C++: none gets a stack."""
    library = ctypes.CDLL(None)
    before, without = (ctypes.create_string_buffer(_ATTRIBUTES_BYTES) for _ in range(2))
    library.pthread_getattr_default_np(before)
    library.pthread_getattr_default_np(without)
    library.pthread_attr_setstacksize(without, ctypes.c_size_t(_NO_STACK_BYTES))
    assert library.pthread_setattr_default_np(without) == 0
    try:
        yield lambda: True
    finally:
        assert library.pthread_setattr_default_np(before) == 0


@contextmanager
def no_addresses(_world: World) -> Iterator[Callable[[], bool]]:
    """Leave addresses for small things, and none for a slab."""
    kibibytes = next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmSize:")
    )
    undo = _limited(resource.RLIMIT_AS, kibibytes * 1024 + MIB)
    try:
        yield lambda: True
    finally:
        undo()


def descriptors(spare: int) -> Callable[[World], object]:
    """Leave so many descriptors for new files."""

    @contextmanager
    def few(_world: World) -> Iterator[Callable[[], bool]]:
        taken = set()
        for link in list(Path("/proc/self/fd").iterdir()):
            with suppress(OSError):  # the listing's own, which is free again
                link.readlink()
                taken.add(int(link.name))
        limit = left = 0
        while left <= spare:
            left += limit not in taken
            limit += 1
        undo = _limited(resource.RLIMIT_NOFILE, limit - 1)
        try:
            yield lambda: True
        finally:
            undo()

    return few


def room(nbytes: int) -> Callable[[World], object]:
    """Let no file grow past so many bytes, as on a full disk."""

    @contextmanager
    def little(_world: World) -> Iterator[Callable[[], bool]]:
        undo = _limited(resource.RLIMIT_FSIZE, nbytes)
        try:
            yield lambda: True
        finally:
            undo()

    return little
