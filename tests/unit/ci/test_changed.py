# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a change has, as CI's scripts ask: where nobody knows, it may have everything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ...support.snippets import REPOSITORY

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")


class Clone:
    """A clone whose origin has one commit, with a file ``core/a``."""

    def __init__(self, folder: Path) -> None:
        origin, self.folder = folder / "origin", folder / "clone"
        origin.mkdir()
        (origin / "core").mkdir()
        (origin / "core/a").touch()
        self.git("init", "-q", "-b", "main", folder=origin)
        self.commit(origin)
        self.git("clone", "-q", str(origin), str(self.folder), folder=folder)

    def git(self, *words: str, folder: Path | None = None) -> None:
        subprocess.run([*GIT, *words], cwd=folder or self.folder, check=True)

    def commit(self, folder: Path | None = None) -> None:
        self.git("add", "-A", folder=folder)
        self.git("commit", "-q", "--allow-empty", "-m", "a", folder=folder)

    def changed(self, *paths: str, since: str = "") -> bool:
        sourced = f". {REPOSITORY}/ci/prerequisites.sh; repository={self.folder}; changed"
        done = subprocess.run(
            ["bash", "-c", f'{sourced} "$@"', "_", *paths],
            env={**os.environ, "CHANGED_SINCE": since},
            check=False,
        )
        return done.returncode == 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_what_is_where_origin_is_may_have_changed_everything(clone: Clone) -> None:
    assert clone.changed("core")
    clone.git("remote", "remove", "origin")
    assert clone.changed("core")


def test_commits_since_origin_change_what_they_name_alone(clone: Clone) -> None:
    (clone.folder / "b").touch()
    clone.commit()
    assert not clone.changed("core")
    assert clone.changed("core", "b")
    (clone.folder / "core/a").unlink()
    assert clone.changed("core")


def test_files_that_are_not_committed_are_changes_too(clone: Clone) -> None:
    clone.commit()
    assert not clone.changed("core")
    (clone.folder / "core/b").touch()
    assert clone.changed("core")


def test_commit_that_is_named_is_the_one_that_counts(clone: Clone) -> None:
    (clone.folder / "core/b").touch()
    clone.commit()
    assert clone.changed("core")
    assert not clone.changed("core", since="HEAD")
    assert clone.changed("core", since="no such commit")
