# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Result files name commits of this repository, so that what was measured can be looked at.

Where the history is not whole (a shallow clone, an archive of the sources) nothing is checked.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .scripts import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results"
_COMMIT = re.compile(r'"commit": "([0-9a-f]{7,40})(?:-dirty)?"')
# By file: the history was rewritten after these were measured. No others are to come.
REWRITTEN = {
    "cpp_allocate_free": {"d2bba33"},
    "report_size": {"a1acd72"},
    "sampler_cost": {"43347a4"},
    "trace_cost": {"56c217d"},
}


def commits_of(file: Path) -> set[str]:
    """Return the commits that a result file names."""
    return set(_COMMIT.findall(file.read_text()))


def asked(folder: Path, *words: str) -> str:
    """Return what git says, nothing where it is not there or says an error."""
    try:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def missing(folder: Path, commits: Iterable[str]) -> set[str]:
    """Return those that are not in the history of HEAD; none where it is not whole."""
    if asked(folder, "rev-parse", "--is-shallow-repository") != "false":
        return set()
    history = asked(folder, "rev-list", "HEAD").split()
    return {one for one in commits if not any(each.startswith(one) for each in history)}


def test_results_name_commits_that_exist_but_for_those_before_history_was_rewritten() -> None:
    named = {str(f.relative_to(RESULTS))[:-5]: commits_of(f) for f in RESULTS.rglob("*.json")}
    gone = missing(REPOSITORY, set().union(*named.values()))
    found = {name: commits & gone for name, commits in named.items() if commits & gone}

    assert {name: commits - REWRITTEN.get(name, set()) for name, commits in found.items()} == {
        name: set() for name in found
    }


def test_exceptions_are_in_the_files_that_they_are_made_for() -> None:
    named = {name: commits_of(RESULTS / f"{name}.json") for name in REWRITTEN}

    assert {name: REWRITTEN[name] - commits for name, commits in named.items()} == {
        name: set() for name in REWRITTEN
    }


def repository(folder: Path) -> tuple[Path, str]:
    """Return a repository of two commits, and the last one."""
    folder.mkdir()
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for number in range(2):
        asked(folder, *author, "commit", "-q", "--allow-empty", "-m", str(number))
    return folder, asked(folder, "rev-parse", "--short", "HEAD")


def test_commit_that_is_not_in_the_history_is_found(tmp_path: Path) -> None:
    made, commit = repository(tmp_path / "whole")
    result = tmp_path / "result.json"
    result.write_text(f'{{"commit": "{commit}-dirty", "rows": [{{"commit": "0123456"}}]}}')

    assert commit
    assert commits_of(result) == {commit, "0123456"}
    assert missing(made, commits_of(result)) == {"0123456"}


def test_history_that_is_not_whole_finds_nothing(tmp_path: Path) -> None:
    made, _ = repository(tmp_path / "whole")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", made.as_uri(), str(shallow)], check=True)

    assert missing(shallow, {"0123456"}) == set()
    assert missing(tmp_path, {"0123456"}) == set()
