# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a fault uses up is not to be had while it lasts, and is afterwards."""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .faults import addresses, descriptors, room, threads
from .world import MIB, World
from .world import threads as threads_of_process


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    before = threads_of_process()
    yield World(tmp_path)
    # Else the addresses of a thread's stack would be the next test's.
    assert threads_of_process(before) <= before


def thread_runs() -> bool:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return True


def begin(running: list[threading.Thread], most: int, until: threading.Event) -> None:
    """Let so many threads run until an event; those that began are in the list."""
    while len(running) < most:
        thread = threading.Thread(target=until.wait)
        thread.start()
        running.append(thread)


@pytest.mark.parametrize("spare", range(4))
def test_threads_lets_as_many_run_as_it_says(world: World, spare: int) -> None:
    done = threading.Event()
    running: list[threading.Thread] = []
    with threads(spare)(world):
        try:
            with pytest.raises(RuntimeError, match="can't start new thread"):
                begin(running, spare + 1, done)
        finally:
            done.set()
            for thread in running:
                thread.join()
    assert len(running) == spare
    assert thread_runs()


@pytest.mark.parametrize("spare_mib", [1, 9, 17])
def test_addresses_leaves_none_for_a_larger_slab(world: World, spare_mib: int) -> None:
    with (
        addresses(spare_mib * MIB)(world),
        pytest.raises(OSError, match=os.strerror(errno.ENOMEM)),
    ):
        mmap.mmap(-1, (spare_mib + 7) * MIB)
    mmap.mmap(-1, (spare_mib + 7) * MIB).close()


def opened(most: int) -> int:
    """Return how many files can be opened, of so many."""
    files: list[int] = []
    with suppress(OSError):
        while len(files) < most:
            files.append(os.open(os.devnull, os.O_RDONLY))
    for file in files:
        os.close(file)
    return len(files)


@pytest.mark.parametrize("spare", range(5))
def test_descriptors_leaves_as_many_as_it_says(world: World, spare: int) -> None:
    with descriptors(spare)(world):
        assert opened(spare + 1) == spare
    assert opened(spare + 1) == spare + 1


@pytest.mark.parametrize("nbytes", [0, 1, 100, 4096, 20_000])
def test_room_lets_a_file_grow_so_far_and_no_farther(world: World, nbytes: int) -> None:
    path = world.folder / "file"
    with room(nbytes)(world), path.open("wb", buffering=0) as file:
        if nbytes:
            assert file.write(b"x" * (nbytes + 1)) == nbytes
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            file.write(b"x")
    assert path.stat().st_size == nbytes
    path.write_bytes(b"x" * (nbytes + 1))
