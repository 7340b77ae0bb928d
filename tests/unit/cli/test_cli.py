# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The command line: lazy subcommands, one-line errors, exit status, and the doctor's page."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from rmm_uvm.cli import doctor
from rmm_uvm.cli.main import SUBCOMMANDS, LazyGroup, Subcommand, make_group
from rmm_uvm.doctor import DeviceFacts, DoctorReport, Feature, PoolPlan
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory

GIB = 2**30

Invoke = Callable[..., Result]


def rmm_uvm(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-c", "from rmm_uvm.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )


def group_of(command: click.Command, monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    """Return a group with one subcommand ``try``."""
    module = ModuleType("a_subcommand")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_subcommand", module)
    return LazyGroup({"try": Subcommand("a_subcommand:command", "Try it.")}, name="group")


# --- the group -------------------------------------------------------------------------------


def test_help_lists_subcommands_without_importing_them() -> None:
    group = LazyGroup({"try": Subcommand("no_such_module:command", "Try it.")}, name="group")
    result = CliRunner().invoke(group, ["--help"])
    assert result.exit_code == 0
    assert "try  Try it." in result.output


def test_subcommand_called_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of(click.Command("try", callback=lambda: click.echo("ran")), monkeypatch)
    assert CliRunner().invoke(group, ["try"]).output == "ran\n"


def test_subcommand_unknown_is_wrong_usage() -> None:
    result = CliRunner().invoke(LazyGroup(SUBCOMMANDS, name="group"), ["teleport"])
    assert result.exit_code == 2
    assert "teleport" in result.output


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("plna", "there is no command 'plna' (did you mean 'plan'?): use doctor, "),
        ("doctr", "(did you mean 'doctor'?)"),
        ("xyz", "there is no command 'xyz': use doctor, "),
    ],
)
def test_subcommand_misspelt_is_told_with_the_one_that_was_meant(word: str, told: str) -> None:
    result = CliRunner().invoke(make_group(), [word, "--help"])
    assert result.exit_code == 2
    assert told in result.output
    assert "report, run, top" in result.output


def test_project_error_becomes_one_line_and_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConfigurationError("pool_size=-1: a size must be greater than 0")

    result = CliRunner().invoke(group_of(click.Command("try", callback=fail), monkeypatch), ["try"])
    assert result.exit_code == 1
    assert result.output == "Error: pool_size=-1: a size must be greater than 0\n"


def test_other_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    result = CliRunner().invoke(group_of(click.Command("try", callback=fail), monkeypatch), ["try"])
    assert isinstance(result.exception, ZeroDivisionError)


# --- the command in a process of its own ------------------------------------------------------


