# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What scripts of ``ci/`` take, as the comment at their beginning says."""

from __future__ import annotations

import re
from pathlib import Path

from .snippets import REPOSITORY

SCRIPTS = sorted(path.name for path in (REPOSITORY / "ci").glob("*.sh"))
_USAGE = re.compile(r"^# {3}(?:\w+=\S+ )?(ci/\w+\.sh)((?: \S+)*)", re.MULTILINE)
# A word of a usage: a bracket, an alternative, a name for anything, or itself.
_WORDS = re.compile(r"[\[\]|]|[A-Z]{2,}(?: [A-Z]{2,})*(?: ?\.\.\.)?|[\w-]+")
# Names that stand for more or less than any word that is no option.
_NAMED = {
    "SECONDS": r"\d+",
    "TARGET": "|".join(path.name for path in (REPOSITORY / "tests/fuzz/corpus").iterdir()),
    **dict.fromkeys(("ARGUMENT", "PYTEST ARGUMENT"), r"\S+"),
}
_ANY = r"(?!-)\S+"


def usages(name: str) -> list[str]:
    """Return the usages of a script, each without its name; none if it takes no argument."""
    text = (REPOSITORY / "ci" / name).read_text()
    head = text[: text.index("\nset -")] if "\nset -" in text else text
    head = re.sub(r" *\\\n# +", " ", head)  # a line that goes on
    return [words.strip() for script, words in _USAGE.findall(head) if script == f"ci/{name}"]


def pattern(usage: str) -> str:
    """Return a regular expression of a usage, in which each word has a space before it."""
    signs = {"[": "(?:", "]": ")?", "|": "|"}
    found = []
    for word in _WORDS.findall(usage):
        name = word.removesuffix("...").strip()
        if word in signs:
            found.append(signs[word])
        elif re.fullmatch(r"[A-Z ]{2,}", name):
            again = "+" if word.endswith("...") else ""
            found.append(f"(?: (?:{_NAMED.get(name, _ANY)}|{name})){again}")
        else:
            found.append(f" {re.escape(word)}")
    return "".join(found)


def literals(usage: str) -> set[str]:
    """Return the words of a usage that stand for themselves."""
    return {word for word in _WORDS.findall(usage) if re.fullmatch(r"[a-z-]+", word)}


def compared(name: str) -> set[str]:
    """Return the words that a script compares its first argument with, its comments set aside."""
    text = re.sub(r"^\s*#.*$", "", (REPOSITORY / "ci" / name).read_text(), flags=re.MULTILINE)
    found = set(re.findall(r'"\$\{1:-\}" !?=+ ([\w-]+)', text))
    for variable in re.findall(r"(\w+)=\$\{1:-", text):
        for block in re.findall(rf"^case \${variable} in\n(.*?)^esac", text, re.MULTILINE | re.S):
            for words in re.findall(r"^ +([\w| -]+)\)", block, re.MULTILINE):
                found |= set(words.replace(" ", "").split("|"))
    return found


def complaint(words: list[str]) -> str:
    """Return what is wrong with the words of a command, the script first."""
    name = Path(words[0]).name
    if name not in SCRIPTS:
        return f"there is no {words[0]}"
    known = usages(name) or [""]
    asked = "".join(f" {word}" for word in words[1:])
    if any(re.fullmatch(pattern(usage), asked) for usage in known):
        return ""
    return f"{words[0]} takes {' or '.join(known) or 'no argument'}, not{asked}"
