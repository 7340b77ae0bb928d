# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A new contributor's commands in CONTRIBUTING.md fit the sources."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text()


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9-]+", requirement)
    assert match
    return match[0]


def installed_at_set_up() -> set[str]:
    lines = re.findall(r"^    pip install (?!--)(.*)$", TEXT, flags=re.MULTILINE)
    return {name_of(word) for line in lines for word in shlex.split(line)}


def test_set_up_installs_all_that_the_build_requires() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    required = {name_of(one) for one in project["build-system"]["requires"]}
    # RMM brings its library along.
    assert required - installed_at_set_up() == {"librmm-cu13"}


def test_first_change_replaces_text_that_is_there_once() -> None:
    changes = re.findall(r"^    sed -i 's/(.+)/(.+)/' (\S+)$", TEXT, flags=re.MULTILINE)
    assert len(changes) == 3
    for old, new, path in changes:
        source = (REPOSITORY / path).read_text()
        assert source.count(old) == 1, path
        changed = source.replace(old, new)
        assert all(len(line) <= 100 for line in changed.splitlines()), path
