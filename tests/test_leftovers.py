# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The check for what tests leave behind finds that, and nothing that is about to end."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import rmm

import rmm_uvm

from .leftovers import Before, let_go_of_failure

WATCHING = "AsyncProcess Dask Worker process (from Nanny) watch process join"


class Late(threading.Thread):
    """Ends when it is joined: the machine was busy until then."""

    def __init__(self, name: str) -> None:
        self.ends = threading.Event()
        super().__init__(target=self.ends.wait, name=name, daemon=True)

    def join(self, timeout: float | None = None) -> None:
        self.ends.set()
        super().join(timeout)


class Stuck(Late):
    """Does not end, whoever joins it."""

    def join(self, timeout: float | None = None) -> None:
        threading.Thread.join(self, timeout)


@contextlib.contextmanager
def running(thread: Late) -> Iterator[None]:
    thread.start()
    try:
        yield
    finally:
        thread.ends.set()
        thread.join(30)


@pytest.mark.parametrize("name", [WATCHING, WATCHING.replace("process join", "message queue")])
def test_thread_of_dask_that_is_late_to_end_is_not_left_behind(name: str) -> None:
    before = Before()
    with running(Late(name)):
        assert before.left_behind() == []


def test_thread_of_dask_that_does_not_end_is_left_behind() -> None:
    before = Before(patience_seconds=0.01)
    with running(Stuck(WATCHING)):
        (left,) = before.left_behind()
        assert WATCHING in left


def test_thread_of_ours_that_is_late_to_end_is_left_behind() -> None:
    before = Before()
    with running(Late("rmm_uvm advisor")):
        (left,) = before.left_behind()
        assert "rmm_uvm advisor" in left


def test_thread_that_was_there_before_is_neither_waited_for_nor_left_behind() -> None:
    with running(Stuck(WATCHING)):
        assert Before().left_behind() == []


def test_open_file_is_left_behind_until_it_is_closed(tmp_path: Path) -> None:
    before = Before()
    with (tmp_path / "open").open("w"):
        assert before.left_behind() == [str(tmp_path / "open")]
    assert before.left_behind() == []


def test_managed_memory_that_nobody_frees_is_left_behind() -> None:
    before = Before()
    mr = rmm_uvm.mr.ManagedMemoryResource(rmm_uvm.simulated_device("64MiB"), prefetch="never")
    address = mr.allocate(8 << 20)
    assert before.left_behind() == [f"{8 << 20} bytes of managed memory"]
    mr.deallocate(address, 8 << 20)
    assert before.left_behind() == []


def test_pool_of_a_test_that_failed_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def cause() -> None:
        pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
        assert rmm.DeviceBuffer(size=1, mr=pool) is None

    def fail() -> None:
        pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="16MiB")
        try:
            cause()
        except AssertionError as error:
            raise ValueError(str(pool)) from error

    before = Before()
    try:
        fail()
    except Exception as error:
        monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert before.left_behind() == [f"{24 << 20} bytes of managed memory"]
    let_go_of_failure()
    assert before.left_behind() == []


@pytest.mark.parametrize("name", ["rmm_uvm.leftovers", "rmm_uvm", None])
def test_level_of_a_logger_is_left_behind_where_later_tests_read_its_records(
    name: str | None,
) -> None:
    before, logger = Before(), logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    found = before.left_behind()
    logger.setLevel(level)
    assert found == [f"the level ERROR of logger {name or 'root'}"]
    assert before.left_behind() == []