def test_version_prints_name_and_number(tmp_path: Path) -> None:
    result = rmm_uvm("--version", directory=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("rmm-uvm ")
    assert result.stderr == ""


def test_doctor_on_this_machine_prints_a_page_and_agrees_with_its_status(tmp_path: Path) -> None:
    result = rmm_uvm("doctor", directory=tmp_path)
    assert result.stderr == ""
    assert "Host memory" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    as_json = rmm_uvm("doctor", "--json", directory=tmp_path)
    assert json.loads(as_json.stdout)["is_installable"] is (result.returncode == 0)
    assert as_json.returncode == result.returncode


@pytest.mark.parametrize("arguments", [["--help"], ["doctor"], ["doctor", "--json"]])
def test_reader_gone_leaves_no_traceback(tmp_path: Path, arguments: list[str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "from rmm_uvm.cli.main import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait() == 1


@pytest.mark.parametrize("arguments", [["--help"], ["doctor"], ["doctor", "--json"]])
def test_output_to_a_full_disk_is_one_line_with_status_1(
    tmp_path: Path, arguments: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-P", "-c", "from rmm_uvm.cli.main import main; main()", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert result.stderr == "Error: the output cannot be written: No space left on device\n"
    assert result.returncode == 1


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("arguments", "printed", "status"),
    [
        (["--version"], "rmm-uvm ", 0),
        (["plan", "no-such-file"], "", 2),
        (["run", "--device", "simulated:64MiB", "script.py"], "out\n", 3),
        (["run", "--device", "simulated:64MiB@a100-pcie4", "script.py"], "out\n", 3),
    ],
)
def test_closed_stream_changes_no_status_and_leaves_no_traceback(
    tmp_path: Path, arguments: list[str], printed: str, status: int, closed: str
) -> None:
    (tmp_path / "script.py").write_text("print('out'); raise SystemExit(3)")
    command = [sys.executable, "-P", "-c", "from rmm_uvm.cli.main import main; main()", *arguments]
    closing = '"$@" >&-' if closed == "stdout" else '"$@" 2>&-'
    result = subprocess.run(
        ["/bin/sh", "-c", closing, "sh", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == status
    assert "Traceback" not in result.stderr
    # Nothing that was for the closed stream turns up in the other one.
    assert "out\n" not in result.stderr
    assert result.stdout.startswith(printed if closed == "stderr" else "")
    assert len(result.stdout.splitlines()) == (1 if printed and closed == "stderr" else 0)


def test_reader_gone_before_the_last_flush_leaves_no_traceback(tmp_path: Path) -> None:
    # GIVEN a subcommand whose output still lies in Python's buffer when it returns
    script = """
import importlib, sys, types
import click
cli = importlib.import_module("rmm_uvm.cli.main")
module = sys.modules["a_subcommand"] = types.ModuleType("a_subcommand")
module.command = click.Command("try", callback=lambda: print("out"))
cli.SUBCOMMANDS = {"try": cli.Subcommand("a_subcommand:command", "Try it.")}
cli.main(["try"])
"""
    # WHEN nobody reads it
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.close()
    # THEN the command ends quietly, and not with success
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait() == 1


# --- the doctor's page -----------------------------------------------------------------------


def report(*features: Feature, **changes: object) -> DoctorReport:
    """Return a report on one device with these features."""
    facts: dict[str, object] = {
        "versions": {"rmm-cu13": "26.10.0", "CUDA driver API": "13.0"},
        "devices": (
            DeviceFacts(
                index=0,
                name="NVIDIA [H200] :x:",
                uuid="0",
                compute_capability=(9, 0),
                total_bytes=139 * GIB,
                free_bytes=None,
                managed_memory=True,
                concurrent_managed_access=True,
                pageable_memory_access=False,
                host_page_tables=False,
                legacy_ipc=True,
            ),
        ),
        "features": features,
        "host_memory": HostMemory(256 * GIB, 12 * GIB, 16 * GIB, "/sys/fs/cgroup/memory.max"),
        "plans": (
            PoolPlan(0, {"initial_bytes": 8 * GIB, "maximum_bytes": 150 * GIB}, "host memory"),
        ),
    }
    return DoctorReport(**{**facts, **changes})  # type: ignore[arg-type]


POOL = Feature("managed_pool", "managed pool", "allocations are managed", available=True)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs ``rmm-uvm doctor`` on a machine with a given report."""

    def run(what: DoctorReport, *arguments: str) -> Result:
        monkeypatch.setattr(doctor, "examine", lambda: what)
        return CliRunner().invoke(doctor.command, arguments)

    return run


def test_doctor_healthy_machine_prints_all_sections_and_status_0(invoke: Invoke) -> None:
    result = invoke(report(POOL))
    assert result.exit_code == 0
    for expected in (
        "26.10.0",
        "NVIDIA [H200] :x:",
        "139.00 GiB",
        "unknown",
        "yes  managed pool: allocations are managed",
        "16.00 GiB /sys/fs/cgroup/memory.max",
        "150.00 GiB",
        "device 0: host memory",
    ):
        assert expected in result.output


def test_doctor_tells_of_memory_of_gpus_that_linux_counts_as_the_hosts(invoke: Invoke) -> None:
    grace = HostMemory(480 * GIB, 400 * GIB, device_bytes=96 * GIB)
    assert re.search(
        r"of GPUs, left out +96\.00 GiB", invoke(report(POOL, host_memory=grace)).output
    )
    assert "of GPUs" not in invoke(report(POOL)).output


def test_doctor_missing_feature_prints_the_reason(invoke: Invoke) -> None:
    discard = Feature(
        "discard", "discard", "dead data are dropped", available=False, reason="driver 575"
    )
    result = invoke(report(POOL, discard))
    assert result.exit_code == 0
    assert "no   discard: dead data are dropped" in result.output
    assert "why not: driver 575" in result.output


def test_doctor_nothing_installable_says_why_and_status_1(invoke: Invoke) -> None:
    pool = Feature(
        "managed_pool",
        "managed pool",
        "allocations are managed",
        available=False,
        reason="no driver",
    )
    result = invoke(report(pool, devices=(), devices_reason="no libcuda", plans=()))
    assert result.exit_code == 1
    assert "none: no libcuda" in result.output
    assert "nothing: no driver" in result.output


def test_doctor_unknown_host_memory_says_why(invoke: Invoke) -> None:
    result = invoke(report(POOL, host_memory=None, host_memory_reason="no meminfo", plans=()))
    assert "unknown: no meminfo" in result.output


def test_doctor_json_is_the_report(invoke: Invoke) -> None:
    what = report(POOL)
    result = invoke(what, "--json")
    assert json.loads(result.output) == json.loads(json.dumps(what.to_dict()))


def test_doctor_page_has_no_colour_codes_without_a_terminal(invoke: Invoke) -> None:
    assert "\x1b" not in invoke(report(POOL)).output


def test_doctor_page_fits_80_columns() -> None:
    long = Feature("cupti", "CUPTI", "why", available=True, detail="/usr/local/lib/" + "deep/" * 40)
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(doctor.render(report(POOL, long)))
    assert max(map(len, capture.get().splitlines())) <= 80
    assert "deep/deep" in capture.get()
