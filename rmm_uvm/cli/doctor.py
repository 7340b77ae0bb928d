# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm doctor``: print what rmm-uvm can use on this machine, and if it cannot, why not.

With ``--measure`` it measures the machine instead; see `rmm_uvm.cli.measure`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.json_output import write_json
from rmm_uvm.cli.settings import settings_reason
from rmm_uvm.doctor import DoctorReport, examine
from rmm_uvm.doctor.document import document
from rmm_uvm.report.as_text import Printed
from rmm_uvm.support.variables import setting

__all__ = ["command", "render", "report_of_here"]


@click.command("doctor")
@click.option(
    "--json",
    "json_to",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Print the report as JSON, sizes in bytes; with a FILE, write it there.",
)
@click.option(
    "--links",
    "with_links",
    is_flag=True,
    help="Measure the links between the GPUs and to the host, too: some seconds.",
)
@click.option(
    "--measure",
    "is_measuring",
    is_flag=True,
    help="Measure a GPU instead, in under a minute, and keep it as a machine profile.",
)
@click.option("--save", "name", metavar="NAME", help="With --measure: name of the profile.")
@click.option(
    "--device", type=click.IntRange(min=0), help="With --measure: number of the GPU, default 0."
)
def command(
    *,
    json_to: str | None,
    with_links: bool,
    is_measuring: bool,
    name: str | None,
    device: int | None,
) -> None:
    """Tell what works on this machine, and if something does not, why not.

    Exit status: 0 if a managed pool could be installed here, 1 if not. Where RMM_UVM_DRIVER asks
    for a simulated device: on that.

    With --links: move up to 64 MiB of managed memory over every link, which needs a CUDA context on
    every GPU meanwhile.

    With --measure: measure what migrations, page faults and copies take on a GPU, which should be
    idle. At most 1 GiB of managed memory is used. Exit status: 0 if that was done, 1 if not.
    """
    if is_measuring and with_links:
        raise click.UsageError("--links and --measure cannot be used together: choose one")
    if is_measuring:
        # Imports RMM, which the report does without.
        from rmm_uvm.cli.measure import run_measure

        run_measure(device or 0, name, json_to)
        return
    for option, value in (("--save", name), ("--device", device)):
        if value is not None:
            raise click.UsageError(f"{option} goes with --measure")
    report = report_of_here()
    with_links = with_links and report.feature("managed_pool").available
    if with_links:
        # Needs the compiled part, without which the report must still be able to come.
        from rmm_uvm.doctor.links import measured
        from rmm_uvm.drivers import cuda_driver

        report = replace(report, topology=measured(report.topology, cuda_driver))
    if json_to is not None:
        write_json(report.to_dict(), json_to)
    else:
        # Names and paths are printed as they are, brackets and colons too.
        make_console().print(render(report, with_links=with_links))
    sys.exit(0 if report.is_installable else 1)


def report_of_here() -> DoctorReport:
    """Return the report of this machine, with what is wrong with variables."""
    report = examine()
    return replace(
        report,
        settings_reason=settings_reason(report),
        switched_off=setting("RMM_UVM").lower() == "off",
    )


def render(report: DoctorReport, *, with_links: bool = False) -> Printed:
    """Return the report for a terminal; legible at 80 columns and without colour.

    Parameters
    ----------
    report : DoctorReport
    with_links : bool
        Show rates of links.
    """
    return Printed(document(report, with_links=with_links))
