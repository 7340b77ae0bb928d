# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: the command line, the files that it names, and the summary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rmm_uvm.cli import run as cli
from rmm_uvm.cli.afterwards import Afterwards
from rmm_uvm.cli.run import Split, split
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.run import outputs
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.summary import about_watching, compose
from rmm_uvm.run.watching import say
from rmm_uvm.support.settings import SETTINGS

from .started import script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Split((), "", ())),
        (["--quiet"], Split(("--quiet",), "", ())),
        (["a.py"], Split((), "script", ("a.py",))),
        (["a.py", "--quiet"], Split((), "script", ("a.py", "--quiet"))),
        (["--html", "x", "a.py", "b"], Split(("--html", "x"), "script", ("a.py", "b"))),
        (["--html=x", "a.py"], Split(("--html=x",), "script", ("a.py",))),
        (["-m", "pkg", "-m"], Split((), "module", ("pkg", "-m"))),
        (["-mpkg", "x"], Split((), "module", ("pkg", "x"))),
        (["-m"], Split((), "module", ())),
        (["--quiet", "--", "ls", "-l"], Split(("--quiet",), "command", ("ls", "-l"))),
        (["a.py", "--", "b"], Split((), "script", ("a.py", "--", "b"))),
        (["--html"], Split(("--html",), "", ())),
    ],
)
def test_command_line_ends_where_the_program_begins(words: list[str], expected: Split) -> None:
    assert split(words, frozenset({"--html"})) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["-m"], "nothing to run"),
        (["--"], "nothing to run"),
        (["--no-such-option", "a.py"], "No such option"),
        (["--interval", "0", "a.py"], "0"),
        (["--interval", "nan", "a.py"], "nan is not a number of seconds"),
        (["--pool-size", "huge", "a.py"], "--pool-size='huge'"),
        (["missing.py"], "'missing.py' cannot be read"),
    ],
)
def test_command_line_that_is_wrong_is_usage(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.command, words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--device", "gpu0", "a.py"],
            "--device 'gpu0': use a number, simulated, simulated:SIZE or simulated:",
        ),
        (["--device", "simulated:", "a.py"], "use a number"),
        (["--device", "simulated:lots", "a.py"], "lots"),
        (
            ["--libraries", "cupy,cudf", "a.py"],
            "--libraries='cupy,cudf': use cupy, numba, torch, several",
        ),
        (["--libraries", "cupy,jax", "a.py"], "--libraries='jax': XLA allocates JAX's memory"),
        (["--json", "-", "a.py"], "--json -: standard output is the program's own; name a file"),
        (["--html", "-", "a.py"], "--html -: standard output is the program's own; name a file"),
        (["--trace", "-", "a.py"], "--trace -: standard output is the program's own; name a file"),
        (["--json", "/no/such/folder/x", "a.py"], "--json /no/such/folder/x cannot be written"),
    ],
)
def test_option_that_cannot_be_used_is_one_line(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.command, words)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert message in result.output


def test_module_that_is_not_there_has_the_status_that_python_gives() -> None:
    result = CliRunner().invoke(cli.command, ["-m", "no_such_module"])
    assert (result.exit_code, result.output) == (1, "Error: no module named 'no_such_module'\n")


def test_options_become_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunRequest] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rmm_uvm.run.session.prepare", lambda request, program: seen.append(request)
    )
    options = "--no-pool --device 1 --pool-size 2GiB --maximum 0.5 --prefetch never --interval 2"
    options += " --device-budget 0.25 --eviction lru"
    options += " --libraries cupy,torch --attribution --faults --json j --on-finding raise --quiet"
    with pytest.raises(Afterwards):
        CliRunner().invoke(cli.command, [*options.split(), str(script(tmp_path, ""))])
    assert seen == [
        RunRequest(
            pool=False,
            device=1,
            settings={
                "initial_pool_size": 2 << 30,
                "maximum_pool_size": 0.5,
                "device_budget": 0.25,
                "eviction": "lru",
                "prefetch": "never",
                "libraries": ("cupy", "torch"),
            },
            interval_seconds=2.0,
            attribution=True,
            faults=True,
            json=str(tmp_path / "j"),
            on_finding="raise",
            quiet=True,
        )
    ]


