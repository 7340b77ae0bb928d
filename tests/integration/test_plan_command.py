# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm plan`` on recordings of a program: what it prints and writes, and what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rmm
from click.testing import CliRunner

import rmm_uvm
from rmm_uvm.cli.plan import command
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner import Plan

MIB = 1 << 20
MAIN = "from rmm_uvm.cli.main import main; main()"


def program(device: SimulatedDevice, mr: rmm.mr.DeviceMemoryResource) -> None:
    """Load, join and aggregate in 160 MiB, in stages."""
    made = {}
    for stage, size in (("load", 64 * MIB), ("join", 64 * MIB), ("aggregate", 32 * MIB)):
        with rmm_uvm.stage(stage):
            made[stage] = (mr.allocate(size), size)
            for address, nbytes in made.values():
                device.touch(address, nbytes, write=True)
    for address, nbytes in made.values():
        mr.deallocate(address, nbytes)


LOG = f"""Thread,Time,Action,Pointer,Size,Stream
1,10:00:00.000000,allocate,0x7f0000000000,{64 * MIB},0x0
1,10:00:01.000000,allocate,0x7f0004000000,{64 * MIB},0x0
1,10:00:02.000000,allocate,0x7f0008000000,{32 * MIB},0x0
1,10:00:03.000000,free,0x7f0000000000,{64 * MIB},0x0
1,10:00:04.000000,free,0x7f0004000000,{64 * MIB},0x0
1,10:00:05.000000,free,0x7f0008000000,{32 * MIB},0x0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with recordings of a program."""
    found = tmp_path_factory.mktemp("recorded")
    trace = found / "etl.trace"
    device = rmm_uvm.simulated_device("1GiB")
    with rmm_uvm.reinitialize(
        driver=device, libraries=(), monitor={"trace": trace, "on_finding": None}
    ) as uvm:
        program(device, uvm.devices[0].managed_mr)
    (found / "etl.trace.gz").write_bytes(gzip.compress(trace.read_bytes()))
    (found / "etl.csv").write_text(LOG)
    (found / "two.dev0.csv").write_text(LOG)
    (found / "two.dev1.csv").write_text(LOG)
    (found / "empty.trace").write_bytes(b"")
    with rmm_uvm.monitor(driver="simulated:64MiB", trace=found / "nothing.trace", on_finding=None):
        pass
    return found


def run(
    folder: Path, *arguments: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command there, with the contents of a file there coming through a pipe."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", MAIN, "plan", *arguments],
        capture_output=True,
        input=None if stdin is None else (folder / stdin).read_bytes(),
        cwd=folder,
        timeout=100,
        check=False,
    )
    return subprocess.CompletedProcess(
        result.args, result.returncode, result.stdout.decode(), result.stderr.decode()
    )


def test_plan_of_a_trace_prints_cards_answers_and_settings(folder: Path) -> None:
    result = run(folder, "etl.trace", "--device-memory", "96MiB,256MiB")
    assert (result.returncode, result.stderr) == (0, "")
    first, *lines = result.stdout.splitlines()
    assert first == "Simulated on h200-pcie5. Nothing of this ran on a GPU."
    text = " ".join(" ".join(lines).split())
    for expected in (
        "3 allocations in",
        "recorded on: simulated device",
        "peak 160.00 MiB",
        "The step that helps most: 96.00 MiB to 256.00 MiB",
        "On 256.00 MiB The whole input: yes, it fits. rmm_uvm.reinitialize(",
        "Name one card, --device-memory SIZE",
    ):
        assert expected in text


def test_plan_for_one_card_answers_and_says_why(folder: Path) -> None:
    result = run(folder, "etl.trace", "--device-memory", "96MiB")
    assert (result.returncode, result.stderr) == (0, "")
    text = " ".join(result.stdout.split())
    for expected in (
        "Evicted on 96.00 MiB, by stage:",
        "Can I avoid splitting my input?",
        "Can I train on more data?",
        "rmm_uvm.reinitialize(",
        "enough memory",
    ):
        assert expected in text


