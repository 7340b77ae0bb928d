# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Takes away what a machine can run out of: threads, descriptors, disk space and addresses.

All of this process, for as long as an operation takes, and taken back at once. The kernel does not
tell whether any of it was missed: what comes of the operation does.
"""

from __future__ import annotations

import ctypes
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .harness import Fault
from .world import World
from .world import threads as threads_of_process

_ATTRIBUTES_BYTES = 64  # of pthread_attr_t, 56 on x86-64
_STACK_BYTES = 1 << 30  # more than all else that an operation takes addresses for
_OTHER_BYTES = _STACK_BYTES // 2


def _address_bytes() -> int:
    """Return for how many bytes this process has addresses, those of threads that ended aside.

    The C library keeps the stack of a thread that ends until the next one does: it would be there
    for a thread that is to get none, or be given back, and leave room for a slab.
    """
    before = threads_of_process()
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    threads_of_process(before)  # a thread of Python that was joined may not have ended yet
    status = Path("/proc/self/status").read_text()
    size = next(line for line in status.splitlines() if line.startswith("VmSize:"))
    return int(size.split()[1]) * 1024


def _limited(which: int, limit: int) -> Callable[[], None]:
    """Set a soft limit; return what sets it back."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (limit, before[1]))
    return lambda: resource.setrlimit(which, before)


def threads(spare: int) -> Fault:
    """Let so many more threads run at a time, of Python or of C++: the next gets no stack."""

    @contextmanager
    def few(_world: World) -> Iterator[Callable[[], None]]:
        library = ctypes.CDLL(None)
        limit_bytes = _address_bytes() + spare * _STACK_BYTES + _OTHER_BYTES
        before, large = (ctypes.create_string_buffer(_ATTRIBUTES_BYTES) for _ in range(2))
        library.pthread_getattr_default_np(before)
        library.pthread_getattr_default_np(large)
        library.pthread_attr_setstacksize(large, ctypes.c_size_t(_STACK_BYTES))
        assert library.pthread_setattr_default_np(large) == 0
        undo = _limited(resource.RLIMIT_AS, limit_bytes)
        try:
            yield lambda: None
        finally:
            undo()
            assert library.pthread_setattr_default_np(before) == 0

    return few


def addresses(spare_bytes: int) -> Fault:
    """Leave addresses for so many bytes, and none for a slab that is larger."""

    @contextmanager
    def few(_world: World) -> Iterator[Callable[[], None]]:
        undo = _limited(resource.RLIMIT_AS, _address_bytes() + spare_bytes)
        try:
            yield lambda: None
        finally:
            undo()

    return few


def descriptors(spare: int) -> Fault:
    """Leave so many descriptors for new files."""

    @contextmanager
    def few(_world: World) -> Iterator[Callable[[], None]]:
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
            yield lambda: None
        finally:
            undo()

    return few


def room(nbytes: int) -> Fault:
    """Let no file grow past so many bytes, as on a full disk."""

    @contextmanager
    def little(_world: World) -> Iterator[Callable[[], None]]:
        undo = _limited(resource.RLIMIT_FSIZE, nbytes)
        try:
            yield lambda: None
        finally:
            undo()

    return little
