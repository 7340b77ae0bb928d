# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm doctor --measure``: measure a GPU, keep it as a machine profile, print a table."""

from __future__ import annotations

from pathlib import Path

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.json_output import write_json
from rmm_uvm.cli.progress import part_bar
from rmm_uvm.drivers import cuda_driver
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm.report.as_text import Printed
from rmm_uvm.report.document import Document, Paragraph, Table, TableColumn
from rmm_uvm.simulator.measuring import Measurement, measure
from rmm_uvm.support.machine_files import Machine, save_machine, shipped_names, user_machines
from rmm_uvm.support.machine_profile import CONSTANTS, NAME_PATTERN

__all__ = ["keep_machine", "render_measurement", "run_measure"]


def run_measure(device: int, name: str | None, json_to: str | None) -> None:
    """Measure, keep, print.

    Parameters
    ----------
    device : int
        CUDA ordinal.
    name : str or None
        Of the profile; by default made of the GPU's.
    json_to : str or None
        "-" prints JSON in place of the table; a path gets JSON besides it.

    Raises
    ------
    ConfigurationError
        If the name is none, or that of a machine of the package.
    AvailabilityError, DriverError
        If there is no GPU, or it cannot be measured now.
    DataError
        If a file cannot be written.
    """
    if name is not None:
        _check_name(name)
    driver = cuda_driver(device)
    with part_bar("measuring") as show:
        try:
            measurement = measure(driver, name=name, progress=show)
        except MemoryError as error:  # somebody else has taken it meanwhile
            raise AvailabilityError(f"measuring ran out of memory: {error}") from error
    path = keep_machine(measurement.machine, is_asked=name is not None)
    if json_to is not None:
        write_json(measurement.to_dict(), json_to)
    if json_to != "-":
        console = make_console()
        console.print(render_measurement(measurement))
        console.print(_kept(measurement.machine, path), soft_wrap=True)


def keep_machine(machine: Machine, *, is_asked: bool) -> Path | None:
    """Write a profile where `load_machine` finds it by its name; return the file.

    None if the user has no folder for settings and did not ask for a name either.

    Raises
    ------
    ConfigurationError
        If there is no folder and `is_asked`.
    DataError
        If the file cannot be written.
    """
    folder = user_machines()
    if folder is None:
        if is_asked:
            raise ConfigurationError("there is no folder for settings here: set XDG_CONFIG_HOME")
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be made: {error.strerror or error}") from error
    path = folder / f"{machine.name}.toml"
    save_machine(machine, path)
    return path


def render_measurement(measurement: Measurement) -> Printed:
    """Return the table: each constant as measured, and as the machine most like it has it."""
    machine, base = measurement.machine, measurement.base
    rows = []
    for name, value in machine.constants().items():
        # Nothing was measured where the source says that the other machine's value stands in.
        is_own = not machine.sources[name].startswith("taken from ")
        shown = _number(value) if is_own else "not measured"
        rows.append((name, CONSTANTS[name].unit, shown, _number(getattr(base, name))))
    names = (TableColumn("constant", right=False), TableColumn("unit", right=False))
    columns = (*names, TableColumn("here"), TableColumn(str(base), wraps=True))
    title = Paragraph(f"{machine.gpu}; {machine.link}; driver {machine.driver or 'unknown'}")
    return Printed(Document((), (title, Table(columns, tuple(rows), gap=2))))


def _check_name(name: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigurationError(
            f"--save {name!r}: use 1 to 64 letters, digits, '.', '_' and '-', "
            "the first a letter or digit"
        )
    if name in shipped_names():
        raise ConfigurationError(f"--save {name}: the package has a machine of this name")


def _kept(machine: Machine, path: Path | None) -> str:
    if path is None:
        return "not saved: there is no folder for settings here; set XDG_CONFIG_HOME"
    return f"saved as {machine.name}: {path}"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
