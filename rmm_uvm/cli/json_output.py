# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""JSON of a report: on the screen, or in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rmm_uvm.support.output import written_whole

__all__ = ["write_json"]


def write_json(report: Mapping[str, Any], where: str) -> None:
    """Print a report as JSON, or write it to a file.

    Parameters
    ----------
    report : mapping
        What JSON can hold.
    where : str
        "-" for the screen, otherwise a path; a file that is there is replaced.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    text = json.dumps(report, indent=2)
    if where == "-":
        click.echo(text)
        return
    with written_whole(Path(where), "the report") as target:
        target.write_text(text + "\n", encoding="utf-8")
