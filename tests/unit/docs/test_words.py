# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Documents stay short enough to be read: words outside of tables, code and generated parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
MOST_WORDS = 25_000


def words_of(text: str) -> list[str]:
    """Return the words of a document's prose; a link counts as the words that are shown."""
    text = re.sub(r"<!-- begin.*?<!-- end.*?-->", "", text, flags=re.DOTALL)  # written by scripts
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    return re.sub(r"\]\([^)]*\)", "]", "\n".join(lines)).split()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# A title\n\nTwo words. `code` counts.\n", 7),
        ("Before\n\n| a | table |\n|---|---|\n| of | words |\n\nafter\n", 2),
        ("Before\n\n```python\nx = 1\n```\n\n    command --option\n\nafter\n", 2),
        ("See [the page](a/long/path.md#and-place).\n", 3),
        ("One\n<!-- begin: written by x.py -->\nnot counted\n<!-- end: x -->\ntwo\n", 2),
    ],
)
def test_prose_is_counted_and_tables_and_code_are_not(text: str, count: int) -> None:
    assert len(words_of(text)) == count


def test_documents_have_at_most_25_000_words() -> None:
    counts = {
        str(page.relative_to(DOCS)): len(words_of(page.read_text())) for page in DOCS.rglob("*.md")
    }
    longest = sorted(counts, key=lambda name: -counts[name])[:5]
    assert len(counts) > 80
    assert sum(counts.values()) <= MOST_WORDS, {name: counts[name] for name in longest}
