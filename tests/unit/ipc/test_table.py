# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Lease tables: the file in /dev/shm, and both sides of it in one process."""

from __future__ import annotations

import gc
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.ipc import table as tables
from rmm_uvm.ipc.table import SLOTS, LeaseTable, RemoteTable, is_own


def file_of(table: LeaseTable) -> Path:
    return Path("/dev/shm") / f"rmm-uvm-ipc-{table.name.hex()}"


def test_table_is_for_this_user_only_and_goes_with_its_owner() -> None:
    table = LeaseTable()
    path = file_of(table)
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_uid == os.geteuid()
    assert is_own(table.name)
    name = table.name
    del table
    gc.collect()
    assert not path.exists()
    assert not is_own(name)
    with pytest.raises(AvailabilityError, match="has ended or dropped its pool"):
        RemoteTable(name)


def test_handle_for_one_reader_says_that_it_was_opened_once() -> None:
    table = LeaseTable()
    generation = table.file.begin(5, 1)
    reader = RemoteTable(table.name)
    reader.acquire(5, generation)
    with pytest.raises(AvailabilityError, match=r"opened once, as often as it may: .*readers=2"):
        reader.acquire(5, generation)
    reader.release(5)


def test_two_openings_of_a_slot_are_let_go_of_one_by_one() -> None:
    table = LeaseTable()
    generation = table.file.begin(5, 2)
    reader = RemoteTable(table.name)
    assert reader.process == os.getpid()
    reader.acquire(5, generation)
    reader.acquire(5, generation)
    with pytest.raises(AvailabilityError, match="opened 2 times, as often as it may"):
        reader.acquire(5, generation)
    reader.release(5)
    assert reader.in_use
    assert not table.file.try_end(5)
    reader.release(5)
    assert not reader.in_use
    assert table.file.try_end(5)
    with pytest.raises(AvailabilityError, match="lease of this handle has ended"):
        reader.acquire(5, generation)
    reader.release(5)  # nothing is open: nothing happens
    assert not reader.in_use


def test_reader_sees_the_exporter_go() -> None:
    table = LeaseTable()
    generation = table.file.begin(0, 1)
    reader = RemoteTable(table.name)
    assert reader.exporter_alive
    del table
    gc.collect()
    assert not reader.exporter_alive
    with pytest.raises(AvailabilityError, match="its memory is gone"):
        reader.acquire(0, generation)


def test_closed_reader_lets_go_and_does_nothing_more() -> None:
    table = LeaseTable()
    generation = table.file.begin(0, 1)
    reader = RemoteTable(table.name)
    reader.acquire(0, generation)
    reader.close()
    assert table.file.try_end(0)
    reader.release(0)
    assert not reader.exporter_alive


def test_slot_that_no_table_has_is_refused() -> None:
    table = LeaseTable()
    reader = RemoteTable(table.name)
    with pytest.raises(DataError, match=f"lease {SLOTS}: a pool has {SLOTS}"):
        reader.acquire(SLOTS, 0)


@pytest.mark.parametrize("content", [b"", b"x" * 70, b"rmmuvmLT" + bytes(8184), bytes(8192)])
def test_file_that_is_no_table_is_refused(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In /dev/shm any other process with a pool would remove it, as abandoned.
    monkeypatch.setattr(tables, "_FOLDER", tmp_path)
    name = os.urandom(16)
    path = tmp_path / f"rmm-uvm-ipc-{name.hex()}"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DataError, match="a lease table of this version"):
        RemoteTable(name)


def test_link_in_place_of_a_table_is_not_followed(tmp_path: Path) -> None:
    table = LeaseTable()
    name = os.urandom(16)
    path = Path("/dev/shm") / f"rmm-uvm-ipc-{name.hex()}"
    path.symlink_to(file_of(table))
    try:
        with pytest.raises(AvailabilityError, match="cannot be opened"):
            RemoteTable(name)
    finally:
        path.unlink()


def test_abandoned_table_is_removed_and_a_live_one_is_not() -> None:
    live = LeaseTable()
    abandoned = Path("/dev/shm") / f"rmm-uvm-ipc-{os.urandom(16).hex()}"
    # Its mode is right from the beginning: another process may remove it before this one does.
    descriptor = os.open(abandoned, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.write(descriptor, file_of(live).read_bytes())
    os.close(descriptor)
    LeaseTable()
    assert not abandoned.exists()
    assert file_of(live).exists()


@pytest.mark.parametrize(
    ("call", "error"), [("posix_fallocate", 28), ("open", 13), ("link", 18), ("pwrite", 5)]
)
def test_system_that_refuses_is_told_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(error, os.strerror(error))

    name = os.urandom(16)
    monkeypatch.setattr(tables.secrets, "token_bytes", lambda _: name)
    monkeypatch.setattr(tables.os, call, refuse)
    with pytest.raises(AvailabilityError, match=os.strerror(error)):
        LeaseTable()
    assert not (Path("/dev/shm") / f"rmm-uvm-ipc-{name.hex()}").exists()


def test_forked_child_keeps_no_lock_and_no_file() -> None:
    table = LeaseTable()
    generation = table.file.begin(0, 1)
    reader = RemoteTable(table.name)
    reader.acquire(0, generation)
    ready, wait = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        ok = table.file.closed and not reader.exporter_alive and not is_own(table.name)
        os.write(ready[1], b"y" if ok else b"n")
        os.read(wait[0], 1)  # lives on
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"y"
        path = file_of(table)
        assert path.exists()
        reader.release(0)
        assert table.file.try_end(0)
        del table
        gc.collect()
        assert not reader.exporter_alive
    finally:
        os.write(wait[1], b"x")
        os.waitpid(child, 0)
        for descriptor in (*ready, *wait):
            os.close(descriptor)