def test_plan_writes_json_and_a_page_that_say_the_same(folder: Path) -> None:
    arguments = ("--device-memory", "96MiB,256MiB", "--html", "plan.html", "--json", "plan.json")
    result = run(folder, "etl.trace.gz", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    told = json.loads((folder / "plan.json").read_text())
    small, large = told["cards"]
    assert small["variants"][0]["slowdown"] > 1.0 == large["variants"][0]["slowdown"]
    assert small["variants"][0]["result"]["evicted_bytes"] >= 64 * MIB
    assert large["variants"][0]["result"]["evicted_bytes"] == 0
    page = (folder / "plan.html").read_text()
    for card in (small, large):
        assert card["splitting"]["text"] in page
    assert "Simulated on h200-pcie5" in page


def test_plan_of_an_rmm_log_is_told_by_size_of_allocation(folder: Path) -> None:
    result = run(folder, "etl.csv", "--device-memory", "96MiB")
    assert (result.returncode, result.stderr) == (0, "")
    assert "by size of allocation: 16 MiB to 128 MiB" in " ".join(result.stdout.split())
    assert "says nothing of touches" in " ".join(result.stdout.split())


def test_plan_of_a_machine_that_was_not_measured_is_labelled(folder: Path) -> None:
    result = run(folder, "etl.trace", "--profile", "gtx1080ti-pcie3", "--device-memory", "96MiB")
    assert result.returncode == 0
    assert result.stdout.startswith("Simulated on gtx1080ti-pcie3 (published only).")
    words = " ".join(result.stdout.split())
    named = words.count("gtx1080ti-pcie3")
    assert words.count("gtx1080ti-pcie3 (published only)") == named


def test_plan_with_every_option_replays_every_way(folder: Path) -> None:
    result = run(
        folder, "etl.trace", "--device-memory", "96MiB", "--machine", "a100-pcie4",
        "--prefetch", "auto,never", "--driver-prefetch-threshold", "51,5",
        "--policy", "driver,discard-dead", "--workers", "2", "--host-memory", "4GiB",
        "--json", "all.json",
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    (card,) = json.loads((folder / "all.json").read_text())["cards"]
    assert len(card["variants"]) == 8
    assert card["capacity_bytes"] == 84 * MIB
    assert card["settings"]["ipc_pool_bytes"] == 12 * MIB
    assert card["settings"]["host_sharers"] == 2


def test_plan_of_a_program_that_announces_tries_budgets_and_others_do_not(folder: Path) -> None:
    for words, policies in (
        (["--announced"], {None, "repeat", "lru", "fifo", "correlation"}),
        ([], set()),
    ):
        result = run(folder, "etl.trace", "--device-memory", "64MiB", "--json", "one.json", *words)
        assert (result.returncode, result.stderr) == (0, "")
        (card,) = json.loads((folder / "one.json").read_text())["cards"]
        assert card["oversubscription_factor"] > 1
        assert {way["eviction"] for way in card["ways"]} == policies
        assert ("announces its uses" in " ".join(result.stdout.split())) is bool(words)


def test_terminal_shows_what_is_replayed(folder: Path) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as shown:
        with os.fdopen(theirs, "wb") as terminal:
            result = subprocess.run(
                [sys.executable, "-P", "-c", MAIN, "plan", "etl.trace", "--device-memory", "1GiB"],
                stdout=subprocess.PIPE,
                stderr=terminal,
                env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
                cwd=folder,
                timeout=100,
                check=False,
            )
        assert result.returncode == 0
        assert b"replay" in shown.read(1 << 16)
    assert result.stdout.startswith(b"Simulated on")


def test_plan_in_python_is_what_the_command_prints(folder: Path) -> None:
    made = rmm_uvm.plan(folder / "etl.trace", ["96MiB", "256MiB"])
    assert isinstance(made, Plan)
    result = run(folder, str(folder / "etl.trace"), "--device-memory", "96MiB,256MiB")
    assert result.stdout == f"{made}\n"
    with pytest.raises(AttributeError):
        made.cards = ()  # type: ignore[misc]


def test_plan_without_sizes_looks_at_those_around_the_peak(folder: Path) -> None:
    made = rmm_uvm.plan(folder / "etl.trace")
    assert [card.device_bytes // MIB for card in made.cards] == [48, 64, 96, 128, 192]


def test_example_of_the_document_is_what_the_command_prints(folder: Path) -> None:
    root = Path(__file__).parents[2]
    document = (root / "docs" / "use" / "planner.md").read_text()
    example = document.partition("## An example")[2].partition("\n## ")[0]
    call, *lines = [line[4:] for line in example.splitlines() if line.startswith("    ")]
    _, command_name, trace = call.split()
    assert command_name == "plan"
    result = run(folder, str(root / trace))
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    assert len(lines) > 10
    assert [line for line in lines if line != "..." and line not in printed] == []


def test_document_names_every_option() -> None:
    document = (Path(__file__).parents[2] / "docs" / "use" / "planner.md").read_text()
    options = [name for parameter in command.params for name in parameter.opts if name[:2] == "--"]
    assert len(options) > 8
    assert [name for name in options if f"`{name}`" not in document] == []


def test_file_that_is_missing_is_one_line_of_the_whole_program_too(folder: Path) -> None:
    result = run(folder, "nowhere.trace")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.trace"], "nowhere.trace"),
        (["empty.trace"], "empty.trace"),
        (["nothing.trace"], "nothing.trace has no allocation"),
        (["."], "."),
        (["etl.trace", "--profile", "gtx1080"], "there is no machine 'gtx1080'"),
        (["etl.trace", "--profile", "nowhere.toml"], "nowhere.toml"),
        (["etl.trace", "--device-memory", "0"], "--device-memory 0: a size must be greater"),
        (["etl.trace", "--device-memory", "16GiB,"], "--device-memory '': expected"),
        (["etl.trace", "--device-memory", "large"], "--device-memory large: expected"),
        (["etl.trace", "--device-memory", "1GiB,1024MiB"], "--device-memory has 1.00 GiB twice"),
        (
            ["etl.trace", "--driver-prefetch-threshold", "101"],
            "-prefetch-threshold 101: a whole",
        ),
        (
            ["etl.trace", "--driver-prefetch-threshold", "-5"],
            "-prefetch-threshold -5: a whole",
        ),
        (["etl.trace", "--prefetch", "often"], "--prefetch often: use one of 'auto', 'always',"),
        (["etl.trace", "--policy", "lru"], "--policy lru: use"),
        (["etl.trace", "--workers", "0"], "--workers 0: a number"),
        (["etl.trace", "--host-memory", "-1"], "--host-memory -1: expected"),
        (["etl.trace", "--third-tier", "2TB@6.8/4.0"], "--third-tier 2TB@6.8/4.0: a host without"),
        (
            ["etl.trace", "--host-memory", "4GiB", "--third-tier", "2TB"],
            "--third-tier 2TB: SIZE@READ/WRITE",
        ),
        (["etl.trace", "--device", "3"], "device"),
        (["etl.trace", "--device-memory", "24"], "--device-memory 24: a card has 16.00 MiB at"),
        (["etl.trace", "--fitting-seconds", "nan"], "--fitting-seconds nan: a time"),
        (["etl.trace", "--prefetch", "auto,auto"], "--prefetch has auto twice"),
        (["etl.trace", "--policy", "driver,driver"], "--policy has driver twice"),
        (["etl.trace", "--driver-prefetch-threshold", "5,05"], "threshold has 5 twice"),
        (["two.csv"], "choose one with --device"),
        (["etl.trace", "--html", "."], "--html . is a folder"),
        (["etl.trace", "--json", "no/where.json"], "there is no folder"),
        (["etl.trace", "--json", "a", "--html", "a"], "name the same file"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_status_2(
    folder: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(command, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "twice",
    [
        ("--profile", "a100-pcie4", "--profile", "h200-pcie5"),
        ("--profile", "a100-pcie4", "--machine", "h200-pcie5"),
        ("--workers", "2", "--workers=2"),
        ("--device-memory", "64MiB", "--device-memory", "96MiB"),
        ("--json", "a", "--json", "b"),
    ],
)
def test_option_that_is_given_twice_is_refused(
    folder: Path, twice: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(command, ["etl.trace", *twice])
    assert (result.exit_code, result.stdout) == (2, "")
    first = "--profile (or --machine)" if "--profile" in twice else twice[0]
    assert f"{first} is given twice: give it once" in result.stderr
    assert ("with commas" in result.stderr) == (twice[0] == "--device-memory")
    assert not (folder / "b").exists()


def test_json_on_standard_output_is_all_that_is_printed(folder: Path) -> None:
    result = run(folder, "etl.trace", "--device-memory", "96MiB", "--json", "-")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["cards"][0]["device_bytes"] == 96 * MIB
    assert not (folder / "-").exists()
    page = run(folder, "etl.trace", "--device-memory", "96MiB", "--html", "-", "--json", "p.json")
    assert page.stdout.startswith("<!DOCTYPE html>")
    assert json.loads((folder / "p.json").read_text())["cards"]
    both = run(folder, "etl.trace", "--html", "-", "--json", "-")
    assert (both.returncode, both.stdout) == (2, "")
    assert "--html and --json name the same file" in both.stderr


@pytest.mark.parametrize("name", ["etl.trace", "etl.trace.gz", "etl.csv"])
def test_recording_through_a_pipe_is_planned_as_from_a_file(folder: Path, name: str) -> None:
    piped = run(folder, "-", "--device-memory", "96MiB", stdin=name)
    assert (piped.returncode, piped.stderr) == (0, "")
    from_file = run(folder, name, "--device-memory", "96MiB")
    assert piped.stdout == from_file.stdout.replace(f"\n{name}\n", "\nstandard input\n")


def test_broken_recording_through_a_pipe_names_standard_input(folder: Path) -> None:
    result = run(folder, "-", stdin="nothing.trace")
    assert result.returncode == 2
    assert result.stderr.startswith("Error: standard input has no allocation")


def test_standard_input_that_is_a_terminal_is_refused_with_a_hint(folder: Path) -> None:
    ours, theirs = os.openpty()
    try:
        result = subprocess.run(
            [sys.executable, "-P", "-c", MAIN, "plan", "-"],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert result.returncode == 2
    assert "which is a terminal: pipe one, or name a file" in result.stderr


def test_message_of_python_names_the_argument(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^device_memory='24': a card"):
        rmm_uvm.plan(folder / "etl.trace", "24")
    with pytest.raises(DataError, match=r"choose one with device=$"):
        rmm_uvm.plan(folder / "two.csv")


@pytest.mark.parametrize(("device_memory", "fits"), [("192MiB", False), ("256MiB", True)])
def test_plan_of_what_only_the_pool_cannot_hold_does_not_contradict_itself(
    tmp_path: Path, device_memory: str, fits: bool
) -> None:
    device, trace = rmm_uvm.simulated_device("1GiB"), tmp_path / "tight.trace"
    with rmm_uvm.reinitialize(
        driver=device, libraries=(), monitor={"trace": trace, "on_finding": None}
    ) as uvm:
        mr, size = uvm.devices[0].managed_mr, 38 * MIB
        columns = [mr.allocate(size) for _ in range(5)]
        for column in columns:
            device.touch(column, size, write=True)
        for column in columns:
            mr.deallocate(column, size)
    plan = rmm_uvm.plan(trace, device_memory, host_memory="1MiB")
    text = " ".join(str(plan).split())
    assert plan.to_dict()["cards"][0]["pool_out_of_memory"] is not fits
    assert ("all of it fits" in text) is fits
    assert ("runs out of memory" in text) is not fits
    assert (plan.cards[0].splitting.verdict == "yes") is fits
    assert (plan.cards[0].more_data.verdict == "yes") is fits
