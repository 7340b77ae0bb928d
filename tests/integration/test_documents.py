# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead somewhere, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
_FOLDERS = ("", "docs", "docs/decisions", "docs/with", "cpp", "benchmarks")
DOCUMENTS = sorted(path for folder in _FOLDERS for path in (REPOSITORY / folder).glob("*.md"))


def broken_links(document: Path) -> list[str]:
    """Return the relative links of a document that lead nowhere."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text())
    return [
        target
        for target in targets
        if "://" not in target and not (document.parent / target.strip()).exists()
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_of_a_document_lead_to_files(document: Path) -> None:
    assert broken_links(document) == []


def test_link_to_a_missing_file_is_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("[here](a.md), [gone](b.md#part), [far](https://example.org)")

    assert broken_links(document) == ["b.md"]


def test_readme_is_under_150_lines() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150
