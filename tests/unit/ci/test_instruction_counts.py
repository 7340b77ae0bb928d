# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of instructions: read from callgrind, compared with the record."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ..benchmarks.scripts import REPOSITORY, script

counts = script("ci", "instruction_counts")
build = script("ci", "instruction_build")

PROFILE = """# callgrind format
events: Ir
fl=(1) ???
fn=(1) rmm_uvm::benchmarks::(anonymous namespace)::hot_path_touch(int, unsigned long)
0 100
cfn=(2) rmm_uvm::pool::use()
calls=10 0
0 400
+3 20

fn=(2)
0 400
fn=(3) rmm_uvm::benchmarks::hot_path_replay(unsigned long) [clone .noipa]
* 30
fn=(1)
0 80
"""


def test_counts_hold_what_a_path_calls_and_are_divided_by_rounds() -> None:
    assert counts.inclusive_counts(PROFILE) == {"touch": 600, "replay": 30}
    assert counts.per_operation(PROFILE, {"touch": 10, "replay": 10}) == {
        "touch": 60.0,
        "replay": 3.0,
    }


def test_path_that_was_run_and_is_not_found_is_an_error() -> None:
    with pytest.raises(ValueError, match="a path was inlined"):
        counts.per_operation(PROFILE, {"touch": 10, "replay": 10, "free": 1})


def test_rise_over_a_tenth_fails_and_names_the_path() -> None:
    _, failed, fallen = counts.compared({"touch": 111.0}, {"touch": 100.0})

    assert failed == ["touch rose by 11%"]
    assert fallen == []


def test_rise_of_a_tenth_passes_and_a_fall_is_told() -> None:
    lines, failed, fallen = counts.compared(
        {"touch": 110.0, "free": 50.0}, {"touch": 100.0, "free": 100.0}
    )

    assert failed == []
    assert fallen == ["free"]
    assert lines[-1].split() == ["touch", "100.0", "110.0", "1.100"]


def test_path_without_record_and_record_without_path_fail() -> None:
    _, failed, _ = counts.compared({"new": 1.0}, {"old": 1.0})

    assert failed == ["new is not recorded", "old is not counted any more"]


BUILT = {
    "compiler": "g++ 1.0",
    "c_library": "glibc 2",
    "librmm": "librmm 26.10.00",
    "flags": "no CXXFLAGS",
}


@pytest.mark.parametrize(
    "other",
    [{"compiler": "g++ 2.0"}, {"librmm": "librmm 26.12.00"}, {"flags": "CXXFLAGS -O1"}],
)
def test_other_compiler_library_or_flags_compare_nothing_and_say_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    other: dict[str, str],
) -> None:
    record = tmp_path / "counts.json"
    record.write_text(json.dumps({"built_with": BUILT}))
    monkeypatch.setattr(counts, "built_with", lambda _: BUILT | other)

    assert counts.main(["nowhere", "--result", str(record)]) == 0
    said = capsys.readouterr().out
    assert f"skipped: recorded with {', '.join(BUILT.values())}; here is" in said
    assert next(iter(other.values())) in said
    assert said.endswith("; ci/check_instructions.sh --write records these anew\n")
    assert len(said.splitlines()) == 1
    comparable = ["nowhere", "--comparable", "--result", str(record)]
    assert counts.main(comparable) == counts.NOT_COMPARABLE


def test_same_compiler_library_and_flags_are_comparable_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "counts.json"
    record.write_text(json.dumps({"built_with": BUILT}))
    monkeypatch.setattr(counts, "built_with", lambda _: BUILT)

    assert counts.main(["nowhere", "--comparable", "--result", str(record)]) == 0
    assert capsys.readouterr().out == ""


def wheel_build(repository: Path) -> tuple[Path, Path]:
    """Return a wheel's build folder and the environment that it was built in."""
    folder, environment = repository / "build" / "cp311-abi3-linux", repository / "environment"
    root = environment / "librmm"
    for made in (folder, root, environment / "bin"):
        made.mkdir(parents=True)
    (root / "VERSION").write_text("26.08.01\n")
    (environment / "bin" / "python").touch()
    (folder / "build.ninja").write_text(f"  LINK = {root}/lib64/librmm.so  -ldl\n")
    (folder / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={repository}\nCMAKE_CXX_FLAGS:STRING=-O1\n"
        f"Python_EXECUTABLE:PATH={environment}/bin/python\n"
    )
    return folder, environment


def test_wheel_s_build_folder_is_used_while_what_it_was_built_beside_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = wheel_build(tmp_path)

    assert build.build_folder(tmp_path) == folder
    monkeypatch.setattr(build, "usable", lambda _: True)
    assert build.built_with(folder)["librmm"] == "librmm 26.08.01"
    assert build.built_with(folder)["flags"] == "CXXFLAGS -O1"


@pytest.mark.parametrize("gone", ["bin/python", "librmm"])
def test_build_folder_of_a_deleted_environment_is_not_used(tmp_path: Path, gone: str) -> None:
    _, environment = wheel_build(tmp_path)
    (environment / gone).rename(tmp_path / "gone")

    assert build.build_folder(tmp_path) == tmp_path / "build" / "cpp" / "instructions"


def test_every_path_of_the_program_is_recorded() -> None:
    sources = (REPOSITORY / "cpp" / "benchmarks" / "instructions").glob("*.cpp")
    paths = {
        line.split('"')[1]
        for source in sources
        for line in source.read_text().splitlines()
        if line.lstrip().startswith('count("')
    }
    recorded = json.loads(counts.RESULT.read_text())["instructions_per_operation"]

    assert paths == set(recorded)


def ended(
    folder: Path, compares: int, words: list[str], **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the script without valgrind and rights, beside a Python that says what compares."""
    for name in ("dirname", "uname"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, text in {"id": "echo 1000", "python": f'[ "$#" -eq 1 ] || exit {compares}'}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["/bin/bash", str(REPOSITORY / "ci" / "check_instructions.sh"), *words],
        env={"PATH": str(folder), "PYTHON": str(folder / "python"), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


# The line that nothing is compared (3) is the interpreter's, which is none here.
@pytest.mark.parametrize(
    ("compares", "words", "said", "status"),
    [
        (0, [], "install valgrind", 0),
        (0, ["--write"], "install valgrind", 1),
        (3, [], "", 0),
        (1, [], "", 1),
    ],
)
def test_script_without_valgrind_and_rights_ends_before_it_builds(
    tmp_path: Path, compares: int, words: list[str], said: str, status: int
) -> None:
    done = ended(tmp_path, compares, words)

    assert done.returncode == status, done.stderr
    assert said in done.stdout
    assert len(done.stdout.splitlines()) == bool(said)


@pytest.mark.parametrize(("compares", "said"), [(0, "install valgrind"), (3, "")])
def test_script_that_has_to_compare_fails_where_it_cannot(
    tmp_path: Path, compares: int, said: str
) -> None:
    done = ended(tmp_path, compares, [], RMM_UVM_INSTRUCTIONS="required")

    assert done.returncode == 1, done.stderr
    assert said in done.stdout


def test_script_with_another_word_than_required_says_so_and_ends(tmp_path: Path) -> None:
    done = ended(tmp_path, 0, [], RMM_UVM_INSTRUCTIONS="on")

    assert done.returncode == 2
    assert "RMM_UVM_INSTRUCTIONS is 'on'" in done.stderr
