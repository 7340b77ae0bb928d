# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a fault uses up is not to be had while it lasts, and is afterwards."""

from __future__ import annotations

import errno
import mmap
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from .faults import descriptors, no_addresses, no_threads, room
from .world import MIB, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def thread_runs() -> bool:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return True


def test_no_threads_lets_none_begin(world: World) -> None:
    with no_threads(world), pytest.raises(RuntimeError, match="can't start new thread"):
        thread_runs()
    assert thread_runs()


def test_no_addresses_leaves_none_for_a_slab(world: World) -> None:
    with no_addresses(world), pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
        mmap.mmap(-1, 8 * MIB)
    mmap.mmap(-1, 8 * MIB).close()


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
    with descriptors(spare)(world):  # type: ignore[attr-defined]
        assert opened(spare + 1) == spare
    assert opened(spare + 1) == spare + 1


@pytest.mark.parametrize("nbytes", [0, 1, 100, 4096, 20_000])
def test_room_lets_a_file_grow_so_far_and_no_farther(world: World, nbytes: int) -> None:
    path = world.folder / "file"
    with room(nbytes)(world), path.open("wb", buffering=0) as file:  # type: ignore[attr-defined]
        if nbytes:
            assert file.write(b"x" * (nbytes + 1)) == nbytes
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            file.write(b"x")
    assert path.stat().st_size == nbytes
    path.write_bytes(b"x" * (nbytes + 1))
