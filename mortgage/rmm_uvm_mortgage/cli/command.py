# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm mortgage``: run the mortgage pipeline on one memory, or on several and compare."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.setting_options import BYTES, option_of
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.report.as_text import Printed
from rmm_uvm.run.tidying import temporary_folder
from rmm_uvm.support.settings import SETTINGS
from rmm_uvm_mortgage.cli.request import (
    Request,
    TrainParts,
    check_budget,
    check_cluster,
    check_files,
    data_of,
    simulated_because,
    write_json,
)

if TYPE_CHECKING:
    from rmm_uvm_mortgage.pipeline import PipelineProgress
    from rmm_uvm_mortgage.run import RunConfig
    from rmm_uvm_mortgage.run_report import RunReport

__all__ = ["command"]

MEMORY_NAMES = ("managed", "managed-nopool", "cuda", "cuda-pool", "rmm-managed", "rmm-prefetch")
_ROUNDS = 100
_ROUNDS_COMPARING = 20


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("mortgage")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="A data set.")
@click.option("--rows", type=click.IntRange(1), help="Generate about so many performance rows.")
@click.option("--loans", type=click.IntRange(1), help="Generate so many loans for each quarter.")
@click.option(
    "--bytes", "text_bytes", type=BYTES, metavar="SIZE", help="Generate about so much text."
)
@click.option("--quarters", type=click.IntRange(1), default=1, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--parts", type=click.IntRange(1), help="Parts of each quarter; 1 is unsplit.")
@click.option("--train-parts", type=TrainParts(), help="Parts to train on; 0: none; default all.")
@click.option("--rounds", type=click.IntRange(1), help="Trees; default 100, comparing 20.")
@click.option(
    "--memory",
    type=click.Choice(MEMORY_NAMES),
    multiple=True,
    help="Where to allocate; default managed. Several with --compare.",
)
@click.option("--compare", is_flag=True, help="Run several memories, a process each.")
@click.option(
    "--engine", type=click.Choice(["auto", "pandas", "cudf"]), default="auto", show_default=True
)
@click.option("--device-memory", type=BYTES, metavar="SIZE", help="Of the simulated device.")
@option_of(SETTINGS["initial_pool_size"], "All of cuda-pool.")
@option_of(SETTINGS["device_budget"])
@option_of(SETTINGS["eviction"])
@click.option("--json", "json_file", type=_FILE, help="Write all figures to a file.")
@click.option("--picture", type=_FILE, help="Draw device memory: FILE.png or FILE.svg.")
@click.option("--features", type=_FILE, help="Write the features as an Arrow file.")
@click.option(
    "--workers", type=click.IntRange(1), help="Run on so many Dask workers, started here."
)
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask cluster.")
@click.option("--child", is_flag=True, hidden=True)
def command(**options: Any) -> None:
    """Run the RAPIDS mortgage pipeline: ETL, PREP and training.

    Without a GPU, pandas and XGBoost compute the real result on the CPU, while every column and
    work space that cuDF would need goes through the real memory resources onto a simulated
    device. By default it has five times the size of the largest performance file, and at least
    128 MiB: too little for the ETL of an unsplit file of 150,000 rows or more, enough for a
    quarter of one.

    With --workers or --scheduler Dask workers do the work, each in its own managed pool: one task
    for each part, then training by XGBoost's Dask interface. See docs/use/mortgage-on-a-cluster.md.

    Generated data are kept in ~/.cache/rmm-uvm (or below XDG_CACHE_HOME).

    Exit status 0: the runs ended as they must. For memories that cannot exceed the device (cuda,
    cuda-pool) running out counts as that, on the simulated device or with --compare. Else 1.
    """
    request = Request(**options)
    if request.data is not None and (request.rows or request.loans or request.text_bytes):
        raise click.UsageError("--data names a data set; --rows, --loans and --bytes make one")
    if sum(map(bool, (request.rows, request.loans, request.text_bytes))) > 1:
        raise click.UsageError("--rows, --loans and --bytes are three ways to give one size")
    if len(request.memory) > 1 and not request.compare:
        raise click.UsageError("several --memory need --compare")
    check_cluster(request)
    check_budget(request)
    check_files(request)
    # Read by OpenMP when XGBoost is loaded. Threads that spin while they wait make training ten
    # times slower as soon as another program wants a core.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if request.on_cluster:
        from rmm_uvm_mortgage.cli.on_cluster import run_on_cluster

        sys.exit(run_on_cluster(request))
    sys.exit(_run_child(request) if request.child else _run(request))


def _run(request: Request) -> int:
    """Do what a user asked for; return the exit status."""
    from rmm_uvm_mortgage.gpu_run import gpu_reason
    from rmm_uvm_mortgage.run import check_libraries, default_device_bytes, quiet_rmm

    console = make_console()
    because = simulated_because(request, gpu_reason)
    check_libraries()
    quiet_rmm()
    if because:
        console.print("SIMULATED DEVICE: no GPU is used", style="bold")
        console.print(f"  why: {because}")
    data = data_of(request)
    device_bytes = None
    if because:
        from rmm_uvm_mortgage.report import simulated_lines

        device_bytes = request.device_memory or default_device_bytes(data)
        by_default = request.device_memory is None
        console.print(Printed(simulated_lines(device_bytes, by_default=by_default)))
    elif request.device_memory is not None:
        raise ConfigurationError("--device-memory is for the simulated device; add --engine pandas")
    if request.compare:
        return _compare(request, data, device_bytes, console)
    return _single(request, data, device_bytes, console)


# -- one memory --------------------------------------------------------------------------------


def _config(
    request: Request, data: Path, device_bytes: int | None, features: Path | None
) -> RunConfig:
    from rmm_uvm_mortgage.pipeline import PipelineConfig
    from rmm_uvm_mortgage.run import RunConfig

    pipeline = PipelineConfig(
        data, request.parts, request.train_parts, request.rounds or _ROUNDS, features
    )
    memory = request.memory[0] if request.memory else "managed"
    return RunConfig(
        pipeline,
        memory,
        device_bytes,
        request.initial_pool_size,
        request.device_budget,
        request.eviction,
        find_training_set=True,
    )


def _single(request: Request, data: Path, device_bytes: int | None, console: Console) -> int:
    """Run once, compare the features with plain pandas, print."""
    from rmm_uvm_mortgage.cli.bars import stage_bar
    from rmm_uvm_mortgage.memory import find_memory
    from rmm_uvm_mortgage.reference import make_reference
    from rmm_uvm_mortgage.report import run_page
    from rmm_uvm_mortgage.run import run

    with temporary_folder("rmm-uvm-mortgage-") as folder:
        features = request.features or folder / "features.arrow"
        config = _config(request, data, device_bytes, features)
        with stage_bar(config.memory) as progress:
            report = run(config, progress)
        if report.pipeline.feature_digest is not None:
            with stage_bar("plain pandas, to compare") as progress:
                reference = make_reference(data, folder / "pandas.arrow", progress)
            how = reference.describe(report.pipeline.feature_digest, features)
            report = dataclasses.replace(report, features_against_pandas=how)
    console.print("", Printed(run_page(report)), sep="\n")
    write_json(request.json_file, report.to_json())
    if request.picture is not None:
        from rmm_uvm_mortgage.picture import draw

        parts = len(report.pipeline.parts)
        title = f"{report.memory}, {parts} part{'s' if parts > 1 else ''}"
        draw([(title, report)], request.picture)
    may_run_out = report.simulated and not find_memory(report.memory).managed
    ran_out = report.pipeline.out_of_memory is not None
    return 1 if _differs(report) or (ran_out and not may_run_out) else 0


def _run_child(request: Request) -> int:
    """Run once for the process that compares: progress as lines of JSON, the report in a file."""
    from rmm_uvm_mortgage.run import run

    assert request.data is not None  # the parent's command line
    config = _config(request, request.data, request.device_memory, request.features)
    write_json(request.json_file, run(config, _print_progress).to_json())
    return 0


def _print_progress(progress: PipelineProgress) -> None:
    click.echo(json.dumps(dataclasses.asdict(progress)))


# -- several memories --------------------------------------------------------------------------


def _compare(request: Request, data: Path, device_bytes: int | None, console: Console) -> int:
    """Run several memories, print the tables."""
    from rmm_uvm_mortgage.cli.bars import comparison_bar, stage_bar
    from rmm_uvm_mortgage.compare_memory import ComparisonRequest, compare_memories, planned_runs
    from rmm_uvm_mortgage.reference import make_reference
    from rmm_uvm_mortgage.report import comparison_page

    planned = planned_runs(request.memory, request.parts)
    with temporary_folder("rmm-uvm-mortgage-") as folder:
        with stage_bar("plain pandas, to compare") as progress:
            reference = make_reference(data, folder / "pandas.arrow", progress)
        shared = ComparisonRequest(
            data=data,
            engine="cudf" if device_bytes is None else "pandas",
            device_bytes=device_bytes,
            pool_bytes=request.initial_pool_size,
            budget_bytes=request.device_budget,
            eviction=request.eviction,
            rounds=request.rounds or _ROUNDS_COMPARING,
            train_parts="max" if request.train_parts is None else request.train_parts,
        )
        with comparison_bar([run.title for run in planned]) as show:
            runs = compare_memories(planned, shared, reference, progress=show)
    console.print("", Printed(comparison_page(runs, reference.training_rows)), sep="\n")
    plain: dict[str, Any] = {"runs": [run.to_json() for run in runs]}
    if device_bytes is not None:
        from rmm_uvm_mortgage.fragmentation import run_fragmentation
        from rmm_uvm_mortgage.report import fragmentation_lines

        cases = [run_fragmentation("cuda-pool"), run_fragmentation("managed")]
        console.print("", Printed(fragmentation_lines(cases)), sep="\n")
        plain["fragmentation"] = [dataclasses.asdict(case) for case in cases]
    write_json(request.json_file, plain)
    if request.picture is not None:
        from rmm_uvm_mortgage.picture import draw

        shown = [run for run in runs if run.report.memory in ("cuda-pool", "managed")] or runs
        draw([(run.title, run.report) for run in shown], request.picture)
    return 1 if any(run.is_unexpected or _differs(run.report) for run in runs) else 0


def _differs(report: RunReport) -> bool:
    return (report.features_against_pandas or "").startswith("different")
