# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finding and attaching to other processes, on machines of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm._lib.cuda import ProcessCounters, attachable
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.watch.sampling.process import CudaProcess, attach, cuda_processes

YES = Availability(available=True)
UVM = "/dev/nvidia-uvm"


class FakeNvml:
    """An NVML of one device on which some processes compute."""

    def __init__(self, *pids: int, available: bool = True) -> None:
        self.available = Availability(available=available, reason="" if available else "none")
        self.pids = pids

    def devices(self) -> Any:
        return (("GPU-0", "fake GPU"),)

    def processes(self, uuid: str) -> Any:
        if uuid != "GPU-0":
            raise AvailabilityError(uuid)
        return tuple((pid, None) for pid in self.pids)


class RefusingNvml(FakeNvml):
    """One that lists devices and then knows nothing about them."""

    def processes(self, uuid: str) -> Any:
        raise AvailabilityError(f"not told about {uuid}")


NO_NVML = FakeNvml(available=False)


def process(proc: Path, pid: int, *targets: str, name: str = "python") -> Path:
    """Make a process with descriptors open on `targets`."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "cmdline").write_text(f"{name}\0run.py\0--fast\0")
    for number, target in enumerate(targets):
        (folder / "fd" / str(number)).symlink_to(target)
    return folder


def listed(proc: Path, **arguments: Any) -> tuple[CudaProcess, ...]:
    return cuda_processes(proc, **{"check": lambda _: YES, "nvml": NO_NVML, **arguments})


@pytest.fixture
def idle() -> Iterator[int]:
    """Run a process that does nothing and uses no CUDA."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child.pid
        child.communicate(b"\n")


def test_cuda_processes_finds_those_with_the_device_open(tmp_path: Path) -> None:
    process(tmp_path, 30, "/dev/null", UVM)
    process(tmp_path, 4, UVM, UVM, name="jupyter")
    process(tmp_path, 5, "/dev/nvidiactl", "/dev/nvidia-uvm-tools")
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("")
    found = listed(tmp_path)
    assert [one.pid for one in found] == [4, 30]
    assert found[0].name == "jupyter"
    assert found[0].command == "jupyter run.py --fast"
    assert found[0].user != ""
    assert found[0].attachable


def test_cuda_processes_without_any_is_empty(tmp_path: Path) -> None:
    process(tmp_path, 5)
    assert listed(tmp_path) == ()


def test_cuda_processes_that_may_not_be_attached_to_says_why(tmp_path: Path) -> None:
    process(tmp_path, 4, UVM)
    (one,) = listed(tmp_path, check=lambda pid: Availability(False, f"not {pid}"))
    assert (one.attachable, one.reason) == (False, "not 4")


def test_cuda_processes_hidden_by_proc_are_named_by_nvml(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()  # another user's: neither descriptors nor names
    process(tmp_path, 8, "/dev/null")
    (one,) = listed(tmp_path, nvml=FakeNvml(7, 4242))  # the other is in another PID namespace
    assert (one.pid, one.name, one.command) == (7, "", "")


def test_cuda_processes_with_a_refusing_nvml_goes_by_proc(tmp_path: Path) -> None:
    process(tmp_path, 4, UVM)
    assert [one.pid for one in listed(tmp_path, nvml=RefusingNvml())] == [4]


def test_cuda_processes_that_vanish_while_looked_at_do_no_harm(tmp_path: Path) -> None:
    folder = process(tmp_path, 4, UVM)

    def vanish(_: int) -> Availability:
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
        folder.rmdir()
        return Availability(False, "there is no process 4")

    (one,) = listed(tmp_path, check=vanish)
    assert (one.name, one.user, one.attachable) == ("", "", False)


def test_cuda_processes_of_this_machine_are_described() -> None:
    for one in cuda_processes():
        assert one.pid > 0
        assert one.attachable == (one.reason == "")


def test_attach_without_such_a_process_says_so() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    with pytest.raises(AvailabilityError, match=f"there is no process {child.pid}"):
        attach(child.pid)
    assert attachable(child.pid).reason == f"there is no process {child.pid}"


def test_attach_to_a_process_without_cuda_says_so(idle: int) -> None:
    # Linux before 5.3 has no descriptors of processes and says that.
    with pytest.raises(AvailabilityError, match=r"does not use CUDA|Linux 5\.6"):
        attach(idle)
    assert not attachable(idle)


@pytest.mark.parametrize("pid", [0, -1, 2**31])
def test_attach_to_no_number_of_a_process_is_refused(pid: int) -> None:
    with pytest.raises(ConfigurationError, match=str(pid)):
        attach(pid)


def test_attachable_of_no_number_of_a_process_is_not() -> None:
    assert attachable(-5).reason == "-5 is not the number of a process"


def test_attach_with_a_wrong_uuid_names_it() -> None:
    with pytest.raises(ConfigurationError, match="GPU-nonsense"):
        attach(os.getpid(), "GPU-nonsense")


def test_attach_as_another_user_says_what_it_takes() -> None:
    if os.getuid() == 0 and os.access("/proc/1/fd", os.R_OK):
        assert "permission" not in attachable(1).reason
    else:
        assert "CAP_SYS_PTRACE" in attachable(1).reason


def test_process_counters_not_opened_say_so() -> None:
    counters = ProcessCounters.__new__(ProcessCounters)
    counters.close()
    with pytest.raises(AvailabilityError, match="not opened"):
        counters.read()
