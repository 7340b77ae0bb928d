# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Check that the API reference that was built has every public name.

    python -P ci/check_api.py build/site/objects.inv

Public are the names of `__all__` of the modules that docs/api/index.rst lists, and what
docs/use/configuration.md names. Run by ci/build_api.sh, where the package is installed.
"""

from __future__ import annotations

import importlib
import re
import sys
import zlib
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def documented(inventory: bytes) -> set[str]:
    """Return the names in an inventory of Sphinx: four lines, then packed ones."""
    packed = inventory.split(b"\n", 4)[4]
    return {line.split(" ", 1)[0] for line in zlib.decompress(packed).decode().splitlines()}


def modules() -> list[str]:
    """Return the modules that have a page."""
    return re.findall(
        r"^ +(rmm_uvm[\w.]*)$", (DOCS / "api" / "index.rst").read_text(), re.MULTILINE
    )


def public() -> set[str]:
    """Return the names that have to be there."""
    names = set()
    for module in modules():
        offered = importlib.import_module(module).__all__
        names |= {f"{module}.{name}" for name in offered if not name.startswith("__")}
    errors = importlib.import_module("rmm_uvm.errors").__all__  # documented there alone
    return names - {f"rmm_uvm.{name}" for name in errors}


def last_names(text: str) -> set[str]:
    """Return the last parts of the dotted names of ours that a document has as code."""
    return {found.rpartition(".")[2] for found in re.findall(r"`(rmm_uvm\.[\w.]+\w)", text)}


def main() -> int:
    """Print what is missing; return 1 if anything is."""
    there = documented(Path(sys.argv[1]).read_bytes())
    parts = {part for name in there for part in name.split(".")}
    missing = sorted(public() - there)
    missing += sorted(last_names((DOCS / "use" / "configuration.md").read_text()) - parts)
    for name in missing:
        print(f"api: {name} is not in the reference")
    print(f"api: {len(public())} public names")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
