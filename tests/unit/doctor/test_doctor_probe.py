# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's probe, over file trees of machines of every kind."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rmm_uvm.doctor.facts import Capability, HarvestFacts
from rmm_uvm.doctor.probe import SystemProbe
from rmm_uvm.harvest import USUAL_DIRECTORY, HarvestBoard


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("line", "version", "is_open"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x)",
         (580, 159, 4), True),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023",
         (535, 104, 5), False),
        ("something else", None, None),
    ],
)  # fmt: skip
def test_probe_reads_kernel_driver_version(
    tmp_path: Path, line: str, version: Any, is_open: Any
) -> None:
    write(tmp_path, "proc/driver/nvidia/version", line + "\nGCC version:  gcc 12.2.0\n")
    found = SystemProbe(tmp_path).kernel_driver()
    assert (found.version, found.is_open, found.is_wsl) == (version, is_open, False)


def test_probe_reads_wsl_and_module_parameters(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    write(tmp_path, "sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n")
    found = SystemProbe(tmp_path).kernel_driver()
    assert found.is_wsl
    assert found.version is None
    assert found.parameters["uvm_disable_hmm"] == "Y"


def test_probe_counters_without_device_node_names_it(tmp_path: Path) -> None:
    found = SystemProbe(tmp_path, {}).counters()
    assert not found.available
    assert "/dev/nvidia-uvm-tools does not exist" in found.reason


def test_probe_counters_with_device_node_available_unless_switched_off(tmp_path: Path) -> None:
    write(tmp_path, "dev/nvidia-uvm-tools", "")
    assert SystemProbe(tmp_path, {}).counters().available
    found = SystemProbe(tmp_path, {"RMM_UVM_COUNTERS": "off"}).counters()
    assert found == Capability.no("switched off by RMM_UVM_COUNTERS=off")


def test_probe_counters_without_permission_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "dev/nvidia-uvm-tools", "")
    # Tests may run as root, to whom no file is closed.
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "no permission" in SystemProbe(tmp_path, {}).counters().reason


def _finder(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    def load(name: str) -> SimpleNamespace:
        if path is None:
            raise RuntimeError(f"{name} not found")
        return SimpleNamespace(abs_path=path)

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", load)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/libcupti.so.13", Capability.yes("/usr/lib/libcupti.so.13")),
        ("/usr/lib/libcupti.so.12",
         Capability.no("/usr/lib/libcupti.so.12 is not for CUDA 13; "
                             "no libcupti.so.13: pip install 'nvidia-cuda-cupti>=13,<14'")),
        (None, Capability.no("no libcupti.so.13: pip install 'nvidia-cuda-cupti>=13,<14'")),
    ],
)  # fmt: skip
def test_probe_cupti_by_version_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, expected: Capability
) -> None:
    _finder(monkeypatch, path)
    assert SystemProbe(tmp_path).cupti() == expected


def test_probe_extension_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rmm_uvm._lib.mr", None)
    found = SystemProbe().extension()
    assert not found.available
    assert "the compiled part of rmm-uvm cannot be loaded" in found.reason


def test_probe_packages_lists_rmm() -> None:
    found = SystemProbe().packages()
    assert found["rmm-cu13"].startswith("26.10.")
    assert "rmm-cu12" not in found


def test_probe_without_any_file_finds_nothing_and_does_not_raise(tmp_path: Path) -> None:
    found = SystemProbe(tmp_path).kernel_driver()
    assert found.version is None
    assert set(found.parameters.values()) == {""}


WITH_PTRACE, WITHOUT_PTRACE = "000001ffffffffff", "00000000a80425fb"


@pytest.mark.parametrize(
    ("kernel", "capabilities", "scope", "expected"),
    [
        ("6.1.0-18-amd64", WITH_PTRACE, "1", "any process"),
        ("6.1.0-18-amd64", WITHOUT_PTRACE, "0", "processes of the same user"),
        ("6.1.0-18-amd64", WITHOUT_PTRACE, None, "processes of the same user"),
        ("6.1.0-18-amd64", WITHOUT_PTRACE, "1", "ptrace_scope is 1"),
        ("5.4.0-150-generic", WITH_PTRACE, "0", "Linux 5.6"),
    ],
)
def test_probe_attach_goes_by_kernel_and_permissions(
    tmp_path: Path, kernel: str, capabilities: str, scope: str | None, expected: str
) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", f"{kernel}\n")
    write(tmp_path, "proc/self/status", f"Name:\tpython\nCapEff:\t{capabilities}\n")
    if scope is not None:
        write(tmp_path, "proc/sys/kernel/yama/ptrace_scope", f"{scope}\n")
    found = SystemProbe(tmp_path).attach()
    assert expected in (found.detail if found.available else found.reason)
    assert found.available == (found.reason == "")


def test_probe_nvml_works_or_says_why_not() -> None:
    found = SystemProbe().nvml()
    assert found.available == (found.reason == "")


def test_probe_nvml_without_the_compiled_part_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rmm_uvm._lib.cuda", None)
    assert "cannot be loaded" in SystemProbe().nvml().reason


def test_probe_harvest_board_is_read_and_none_is_made(tmp_path: Path) -> None:
    directory = tmp_path / USUAL_DIRECTORY.lstrip("/")
    directory.mkdir(parents=True)
    found = SystemProbe(tmp_path).harvest_board()
    assert "no process has joined a board" in found.reason
    assert list(directory.iterdir()) == []
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    owner = HarvestBoard(directory)
    assert owner.offer(uuid, 64 << 20)
    found = SystemProbe(tmp_path).harvest_board()
    assert (found.reason, found.processes) == ("", (os.getpid(),))
    assert found.devices == (HarvestFacts(uuid, 64 << 20, 0),)


def test_probe_harvest_board_without_the_compiled_part_has_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rmm_uvm.harvest", None)
    assert "the compiled part of rmm-uvm cannot be loaded" in SystemProbe().harvest_board().reason
