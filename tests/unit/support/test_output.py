# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results reach their file whole, or not at all."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import pty
import re
import stat
import struct
import termios
import threading
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.support import output
from rmm_uvm.support.output import check_writable, columns_of, written_whole


def test_output_written_is_the_only_file_left(tmp_path: Path) -> None:
    with written_whole(tmp_path / "x.json", "the report") as target:
        target.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "whole"


def test_output_on_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("before")

    def fill() -> None:
        with written_whole(path, "the report") as target:
            target.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match=r"the report cannot be written to .*: No space left"):
        fill()
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


def test_output_on_a_read_only_file_system_names_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    for name in ("write_text", "unlink"):  # there even for what does not exist
        monkeypatch.setattr(Path, name, refuse)
    path = tmp_path / "report.html"
    with (
        pytest.raises(
            DataError, match=r"the report cannot be written to .*/report\.html: Read-only"
        ),
        written_whole(path, "the report") as partial,
    ):
        partial.write_text("<!DOCTYPE html>")


def test_output_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupt() -> None:
        with written_whole(tmp_path / "x.json", "the report") as target:
            target.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert list(tmp_path.iterdir()) == []


def test_output_to_a_device_file_is_written_there() -> None:
    with written_whole(Path("/dev/null"), "the report") as target:
        target.write_text("gone")
    assert Path("/dev/null").is_char_device()


# --- beside others -------------------------------------------------------------------------------


def test_writers_of_one_file_at_a_time_all_succeed_and_a_reader_finds_it_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shared.txt"
    texts = {letter * size for letter, size in (("a", 5000), ("b", 70_000), ("c", 200_000))}
    path.write_text("a" * 5000)
    seen: list[str] = []
    failed: list[BaseException] = []

    def save(text: str) -> None:
        try:
            for _ in range(50):
                with written_whole(path, "the report") as target:
                    target.write_text(text)
                seen.append(path.read_text())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(seen) <= texts
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_files_under_way_cannot_be_foreseen(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        with written_whole(tmp_path / "x.json", "the report") as target:
            (under_way,) = tmp_path.glob(".partial-*")
            names.append(under_way.name)
            target.write_text("whole")
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"\.partial-[0-9a-f]{32}", name) for name in names)


def test_file_that_is_put_in_place_of_one_under_way_is_not_written(tmp_path: Path) -> None:
    """As who may write to the folder can do, while a report is being made."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with written_whole(tmp_path / "x.json", "the report") as target:
        (under_way,) = tmp_path.glob(".partial-*")
        under_way.unlink()
        under_way.symlink_to(victim)
        target.write_text("ours")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(("private", "mode"), [(False, 0o640), (True, 0o600)])
def test_file_is_as_the_umask_has_it_or_for_its_user_alone(
    tmp_path: Path,
    private: bool,
    mode: int,
) -> None:
    path = tmp_path / "x.json"
    path.touch(0o666)
    before = os.umask(0o027)
    try:
        with written_whole(path, "the report", private=private) as target:
            (under_way,) = tmp_path.glob(".partial-*")
            assert stat.S_IMODE(under_way.stat().st_mode) == mode
            target.write_text("whole")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_own_link_is_followed_to_a_file_that_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data/x.json")
    for text in ("made", "replaced"):
        with written_whole(tmp_path / "link", "the report") as target:
            assert (tmp_path / "data/x.json").exists() == (text == "replaced")
            target.write_text(text)
        assert (tmp_path / "data/x.json").read_text() == text
        assert (tmp_path / "link").is_symlink()


def test_stream_that_is_a_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "stdout").open("w") as stream:
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{stream.fileno()}")
        inode = os.fstat(stream.fileno()).st_ino
        with written_whole(tmp_path / "link", "the report") as target:
            target.write_text("to the stream")
    assert (tmp_path / "stdout").read_text() == "to the stream"
    assert (tmp_path / "stdout").stat().st_ino == inode


def test_link_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, link = tmp_path / "victim", tmp_path / "x.json"
    victim.write_text("precious")
    link.symlink_to(victim)
    monkeypatch.setattr(os, "geteuid", lambda: link.lstat().st_uid + 1)
    if link.lstat().st_uid == 0:  # root's own links are everybody's: it takes another owner
        os.chown(link, 65534, 65534, follow_symlinks=False)
        monkeypatch.undo()
    told = r"x\.json is a link of another user"
    with (
        pytest.raises(DataError, match=told),
        written_whole(link, "the report") as target,
    ):
        target.write_text("ours")
    with pytest.raises(ConfigurationError, match=told):
        check_writable("--json", link)
    assert victim.read_text() == "precious"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DataError, match="Too many levels"), written_whole(tmp_path / "a", "it"):
        pass


def test_check_leaves_a_file_that_appears_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that somebody makes between two looks does not have us remove what it leads to."""
    victim, path = tmp_path / "victim", tmp_path / "x.json"
    victim.write_text("precious")
    opened = os.open

    def open_late(name: Any, *arguments: Any, **options: Any) -> int:
        if Path(name) == path and not path.is_symlink():
            path.symlink_to(victim)
            raise FileNotFoundError(errno.ENOENT, "not there")
        return opened(name, *arguments, **options)

    monkeypatch.setattr(os, "open", open_late)
    with pytest.raises(ConfigurationError):
        check_writable("--json", path)
    assert victim.read_text() == "precious"


