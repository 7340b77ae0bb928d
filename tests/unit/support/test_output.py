# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results reach their file whole, or not at all."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import pty
import struct
import termios
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.support.output import columns_of, written_whole


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
