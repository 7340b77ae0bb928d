# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks of code, commands and settings in the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
    *(REPOSITORY / name / "README.md" for name in ("benchmarks", "cpp")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
_IMPORTS = re.compile(r"import |from |\s*$")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    .*\n(?:\n(?=    ))*)+", re.MULTILINE)


class Snippet(NamedTuple):
    """A block of a document."""

    document: str
    kind: str
    text: str

    @property
    def place(self) -> tuple[str, str]:
        """The document and the block's first line but for imports, by which tests name it."""
        lines = [line for line in self.text.splitlines() if not _IMPORTS.match(line)]
        return self.document, lines[0] if lines else ""


def indented(text: str) -> Iterator[str]:
    """Yield blocks that are indented, without the indentation."""
    for found in _INDENTED.findall(_FENCED.sub("", text)):
        yield re.sub(r"^    ", "", found, flags=re.MULTILINE)


def snippets(document: Path) -> Iterator[Snippet]:
    """Yield fenced blocks, and indented lines that are commands as blocks without a kind."""
    text = document.read_text()
    for found in _FENCED.finditer(text):
        yield Snippet(document.name, found[1], found[2])
    for block in indented(text):
        for line in re.findall(r"^\S.*$", block, re.MULTILINE):
            yield Snippet(document.name, "", line)


SNIPPETS = [snippet for document in DOCUMENTS for snippet in snippets(document)]
# Examples with ``>>>`` are run as doctests.
CODE = [one for one in SNIPPETS if one.kind == "python" and ">>>" not in one.text]
