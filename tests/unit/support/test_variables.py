# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Environment variables: which there are, and which were meant to be one of them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

import rmm_uvm
from rmm_uvm.cli.doctor import render
from rmm_uvm.doctor import SystemProbe
from rmm_uvm.support.variables import KNOWN, likely_slips, setting, unknown_variables

from ..doctor.test_doctor import examined
from ..run.started import SIMULATED, run, script

CONFIGURATION = Path(__file__).resolve().parents[3] / "docs/use/configuration.md"
NAME = re.compile(r"(?<![A-Z_])RMM_UVM(?:_[A-Z_]*[A-Z])?(?![A-Z_])")


def shown(**facts: object) -> str:
    console = Console(width=100, file=io.StringIO())
    console.print(render(examined(**facts)))
    return console.file.getvalue()


def test_known_variables_are_those_that_the_package_reads() -> None:
    package = Path(rmm_uvm.__file__).parent
    named = {
        name
        for path in package.rglob("*.py")
        if path.name != "variables.py"
        for name in NAME.findall(path.read_text())
    }
    assert named == KNOWN


def test_known_variables_are_those_of_the_tables_of_the_configuration() -> None:
    rows = re.findall(r"^\| `(RMM_UVM\w*)` \|", CONFIGURATION.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(KNOWN)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("RMM_UVM_MANAGED_LIMT", "RMM_UVM_MANAGED_LIMIT"),
        ("RMM_UVM_BUDGET", "RMM_UVM_DEVICE_BUDGET"),
        ("RMM_UVM_LIMIT", "RMM_UVM_MANAGED_LIMIT"),
        ("RMM_UVM_NEIGHBOURS", "RMM_UVM_NEIGHBORS"),
        ("RMM_UVM_WARN_FOOTPRNT", "RMM_UVM_WARN_FOOTPRINT"),
        ("rmm_uvm_driver", "RMM_UVM_DRIVER"),
        ("RMM_UVM_", ""),
        ("RMM_UVM_X", ""),
        ("RMM_UVM_OFF", "RMM_UVM"),
        ("RMM_UVM_ENABLED", "RMM_UVM"),
        ("RMM_UVM_DISABLE", "RMM_UVM"),
    ],
)
def test_variable_that_nothing_reads_is_told_with_the_nearest(name: str, nearest: str) -> None:
    assert unknown_variables(["HOME", name, *KNOWN]) == {name: nearest}


@pytest.mark.parametrize(
    "name",
    [
        *sorted(KNOWN),
        "RMM_LOG",
        "MY_RMM_UVM_DRIVER",
        # What pods have of the service of docs/use/kubernetes.md.
        "RMM_UVM_SCHEDULER_SERVICE_HOST",
        "RMM_UVM_SCHEDULER_SERVICE_PORT_COMM",
        "RMM_UVM_SCHEDULER_PORT",
        "RMM_UVM_SCHEDULER_PORT_8786_TCP_ADDR",
    ],
)
def test_other_variables_are_not_told(name: str) -> None:
    assert unknown_variables([name]) == {}


def test_only_a_slip_or_two_is_told_where_nobody_asked() -> None:
    told = likely_slips(["RMM_UVM_EVICTON", "RMM_UVM_INSTRUCTIONS", "RMM_UVM_COMMIT"])
    assert told == ["nothing reads the variable RMM_UVM_EVICTON: is RMM_UVM_EVICTION meant?"]


def test_doctor_lists_them_and_judges_the_machine_without() -> None:
    names = ("RMM_UVM_MANAGED_LIMT", "RMM_UVM_X", "RMM_UVM_DRIVER")
    told = " ".join(shown(variables=names).split())
    assert (
        "Environment variables that nothing reads RMM_UVM_MANAGED_LIMT: is RMM_UVM_MANAGED_LIMIT "
        "meant? RMM_UVM_X: none has such a name What rmm_uvm.reinitialize() would install"
    ) in told
    assert "that nothing reads" not in shown(variables=("RMM_UVM_DRIVER", "HOME"))
    report = examined(variables=names)
    assert report.is_installable
    assert list(report.to_dict()["unknown_variables"]) == ["RMM_UVM_MANAGED_LIMT", "RMM_UVM_X"]


def test_probe_sees_the_environment(tmp_path: Path) -> None:
    assert SystemProbe(tmp_path, {"RMM_UVM_X": "1"}).variables() == ("RMM_UVM_X",)


def test_run_tells_of_a_slip_in_its_summary(tmp_path: Path) -> None:
    path = script(tmp_path, "")
    done = run(tmp_path, *SIMULATED, path, RMM_UVM_EVICTON="lru", RMM_UVM_COMMIT="abc")
    line = "rmm_uvm: nothing reads the variable RMM_UVM_EVICTON: is RMM_UVM_EVICTION meant?"
    assert [one for one in done.stderr.splitlines() if "variable" in one] == [line]
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["RMM_UVM_EVICTION\x1b[2J", "RMM_UVM_\udcffEVICTION"])
def test_name_that_is_no_word_is_shown_as_python_spells_it(name: str) -> None:
    (told,) = likely_slips([name])
    assert told == f"nothing reads the variable {name!r}: is RMM_UVM_EVICTION meant?"
    assert f"{name!r}: is RMM_UVM_EVICTION meant?" in shown(variables=(name,))


@pytest.mark.parametrize(
    ("value", "said"), [(None, ""), ("", ""), ("  ", ""), (" on\n", "on"), ("a b", "a b")]
)
def test_setting_has_no_spaces_around_it_and_is_empty_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, value: str | None, said: str
) -> None:
    monkeypatch.delenv("RMM_UVM_DRIVER", raising=False)
    if value is not None:
        monkeypatch.setenv("RMM_UVM_DRIVER", value)
    assert setting("RMM_UVM_DRIVER") == said
