# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead to files and headings, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
_PATTERNS = ("*.md", "docs/**/*.md", "cpp/*.md", "benchmarks/*.md")
DOCUMENTS = sorted(path for each in _PATTERNS for path in REPOSITORY.glob(each))


def anchors(document: Path) -> set[str]:
    """Return the anchors that the headings of a document have on GitHub."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def broken_links(document: Path) -> list[str]:
    """Return the relative links of a document that lead to no file, or to no heading of one."""
    broken = []
    for name, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", document.read_text()):
        target = document.parent / name.strip() if name else document
        if "://" in name:
            continue
        if not target.exists():
            broken.append(name)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            broken.append(f"{name}#{anchor}")
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_of_a_document_lead_to_files(document: Path) -> None:
    assert broken_links(document) == []


def test_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text(
        "# A `b`, c\n[here](a.md), [gone](b.md#part), [far](https://example.org#x), "
        "[there](#a-b-c), [nowhere](a.md#a-b)\n```\n# a b\n```\n"
    )

    assert broken_links(document) == ["b.md", "a.md#a-b"]


def test_readme_is_under_150_lines() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150
