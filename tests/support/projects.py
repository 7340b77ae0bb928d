# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What each pyproject.toml of the repository says."""

from __future__ import annotations

import tomllib
from typing import Any

from .snippets import REPOSITORY

FILES = {"rmm-uvm": "pyproject.toml", "rmm-uvm-mortgage": "mortgage/pyproject.toml"}
CONTENTS: dict[str, Any] = {
    name: tomllib.loads((REPOSITORY / file).read_text()) for name, file in FILES.items()
}
"""By distribution."""


def extras_of(distribution: str) -> dict[str, list[str]]:
    """Return the requirements of each extra."""
    found: dict[str, list[str]] = CONTENTS[distribution]["project"]["optional-dependencies"]
    return found


def requirement_lines() -> list[str]:
    """Return all requirements, to build, to install and of extras, but for our own packages."""
    found = []
    for content in CONTENTS.values():
        project = content["project"]
        found += [*content["build-system"]["requires"], *project["dependencies"]]
        found += [line for lines in project["optional-dependencies"].values() for line in lines]
    return [line for line in found if not line.startswith("rmm-uvm")]
