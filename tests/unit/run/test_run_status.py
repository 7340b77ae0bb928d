# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: the exit status of what cannot be used, and of what can."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import rmm_uvm
from rmm_uvm.cli import run as cli
from rmm_uvm.errors import CapacityWarning, ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.run import session
from rmm_uvm.run.torch_memory import torch_budget
from rmm_uvm.support.variables import KNOWN

from .started import run, script

SIMULATED = ["--device", "simulated:64MiB"]
DRIVER = "RMM_UVM_DRIVER"
KINDS = ("script", "module", "command")


def asked(
    kind: str, words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Result, bool]:
    """Return how the command ends, and whether the program was begun."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(session, "tell_command", lambda command: None)  # this is still pytest
    monkeypatch.setattr(session, "atexit", SimpleNamespace(register=lambda *arguments: None))
    monkeypatch.setenv(DRIVER, os.environ.get(DRIVER, ""))  # which a run sets
    script(folder, "open('ran', 'w'); raise SystemExit(3)", "app.py")
    programs = {
        "script": ["app.py"],
        "module": ["-m", "json.tool", "app.py"],
        "command": ["--", "sh", "-c", "touch ran; exit 3"],
    }
    result = CliRunner().invoke(cli.command, [*words, "--quiet", *programs[kind]])
    return result, (folder / "ran").exists()


def name_two_gpus(monkeypatch: pytest.MonkeyPatch, *, integrated: bool) -> None:
    """Have CUDA tell of two, without opening any."""
    facts = {
        "total_bytes": 139 << 30,
        "concurrent_managed_access": True,
        "integrated": integrated,
    }
    found = SimpleNamespace(
        reason="", devices=[SimpleNamespace(index=one, **facts) for one in (0, 1)]
    )
    monkeypatch.setattr("rmm_uvm.doctor.cuda_library.read_cuda", lambda: found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "gpu0"], "--device 'gpu0': use a number"),
        (["--device", "simulated:2G"], "--device simulated:2G: SIZE='2G': write 2GiB"),
        (["--device", "simulated:1MiB"], "--device simulated:1MiB: a simulated device has a mul"),
        (["--device", "4096"], ""),
        (["--pool-size", "2G"], "--pool-size='2G': write 2GiB"),
        ([*SIMULATED, "--pool-size", "900PB"], "initial_pool_size is "),
        ([*SIMULATED, "--pool-size", "32MiB", "--maximum", "16MiB"], "over the maximum of 16.00"),
        ([*SIMULATED, "--maximum", "1MiB"], "takes 2 MiB at least"),
        ([*SIMULATED, "--device-budget", "1"], "--device-budget='1': at least 8.00 MiB"),
        ([*SIMULATED, "--device-budget", "128MiB"], "the device has 64.00 MiB"),
        (
            [*SIMULATED, "--device-budget", "none", "--eviction", "lru"],
            "eviction='lru' without a budget",
        ),
        ([*SIMULATED, "--eviction", "best"], "--eviction='best': use one of"),
        ([*SIMULATED, "--neighbors", "foo"], "--neighbors='foo': use auto"),
        ([*SIMULATED, "--device-budget", "none", "--neighbors", "1"], "without a budget"),
        ([*SIMULATED, "--neighbors", "1", "--device-budget", "0.5"], "there is no device 1"),
        # Also where there is no GPU, so that there would be no pool.
        (["--device-budget", "none", "--eviction", "lru"], "eviction='lru' without a budget"),
        (["--pool-size", "32MiB", "--maximum", "16MiB"], "over the maximum of 16.00"),
        (["--libraries", "jax"], "--libraries='jax': XLA allocates JAX's memory"),
        (["--prefetch", "often"], "--prefetch='often': use one of"),
        (["--interval", "0"], "0"),
        (["--evict", "activations"], "--evict is for --torch"),
        ([*SIMULATED, "--torch"], "--torch needs a GPU"),
        (["--html", "same", "--json", "same"], "name the same file"),
        (["--trace", "/no/such/folder/x"], "cannot be written"),
        (["--trace", "/dev/null"], "--trace /dev/null is not a regular file"),
        (["--on-finding", "stop"], "'stop' is not one of"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_wrong_value_is_usage_whatever_is_run_and_nothing_is(
    kind: str, words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, ran = asked(kind, words, tmp_path, monkeypatch)
    assert (result.exit_code, ran) == (2, False), result.output
    assert message in result.output
    assert result.output.rstrip().splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    "words",
    [
        [],
        [*SIMULATED, "--pool-size", "16MiB", "--maximum", "32MiB"],
        [*SIMULATED, "--device-budget", "0.5", "--eviction", "lru", "--neighbors", "auto"],
        [*SIMULATED, "--pool-size", "1GiB"],
        # Of a GPU that is not opened for it: half of it may be less.
        ["--pool-size", "0.5", "--maximum", "1GiB"],
        ["--device-budget", "900GiB", "--eviction", "lru", "--neighbors", "7"],
        ["--no-pool", "--pool-size", "900PB"],
    ],
)
def test_command_that_may_have_its_pool_is_run_and_its_status_passed_on(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, ran = asked("command", words, tmp_path, monkeypatch)
    assert (result.exit_code, ran) == (3, True), result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "1"], ""),
        (["--device", "1", "--device-budget", "0.5", "--neighbors", "0"], ""),
        (["--device", "2"], "--device 2: there is no such GPU: this process sees 2, coun"),
        (["--device", "1", "--device-budget", "200GiB"], "the device has 139.00 GiB"),
        (["--device", "1", "--device-budget", "0.5", "--neighbors", "2"], "there is no device 2"),
        (["--device", "1", "--pool-size", "0.5", "--maximum", "1GiB"], "over the maximum of 1.00"),
    ],
)
def test_gpu_that_is_named_is_asked_without_opening_it(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_two_gpus(monkeypatch, integrated=False)
    result, ran = asked("command", words, tmp_path, monkeypatch)
    assert (result.exit_code, ran) == ((2, False) if message else (3, True)), result.output
    assert message in result.output


@pytest.mark.parametrize(
    ("integrated", "message"), [(False, ""), (True, "are one memory, with 100.00 GiB")]
)
@pytest.mark.filterwarnings("error")
def test_memory_of_a_named_gpu_counts_once_where_it_is_the_hosts(
    integrated: bool, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_two_gpus(monkeypatch, integrated=integrated)
    host = HostMemory(200 << 30, 100 << 30)
    monkeypatch.setattr("rmm_uvm.run.pool_check.host_memory", lambda: host)
    words = ["--device", "1", "--device-budget", "0.5", "--maximum", "150GiB"]
    result, ran = asked("command", words, tmp_path, monkeypatch)
    assert (result.exit_code, ran) == ((2, False) if message else (3, True)), result.output
    assert message in result.output


def test_torch_is_refused_where_no_budget_can_be_kept_and_none_is_advised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = rmm_uvm.simulated_device("64MiB", integrated=True)
    monkeypatch.setattr("rmm_uvm.run.torch_memory.choose_driver", lambda *_: device)
    settings = {"device_budget": "16MiB", "eviction": None, "neighbors": None}
    request: Any = SimpleNamespace(device=None, eager=None, setting=settings.get)
    with (
        pytest.warns(CapacityWarning, match="the device keeps none"),
        pytest.raises(ConfigurationError, match=r"the host's, .* run the program without --torch"),
    ):
        torch_budget(request)


@pytest.mark.parametrize("variable", sorted(KNOWN))
@pytest.mark.parametrize("kind", KINDS)
def test_variable_that_cannot_be_used_is_usage_too(
    kind: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DRIVER, "simulated:64MiB")
    monkeypatch.setenv(variable, "2G")
    result, ran = asked(kind, [], tmp_path, monkeypatch)
    assert (result.exit_code, ran) == (2, False), result.output
    assert variable in result.output


@pytest.mark.parametrize("status", [1, 2])
def test_status_of_the_program_is_its_own_also_where_we_have_such_a_one(
    status: int, tmp_path: Path
) -> None:
    path = script(tmp_path, f"raise SystemExit({status})")
    done = run(tmp_path, "--no-pool", "--quiet", path)
    assert (done.returncode, done.stderr) == (status, "")


def test_memory_that_cannot_be_had_is_no_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> None:
        raise MemoryError("no memory for the first slab")

    monkeypatch.setattr("rmm_uvm.run.watching.Watch.begin", refuse)
    result, ran = asked("script", SIMULATED, tmp_path, monkeypatch)
    assert (result.exit_code, ran) == (1, False)
    assert result.output == "Error: no memory for the first slab\n"
