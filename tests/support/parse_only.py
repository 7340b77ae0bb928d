# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Scripts until they have parsed their arguments, one after the other, as a program.

Reads a list of [script, argument...] as JSON from standard input, and writes what each script's
parser said against the arguments, "" for nothing, as JSON to standard output. No script goes on
after parsing. They share a process, since most import the same large packages.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any, NoReturn

# How scripts come to argparse. One that does not would do its work here.
PARSES = re.compile(r"\bparse_args\(|\basked_json_path\(|\brun\(table\)")
PLACEHOLDER = re.compile(r"[A-Z]+")
parse_known_args = argparse.ArgumentParser.parse_known_args


class Parsed(BaseException):
    """Thrown through a script, past its own handlers, in the place of its arguments."""


def with_choices(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """Return words with a choice where a document has the name of one, as in ``--only NAME``."""
    options = parser._option_string_actions
    found, option = [], None
    for word in words:
        option = options.get(word) if word.startswith("-") else option
        chosen = word
        if option is not None and option.choices and word == option.metavar:
            chosen = str(next(iter(option.choices)))
        found.append(chosen)
    return found


def parse_and_stop(
    parser: argparse.ArgumentParser, args: Any = None, namespace: Any = None
) -> NoReturn:
    words = list(sys.argv[1:] if args is None else args)
    _found, left = parse_known_args(parser, with_choices(parser, words), namespace)
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    raise Parsed


def complaint(script: str, *words: str) -> str:
    """Return what a script's parser says against its arguments."""
    if not Path(script).is_file():
        return f"there is no {script}"
    if not PARSES.search(Path(script).read_text()):
        return f"{script} does not parse its arguments with argparse"
    sys.argv = [script, *words]
    sys.path.insert(0, str(Path(script).parent))
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            runpy.run_path(script, run_name="__main__")
    except Parsed:
        return ""
    except SystemExit as ended:
        return said.getvalue().strip() or f"ended with {ended.code} and without parsing"
    finally:
        sys.path.pop(0)
    return "ended without parsing"


def main() -> None:
    argparse.ArgumentParser.parse_args = parse_and_stop  # type: ignore[method-assign, assignment]
    print(json.dumps([complaint(*one) for one in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
