# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The board: publishing, reading, what the dead leave behind, and what must not be trusted."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.watch.telling import board
from rmm_uvm.watch.telling.board import Board, Published, board_directories, read_board
from rmm_uvm.watch.telling.publishing import Publisher

from ....anomalies.faults import descriptors
from ....anomalies.world import World

FIGURES: Mapping[str, Any] = {
    "interval_seconds": 0.1,
    "devices": [{"device_id": 0}],
    "snapshots": [{"footprint_bytes": 5}],
    "sources": {"nvml": "no NVML"},
    "findings": ["device 0: full"],
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "rmm-uvm"


def published(directory: Path, **changes: object) -> Path:
    """Put a file on the board that says what `changes` say."""
    place = Board([directory])
    place.publish(FIGURES)
    [path] = directory.glob("*.json")
    raw = {**json.loads(path.read_text()), **changes}
    path.unlink()
    path = directory / "other.json"
    path.write_text(json.dumps(raw))
    path.chmod(0o600)
    return path


def test_published_figures_are_read_back(directory: Path) -> None:
    Board([directory]).publish(FIGURES)

    [found] = read_board([directory])

    assert isinstance(found, Published)
    assert found.pid == os.getpid()
    assert found.snapshots == ({"footprint_bytes": 5},)
    assert found.sources == {"nvml": "no NVML"}
    assert found.findings == ("device 0: full",)
    assert found.command
    assert 0 <= found.age_seconds < 100


def test_only_the_user_can_read_the_board(directory: Path) -> None:
    Board([directory]).publish(FIGURES)

    [path] = directory.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_publishing_again_replaces_and_leaves_no_other_file(directory: Path) -> None:
    place = Board([directory])
    place.publish(FIGURES)
    place.publish({**FIGURES, "findings": []})

    assert [found.findings for found in read_board([directory])] == [()]
    assert len(list(directory.iterdir())) == 1


def test_two_monitors_of_a_process_have_a_place_each(directory: Path) -> None:
    places = Board([directory]), Board([directory])
    for place in places:
        place.publish(FIGURES)

    assert len(read_board([directory])) == 2
    places[0].remove()
    assert len(read_board([directory])) == 1
    places[1].remove()
    places[1].remove()
    assert list(directory.iterdir()) == []


def test_what_a_dead_process_left_is_removed(directory: Path) -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "import os, sys; from pathlib import Path\n"
            "from rmm_uvm.watch.telling.board import Board\n"
            f"Board([Path({str(directory)!r})]).publish({FIGURES!r}); os._exit(0)",
        ],
        check=True,
        timeout=60,
    )
    assert child.returncode == 0
    assert len(list(directory.iterdir())) == 1

    assert read_board([directory]) == []
    assert list(directory.iterdir()) == []


def test_monitor_that_starts_removes_what_the_dead_left_and_had_not_finished(
    directory: Path,
) -> None:
    program = (
        "import os, sys; from pathlib import Path; from rmm_uvm.watch.telling.board import Board\n"
        f"place = Board([Path({str(directory)!r})]); place.publish({FIGURES!r})\n"
        "Path.replace = lambda *_: os._exit(0)  # killed while it writes\n"
        f"place.publish({FIGURES!r})"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)
    assert sorted(path.suffix for path in directory.iterdir()) == [".json", ".new"]

    place = Board([directory])
    assert list(directory.iterdir()) == []
    place.publish(FIGURES)
    assert len(read_board([directory])) == 1


def test_what_is_being_written_stays_where_its_writer_lives_or_cannot_be_seen(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Board([directory])
    with monkeypatch.context() as changed:
        changed.setattr(Path, "replace", lambda *_: None)
        place.publish(FIGURES)
    [mine] = directory.iterdir()
    name, _, namespace = mine.stem.rpartition("-")
    dead = f"{2**22 + 1}-7f"  # more than a process number can be
    kept = {mine.name, f"{dead}-{int(namespace) + 1}.new", f"{dead}.new", "x.new"}
    for each in (*kept, f"{dead}-{namespace}.new"):
        (directory / each).touch(mode=0o600)

    assert read_board([directory]) == []
    assert {path.name for path in directory.iterdir()} == kept
    assert name.startswith(f"{os.getpid()}-")


def test_file_of_a_process_number_used_again_is_removed(directory: Path) -> None:
    path = published(directory, started="12")

    assert read_board([directory]) == []
    assert not path.exists()


@pytest.mark.parametrize(
    "changes", [{"namespace": "pid:[1]", "started": "12"}, {"version": 99, "pid": 2**22 + 1}]
)
def test_file_of_another_container_or_version_is_skipped_and_kept(
    directory: Path, changes: dict[str, object]
) -> None:
    path = published(directory, **changes)

    assert read_board([directory]) == []
    assert path.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"version": 1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"version": 1, "namespace": 5, "pid": "x"}',
    ],
)
def test_damaged_file_is_skipped(directory: Path, content: bytes) -> None:
    Board([directory]).publish(FIGURES)
    (directory / "damaged.json").write_bytes(content)
    (directory / "damaged.json").chmod(0o600)

    assert len(read_board([directory])) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("devices", 5),
        ("snapshots", None),
        ("sources", "x"),
        ("pid", "abc"),
        ("pid", float("inf")),
        ("published_seconds", float("inf")),
        ("interval_seconds", float("nan")),
    ],
)
def test_field_of_another_type_is_skipped(directory: Path, name: str, value: object) -> None:
    published(directory, **{name: value})

    assert read_board([directory]) == []


