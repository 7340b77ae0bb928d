# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: no report takes the place of the program, or of what the program is given."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmm_uvm.cli import run as cli
from rmm_uvm.cli.afterwards import Afterwards
from rmm_uvm.run.program_files import files_named, is_among

from .started import run, script

FAILS = "raise AssertionError('it was run')\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return files of programs that would fail, with what is in each; they are where we are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pkg" / "sub").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    names = ("a.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/mod.py", "pkg/sub/deep.py")
    for name in (*names, "folder/__main__.py", "data.csv"):
        (tmp_path / name).write_text(FAILS)
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as app:
        app.writestr("__main__.py", FAILS)
    (tmp_path / "link.html").symlink_to("a.py")
    (tmp_path / "other").symlink_to("a.py")
    return {str(path): path.read_bytes().hex() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("option", ["--html", "--json", "--trace"])
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("a.py", ["a.py"]),
        ("./pkg/../a.py", ["a.py"]),
        ("link.html", ["a.py"]),
        ("a.py", ["other"]),
        ("folder/__main__.py", ["folder"]),
        ("app.pyz", ["app.pyz"]),
        ("a.py", ["-m", "a"]),
        ("pkg/__init__.py", ["-m", "pkg"]),
        ("pkg/__main__.py", ["-m", "pkg"]),
        ("pkg/__init__.py", ["-m", "pkg.mod"]),
        ("pkg/mod.py", ["-m", "pkg.mod"]),
        ("pkg/sub/deep.py", ["-m", "pkg.sub.deep"]),
        ("a.py", ["--", "python", "a.py"]),
        ("data.csv", ["a.py", "data.csv"]),
        ("data.csv", ["-m", "a", "data.csv"]),
        ("data.csv", ["a.py", "--input=data.csv"]),
        ("data.csv", ["-m", "a", "--quick", "-i=./pkg/../data.csv"]),
        ("data.csv", ["--", "dd", "if=data.csv"]),
        ("data.csv", ["a.py", "--set=input=data.csv"]),
    ],
)
def test_file_that_is_the_program_or_given_to_it_is_refused_and_stays(
    tmp_path: Path, files: dict[str, str], option: str, file: str, words: list[str]
) -> None:
    result = CliRunner().invoke(cli.command, [option, file, *words])
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {option} {tmp_path}")
    assert result.output.endswith(" is the program or an argument of it: name another file\n")
    left = {str(path): path.read_bytes().hex() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == files


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("data.csv", ["a.py"]),
        ("new.json", ["a.py", "new.json"]),
        ("new.json", ["a.py", "--output=new.json", "--input=data.csv", "-x=", "=", "x=y=data"]),
        ("data.csv", ["a.py", "--input=no/data.csv", "--input.data.csv"]),
        ("a.py", ["-m", "pkg.mod"]),
        ("pkg/mod.py", ["-m", "pkg"]),
        ("/dev/null", ["a.py", "/dev/null", "x" * 5000, "a\0b"]),
    ],
)
@pytest.mark.usefixtures("files")
def test_any_other_file_is_taken(
    file: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmm_uvm.run.session.prepare", lambda request, program: lambda: None)
    with pytest.raises(Afterwards):
        CliRunner().invoke(cli.command, ["--json", file, *words])


@pytest.mark.parametrize("name", ["no_such", "no_such.mod", "pkg.none", "pkg.none.x", "."])
@pytest.mark.usefixtures("files")
def test_module_that_is_not_there_has_no_more_files_than_its_packages(name: str) -> None:
    assert {path.name for path in files_named("module", [name])} <= {"__init__.py"}


def test_module_in_the_current_folder_is_refused_by_the_command_itself(tmp_path: Path) -> None:
    path = script(tmp_path, FAILS, "app.py")
    done = run(tmp_path, "--html", "app.py", "-m", "app")
    told = f"Error: --html {path} is the program or an argument of it: name another file\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert path.read_text() == FAILS


def test_file_that_is_not_there_is_among_none(tmp_path: Path) -> None:
    assert not is_among(str(tmp_path / "new"), [tmp_path / "new", tmp_path])