def of(**keywords: Any) -> RunRequest:
    """Return a request: keywords are its own, or settings of the pool."""
    settings = {name: keywords.pop(name) for name in [*keywords] if name in SETTINGS}
    return RunRequest(settings=settings, **keywords)


@pytest.mark.parametrize(
    ("request_", "unused"),
    [
        (RunRequest(pool=False), []),
        (of(initial_pool_size=1), []),
        (of(pool=False, neighbors="auto", prefetch="never"), ["--prefetch, --neighbors"]),
        (of(pool=False, torch=True, device_budget=0.5), []),
        (of(pool=False, torch=True, device_budget=0.5, maximum_pool_size=1), ["--maximum"]),
    ],
)
def test_request_knows_what_has_nothing_to_apply_to(
    request_: RunRequest, unused: list[str]
) -> None:
    assert request_.unused() == [f"--no-pool: there is no pool for {each}" for each in unused]


def test_request_travels_as_text() -> None:
    request = of(initial_pool_size=0.25, libraries=(), neighbors=(1, 2), html="/x")
    assert RunRequest.from_json(request.to_json()) == request


def test_outputs_checked_are_not_made_and_not_changed(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("kept")
    outputs.check(RunRequest(json=str(old), trace=str(tmp_path / "new")))
    assert old.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [old]
    link = tmp_path / "link.json"
    link.symlink_to("later.json")
    outputs.check(RunRequest(json=str(link)))
    assert sorted(tmp_path.iterdir()) == [link, old]


def test_outputs_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "file", "/proc/rmm-uvm"):
        with pytest.raises(ConfigurationError, match=r"--trace .* cannot be written"):
            outputs.check(RunRequest(trace=str(path)))


def test_outputs_of_the_same_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="--trace and --json name the same file"):
        outputs.check(RunRequest(json=str(tmp_path / "file"), trace=str(tmp_path / "link")))
    outputs.check(RunRequest(json=os.devnull, html=os.devnull))


def test_outputs_trace_that_is_a_device_or_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", "/dev/full", str(tmp_path / "pipe")):
        with pytest.raises(
            ConfigurationError, match=f"--trace {path} is not a regular file"
        ) as told:
            outputs.check(RunRequest(trace=path))
        assert "remove" not in str(told.value)
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        outputs.check(RunRequest(trace=str(tmp_path / "link")))
    outputs.check(RunRequest(html="/dev/null", json="/dev/full"))  # written directly


def test_outputs_trace_that_holds_another_run_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "t.trace"
    trace.touch()
    outputs.check(RunRequest(trace=str(trace)))  # empty: nothing is lost
    trace.write_bytes(b"of the first run")
    with pytest.raises(ConfigurationError, match=r"--trace .*t.trace exists: name another file"):
        outputs.check(RunRequest(trace=str(trace)))


def test_outputs_html_without_bokeh_is_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AvailabilityError, match="pip install"):
        outputs.check(RunRequest(html=str(tmp_path / "x.html")))


def test_outputs_that_fail_at_the_end_are_a_line(tmp_path: Path) -> None:
    class Report:
        def save_json(self, path: str) -> None:
            raise OSError(28, "No space left on device")

    assert outputs.write(RunRequest(json="/x/y"), Report()) == [
        "/x/y cannot be written: No space left on device"
    ]


def test_summary_has_what_was_not_watched_first() -> None:
    text = compose(about_watching("no GPU", ["a note"]), "body\n", ["x cannot be\nwritten"])
    assert text.splitlines() == [
        "rmm_uvm: no device was watched: no GPU",
        "rmm_uvm: a note",
        "body",
        "rmm_uvm: x cannot be written",
    ]


def test_line_for_a_closed_error_stream_is_dropped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.__stderr__", None)
    say("nobody hears")
    assert capsys.readouterr() == ("", "")


def test_summary_of_a_watched_device_is_the_report() -> None:
    assert compose(about_watching(None, []), "body\n") == "body"