def test_link_and_pipe_are_not_followed(directory: Path, tmp_path: Path) -> None:
    path = published(directory)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    os.mkfifo(directory / "pipe.json")

    assert read_board([directory]) == []


def test_directory_that_is_open_to_others_is_refused(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)

    with pytest.raises(AvailabilityError, match="open to others"):
        Board([directory])
    assert read_board([directory]) == []


def test_directory_of_another_user_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.mkdir()
    monkeypatch.setattr(board.os, "geteuid", lambda: 12345)

    with pytest.raises(AvailabilityError, match="belongs to another user"):
        Board([directory])
    assert read_board([directory]) == []


def test_link_instead_of_the_directory_is_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    directory.symlink_to(tmp_path / "real")

    with pytest.raises(AvailabilityError, match="not a directory"):
        Board([directory])


def test_first_directory_that_can_be_used_is(tmp_path: Path) -> None:
    Board([tmp_path / "missing" / "below", tmp_path / "there"]).publish(FIGURES)

    assert len(read_board([tmp_path / "missing" / "below", tmp_path / "there"])) == 1


def test_directory_removed_meanwhile_is_one_line(directory: Path) -> None:
    place = Board([directory])
    directory.rmdir()

    with pytest.raises(AvailabilityError, match="cannot be published") as caught:
        place.publish(FIGURES)

    assert len(str(caught.value).splitlines()) == 1
    place.remove()


def test_directories_follow_the_runtime_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/5")
    assert board_directories()[0] == Path("/run/user/5/rmm-uvm")

    for value in ("", "relative"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert [path.name for path in board_directories()] == [f"rmm-uvm-{os.geteuid()}"]


class Refusing:
    """A board that cannot be written."""

    def publish(self, figures: Mapping[str, Any]) -> None:
        raise AvailabilityError("disk full")

    def remove(self) -> None:
        """Nothing is there."""


def publish(publisher: Publisher) -> None:
    publisher.publish(
        interval_seconds=0.1,
        devices=[],
        snapshots=[],
        sources={"nvml": Availability(available=True)},
        findings=[],
    )


def test_publisher_is_due_once_a_second(directory: Path) -> None:
    now = [0.0]
    publisher = Publisher(lambda: Board([directory]), lambda: now[0])
    assert publisher.due
    publish(publisher)
    assert not publisher.due
    now[0] = 1.0
    assert publisher.due
    publisher.close()
    assert not publisher.due
    assert read_board([directory]) == []


def test_publisher_that_fails_says_why_and_recovers(directory: Path) -> None:
    publisher = Publisher(lambda: Refusing())  # type: ignore[arg-type, return-value]
    publish(publisher)

    assert publisher.available.reason == "disk full"
    publisher._board = Board([directory])
    publish(publisher)
    assert publisher.available
    publisher.close()


def test_process_that_cannot_be_looked_up_keeps_its_publication(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Board([directory])
    place.publish(FIGURES)
    place._new.touch()

    def no_descriptor(*_arguments: object, **_settings: object) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", no_descriptor)
        assert read_board([directory]) == []
    assert place._new.exists()
    assert len(read_board([directory])) == 1


@pytest.mark.parametrize("spare", range(2))
def test_board_without_a_descriptor_says_so(directory: Path, tmp_path: Path, spare: int) -> None:
    Board([directory]).publish(FIGURES)
    with descriptors(spare)(World(tmp_path)):
        if spare:
            assert len(read_board([directory])) == 1
            return
        with pytest.raises(AvailabilityError, match="Too many open files"):
            read_board([directory])
        with pytest.raises(AvailabilityError, match="Too many open files"):
            Board([directory])