def test_file_that_is_a_mount_of_its_own_is_copied_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text("a longer text before")
    inode = path.stat().st_ino

    def busy(self: Path, target: Path) -> Path:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "replace", busy)
    with written_whole(path, "the report") as target:
        target.write_text("whole")
    assert (path.read_text(), path.stat().st_ino) == ("whole", inode)
    with pytest.raises(DataError, match="busy"), written_whole(path, "it", private=True) as target:
        target.write_text("secret")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.json", "whole")]


def test_file_is_written_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_DESCRIPTORS", tmp_path / "no proc")
    with written_whole(tmp_path / "x.json", "the report") as target:
        target.write_text("whole")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.json", "whole")]


@pytest.mark.parametrize(("streams", "refused"), [(True, False), (False, True)])
def test_stream_belongs_to_nobody_known_in_a_user_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, streams: bool, refused: bool
) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "stdout").symlink_to("file")
    looked = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        fields = list(looked(self))
        fields[stat.ST_UID] = 65534
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(output, "_OF_STREAMS", (str(tmp_path),) if streams else ())
    if refused:
        with pytest.raises(ConfigurationError, match="another user"):
            check_writable("--json", tmp_path / "stdout")
    else:
        check_writable("--json", tmp_path / "stdout")


def test_check_refuses_what_only_another_user_may_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text("theirs")
    tmp_path.chmod(0o1777)
    check_writable("--json", path)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigurationError, match="sticky"):
        check_writable("--json", path)
    tmp_path.chmod(0o777)
    check_writable("--json", path)


def test_check_refuses_a_file_in_a_folder_where_none_can_be_made(tmp_path: Path) -> None:
    # What replaces it is made beside it; /proc is a folder where even root makes none.
    with pytest.raises(ConfigurationError, match="--json /proc/self/oom_score_adj cannot be"):
        check_writable("--json", Path("/proc/self/oom_score_adj"))
    check_writable("--json", Path("/proc/self/oom_score_adj"), in_place=True)


# --- terminals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "expected"), [(60, 60), (200, 80), (10, 40), (0, 80)])
def test_text_is_as_wide_as_a_narrow_terminal_and_no_wider_than_it_was(
    columns: int, expected: int
) -> None:
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with os.fdopen(os.dup(theirs), "w") as terminal:
            assert columns_of(terminal, 80) == expected
    finally:
        os.close(ours)
        os.close(theirs)


def test_text_for_what_is_no_terminal_keeps_its_width(tmp_path: Path) -> None:
    assert columns_of(io.StringIO(), 80) == 80
    with (tmp_path / "file").open("w") as file:
        assert columns_of(file, 80) == 80
