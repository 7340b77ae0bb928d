# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm report``: a kept report beside another one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rmm_uvm.cli.json_output import write_json
from rmm_uvm.cli.once import OnceCommand
from rmm_uvm.support.output import columns_of

__all__ = ["command"]


@click.command("report", cls=OnceCommand)
@click.argument("report", metavar="REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "--against",
    metavar="OTHER.json",
    required=True,
    type=click.Path(path_type=Path),
    help="The report to compare with, usually of an earlier run.",
)
@click.option(
    "--json",
    "json_to",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Print the figures as JSON; with a FILE, write them there.",
)
def command(*, report: Path, against: Path, json_to: str | None) -> None:
    """Compare two runs whose reports were kept, as a whole and stage by stage.

    Both are files that `rmm-uvm run --json` wrote, or Report.save_json.
    """
    # Imports NumPy, which the other commands do without.
    from rmm_uvm.report.as_text import WIDTH
    from rmm_uvm.report.compared import Compared, kept_report

    compared = Compared(kept_report(report), kept_report(against))
    if json_to is not None:
        write_json(compared.to_dict(), json_to)
    else:
        click.echo(compared.text(columns_of(sys.stdout, WIDTH)))
