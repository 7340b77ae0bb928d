# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Requests to ``rmm-uvm mortgage``: options as values, checked before any work is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from rmm_uvm.errors import AvailabilityError, ConfigurationError

__all__ = [
    "Request",
    "TrainParts",
    "check_budget",
    "check_cluster",
    "check_files",
    "data_of",
    "simulated_because",
    "write_json",
]

_DEFAULT_ROWS = 600_000
BUDGETED = ("managed", "managed-nopool")
"""Memories that keep a budget."""


class TrainParts(click.ParamType):  # type: ignore[type-arg]
    """A number from 0, or "max"; help shows that in capitals, which are taken too."""

    name = "N|max"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["max"]:
        """Return the number, or "max"."""
        if str(value).lower() == "max":
            return "max"
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor max", param, ctx)
        if number < 0:
            self.fail(f"{value} must be 0 or more, or max", param, ctx)
        return number


@dataclass(frozen=True)
class Request:
    """The request of a command line; names are those of the options."""

    data: Path | None
    rows: int | None
    loans: int | None
    text_bytes: int | None
    quarters: int
    seed: int
    parts: int | None
    train_parts: int | Literal["max"] | None
    rounds: int | None
    memory: tuple[str, ...]
    compare: bool
    engine: Literal["auto", "pandas", "cudf"]
    device_memory: int | None
    initial_pool_size: int | float | None
    device_budget: int | float | str | None
    eviction: str | None
    json_file: Path | None
    picture: Path | None
    features: Path | None
    workers: int | None
    scheduler: str | None
    child: bool

    @property
    def on_cluster(self) -> bool:
        """Whether Dask workers do the work."""
        return self.workers is not None or self.scheduler is not None


def check_files(request: Request) -> None:
    """Refuse what could only fail after all the work."""
    asked = (
        ("--json", request.json_file),
        ("--picture", request.picture),
        ("--features", request.features),
    )
    for option, path in asked:
        if path == Path("-"):
            raise ConfigurationError(f"{option} -: the tables go to standard output; name a file")
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(f"{path}: there is no directory {path.absolute().parent}")
    if request.picture is not None:
        from rmm_uvm_mortgage.picture import check

        check(request.picture)


def check_cluster(request: Request) -> None:
    """Refuse options that say nothing on a cluster, or contradict each other there.

    Raises
    ------
    click.UsageError
        In one line.
    """
    if request.workers is not None and request.scheduler is not None:
        raise click.UsageError("--workers starts a cluster, --scheduler uses one: give one of them")
    if not request.on_cluster:
        return
    option = "--workers" if request.scheduler is None else "--scheduler"
    refused = {
        "--compare": (request.compare, "it compares memories in one process each"),
        "--memory": (request.memory, "workers allocate from the managed pool installed there"),
        "--picture": (request.picture, "it draws one device"),
        "--train-parts max": (request.train_parts == "max", "give a number"),
    }
    if request.scheduler is not None:
        refused["--device-memory"] = (request.device_memory, "those workers have their devices")
        refused["--pool-size"] = (request.initial_pool_size, "those workers have their pools")
        refused["--device-budget"] = (request.device_budget, "those workers have their pools")
        refused["--eviction"] = (request.eviction, "those workers have their pools")
    for name, (given, why) in refused.items():
        if given:
            raise click.UsageError(f"{name} cannot be used with {option}: {why}")


def check_budget(request: Request) -> None:
    """Refuse a budget where nothing keeps it.

    Raises
    ------
    click.UsageError
        In one line.
    """
    if not request.memory or any(name in BUDGETED for name in request.memory):
        return
    for name, given in (
        ("--device-budget", request.device_budget),
        ("--eviction", request.eviction),
    ):
        if given is not None:
            raise click.UsageError(f"{name} is for --memory {' and '.join(BUDGETED)}")


def simulated_because(request: Request, gpu_reason: Callable[[], str]) -> str:
    """Return why devices are simulated; empty on GPUs.

    Parameters
    ----------
    request : Request
        What was asked for.
    gpu_reason : callable
        Returns why no GPU can be used; an empty string if one can.

    Raises
    ------
    AvailabilityError
        A GPU was asked for, and cannot be used.
    """
    if request.engine == "pandas":
        return "as asked for by --engine pandas"
    reason = gpu_reason()
    if request.engine == "cudf" and reason:
        raise AvailabilityError(f"--engine cudf needs a GPU and cuDF: {reason}")
    return reason


def data_of(request: Request) -> Path:
    """Return the data set, generated if need be."""
    if request.data is not None:
        return request.data
    from rmm_uvm_mortgage.cli.bars import generator_bar
    from rmm_uvm_mortgage.data_cache import generated_data
    from rmm_uvm_mortgage.generate import GeneratorConfig

    unsized = not (request.rows or request.loans or request.text_bytes)
    config = GeneratorConfig(
        loans_per_quarter=request.loans,
        performance_rows=_DEFAULT_ROWS if unsized else request.rows,
        performance_bytes=request.text_bytes,
        quarters=request.quarters,
        seed=request.seed,
    )
    with generator_bar() as progress:
        return generated_data(config, progress=progress)


def write_json(path: Path | None, plain: dict[str, Any]) -> None:
    """Write a report to a file that the user named, if any."""
    if path is None:
        return
    from rmm_uvm.support.output import written_whole

    with written_whole(path, "the report") as target:
        target.write_text(json.dumps(plain, indent=1) + "\n")
