# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``dask worker``, ``dask cuda worker`` and ``dask scheduler``, as commands, with and without us.

Programs run as processes. A package that is missing there is one that their first line takes away.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from distributed import Client, LocalCluster

import rmm_uvm
from rmm_uvm.dask import UvmPlugin

from .dask_in_process import start_offload_thread

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

cloudpickle.register_pickle_by_value(sys.modules[__name__])

COMMANDS = {
    "scheduler": "from distributed.cli.dask_scheduler import main",
    "worker": "from distributed.cli.dask_worker import main",
    "cuda worker": "from dask_cuda.cli import worker as main",
}


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    start_offload_thread()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))


def program(command: str, *arguments: str, without: str = "") -> list[str]:
    """Return the command line of a command of Dask, perhaps without a package."""
    lines = [f"import sys; sys.modules[{without!r}] = None"] if without else []
    lines += [COMMANDS[command], "main()"]
    return [sys.executable, "-P", "-c", "\n".join(lines), *arguments]


def ended(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program that is expected to end by itself."""
    return subprocess.run(
        program(*command, **options), capture_output=True, text=True, timeout=100, check=False
    )


@contextlib.contextmanager
def running(*command: Any, until: str, **options: Any) -> Iterator[list[str]]:
    """Run a program; begin when a line of its output has this text, and end it afterwards."""
    process = subprocess.Popen(
        program(*command, **options), stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if until in line:
            break
    else:
        pytest.fail(f"{command} ended before {until!r}: {''.join(lines)}")
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
    reader.start()
    try:
        yield lines
    finally:
        process.terminate()
        process.wait(30)
        reader.join(30)
        process.stdout.close()


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """A scheduler in this process, without workers."""
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as started:
        yield started


def installed_bytes() -> int:
    return rmm_uvm.current_installation().devices[0].sizes.initial_bytes


# --- workers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["worker", "cuda worker"])
def test_worker_command_with_our_flags_installs_what_they_say(
    command: str, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "cuda worker":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        monkeypatch.setenv("DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC", "1")
    own = ["--device-memory-limit", "0"] if command == "cuda worker" else []
    flags = ["--initial-pool-size", "16MiB", "--prefetch", "always"]
    with (
        running(
            command,
            cluster.scheduler_address,
            *own,
            *("--preload", "rmm_uvm.dask"),
            *flags,
            until="Registered to",
        ) as lines,
        Client(cluster) as client,
    ):
        assert list(client.run(installed_bytes).values()) == [16 << 20]
    said = [line for line in lines if "managed pool on simulated device" in line]
    assert len(said) == 1
    assert "16.00 MiB, at most" in said[0]
    assert "prefetch always" in said[0]


@pytest.mark.parametrize("nanny", ["--nanny", "--no-nanny"])
def test_worker_command_whose_pool_cannot_be_installed_ends_and_says_why_once(
    nanny: str, cluster: LocalCluster
) -> None:
    result = ended(
        "worker",
        cluster.scheduler_address,
        nanny,
        *("--nthreads", "1", "--preload", "rmm_uvm.dask", "--initial-pool-size", "1PiB"),
    )
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if "this worker does not start" in line]
    assert len(lines) == 1  # and so it was not started again
    assert "initial_pool_size is 1.00 PiB, over the maximum of" in lines[0]
    assert not cluster.scheduler_info["workers"]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--pool-size", "1GiB"], "No such option '--pool-size'"),
        (["--prefetch", "maybe"], "prefetch='maybe': use one of 'auto', 'always', 'never'"),
    ],
)
def test_worker_command_with_a_wrong_flag_ends_before_anything_is_started(
    flags: list[str], reason: str
) -> None:
    result = ended("worker", "tcp://127.0.0.1:1", "--preload", "rmm_uvm.dask", *flags)
    assert result.returncode == 2
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


# --- without a package -------------------------------------------------------------------------


def test_scheduler_without_rmm_takes_the_preload_and_workers_with_the_pool(tmp_path: Path) -> None:
    contact = tmp_path / "scheduler.json"
    with running(
        "scheduler",
        *("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"),
        *("--scheduler-file", str(contact), "--preload", "rmm_uvm.dask"),
        without="rmm",
        until="Run preload setup: rmm_uvm.dask",
    ) as lines:
        address = json.loads(contact.read_text())["address"]
        with (
            running(
                "worker",
                address,
                *("--nthreads", "1", "--no-nanny", "--preload", "rmm_uvm.dask"),
                until="Registered to",
            ),
            Client(address) as client,
        ):
            client.register_plugin(UvmPlugin())
            assert client.submit(lambda: installed_bytes() > 0).result()
    assert not [line for line in lines if "Failed to start preload" in line]


def test_client_without_rmm_registers_the_plugin(cluster: LocalCluster) -> None:
    text = (
        "import sys; sys.modules['rmm'] = None\n"
        "import rmm_uvm, rmm_uvm.dask\n"
        "from distributed import Client\n"
        "if __name__ == '__main__':\n"
        f"    with Client({cluster.scheduler_address!r}) as client:\n"
        "        client.register_plugin(rmm_uvm.dask.UvmPlugin(initial_pool_size='16MiB'))\n"
    )
    with running(
        "worker", cluster.scheduler_address, "--nthreads", "1", until="Registered to"
    ) as lines:
        result = subprocess.run(
            [sys.executable, "-P", "-c", text], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        with Client(cluster) as client:
            assert list(client.run(installed_bytes).values()) == [16 << 20]
    assert [line for line in lines if "managed pool on simulated device: 16.00 MiB" in line]


def test_worker_without_rmm_does_not_start_and_says_what_to_install(cluster: LocalCluster) -> None:
    result = ended(
        "worker",
        cluster.scheduler_address,
        *("--nthreads", "1", "--no-nanny", "--preload", "rmm_uvm.dask"),
        without="rmm",
    )
    assert result.returncode == 1
    (line,) = [each for each in result.stderr.splitlines() if "does not start" in each]
    assert "rmm" in line


def test_worker_without_the_package_is_named_when_the_plugin_is_registered(
    cluster: LocalCluster,
) -> None:
    with (
        running(
            "worker",
            cluster.scheduler_address,
            *("--nthreads", "1", "--no-nanny"),
            until="Registered to",
            without="rmm_uvm",
        ),
        Client(cluster) as client,
    ):
        # The words are Python's, the type is Dask's for an error that it cannot unpickle.
        with pytest.raises(Exception, match="No module named 'rmm_uvm") as caught:
            client.register_plugin(UvmPlugin())
        assert "\n" not in str(caught.value)
        assert client.submit(lambda: 1 + 1).result() == 2  # it goes on as it was


def test_scheduler_without_the_package_does_not_know_the_protocol() -> None:
    text = "from importlib import metadata; own = metadata.entry_points\n"
    text += "metadata.entry_points = lambda **chosen: own(**{**chosen, 'group': 'none'})\n"
    text += COMMANDS["scheduler"] + "\nmain()"
    result = subprocess.run(
        [sys.executable, "-P", "-c", text, "--protocol", "ucxuvm", "--no-dashboard"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "DASK_DISTRIBUTED__DASHBOARD__LINK": ""},
    )
    assert result.returncode != 0
    assert "unknown address scheme 'ucxuvm'" in result.stderr
