# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the compiled layer tells about itself: examples that run, and stubs that are true."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
MODULES = [
    "driver",
    "pending",
    "cuda",
    "sim",
    "events",
    "trace",
    "residency",
    "replay",
    "mr",
    "marks",
    "transfers",
    "leases",
    "harvest",
]


def examples() -> list[doctest.DocTest]:
    """Find the examples in compiled classes, which pytest's own collection passes over."""
    parser, found = doctest.DocTestParser(), []
    for name in MODULES:
        module = importlib.import_module(f"rmm_uvm._lib.{name}")
        for owner in vars(module).values():
            if getattr(owner, "__module__", "") != module.__name__:
                continue
            for described in [owner, *vars(owner).values()]:
                text = getattr(described, "__doc__", None) or ""
                label = f"{name}.{getattr(described, '__qualname__', owner.__name__)}"
                if ">>>" in text:
                    found.append(parser.get_doctest(text, {}, label, None, None))
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_example_in_docstring_runs(example: Any) -> None:
    assert doctest.DocTestRunner().run(example).failed == 0


def test_examples_were_found() -> None:
    assert {example.name for example in examples()} >= {
        "events.MigrationEvents",
        "mr.ManagedMemoryResource",
        "mr.UvmResourceAdaptor",
    }


def test_stubs_agree_with_the_built_modules(tmp_path: Path) -> None:
    result = subprocess.run(
        # The configuration leaves out libraries that would take half a minute to read.
        [sys.executable, "-P", "-m", "mypy.stubtest", "--ignore-missing-stub"]
        + ["--mypy-config-file", str(REPOSITORY / "pyproject.toml")]
        + [f"rmm_uvm._lib.{name}" for name in MODULES],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout
