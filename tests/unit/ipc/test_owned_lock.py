# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A lock that knows its holder, and the cache that leaves work to it."""

from __future__ import annotations

import threading
from typing import Any

from rmm_uvm.ipc.owned_lock import OwnedLock
from rmm_uvm.ipc.slabs import SlabCache


class Slab:
    """Counts what it is told; its exporter lives."""

    def __init__(self) -> None:
        self.openings = 2
        self.released: list[int] = []
        self.table: Any = self
        self.exporter_alive = True

    def release(self, slot: int) -> None:
        self.released.append(slot)


def test_lock_is_held_here_and_not_elsewhere() -> None:
    lock = OwnedLock()
    seen: list[bool] = []
    with lock:
        assert lock.held_here
        thread = threading.Thread(target=lambda: seen.append(lock.held_here or lock.try_acquire()))
        thread.start()
        thread.join()
    assert seen == [False]
    assert not lock.held_here
    assert lock.try_acquire()
    lock.release()


def test_buffer_collected_while_its_own_thread_has_the_lock_is_closed_later() -> None:
    cache, slab = SlabCache(), Slab()
    with cache._lock:
        cache.end(slab, 3, collected=True)  # type: ignore[arg-type]
        cache.end(slab, 4, collected=False)  # type: ignore[arg-type]
        assert slab.released == []
    cache._finish_all()  # as the holder does in `open`
    assert slab.released == [3, 4]
    assert slab.openings == 0


def test_buffer_collected_while_another_thread_has_the_lock_does_not_wait() -> None:
    cache, slab = SlabCache(), Slab()
    with cache._lock:
        thread = threading.Thread(target=cache.end, args=(slab, 3), kwargs={"collected": True})
        thread.start()
        thread.join()
        assert slab.released == []
    cache._finish_all()
    assert slab.released == [3]


def test_buffer_closed_while_another_thread_has_the_lock_waits_for_it() -> None:
    cache, slab = SlabCache(), Slab()
    with cache._lock:
        thread = threading.Thread(target=cache.end, args=(slab, 3), kwargs={"collected": False})
        thread.start()
    thread.join()
    assert slab.released == [3]
