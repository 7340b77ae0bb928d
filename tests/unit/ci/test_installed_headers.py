# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Headers are found where wheels put them, and where conda's packages do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ...support.snippets import REPOSITORY

SCRIPT = REPOSITORY / "cpp" / "cmake" / "installed_headers.py"
# Without site-packages of its own, so that nothing but what a test made is found.
RUN = """
import runpy, sys
sys.prefix, packages, script = sys.argv[1:4]
sys.path.append(packages)
sys.argv = sys.argv[3:]
runpy.run_path(script, run_name="__main__")
"""


def found(prefix: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", "-c", RUN, prefix, packages_of(prefix), SCRIPT, *folders]
    return subprocess.run(map(str, command), capture_output=True, text=True, timeout=60)


def packages_of(prefix: Path) -> Path:
    return prefix / "lib" / "python3.11" / "site-packages"


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def librmm_at(root: Path, minor: int) -> None:
    version = f"#define RMM_VERSION_MAJOR 26\n#define RMM_VERSION_MINOR {minor:02}\n"
    write(root / "include" / "rmm" / "version_config.hpp", version)


def wheels_at(packages: Path, minor: int) -> None:
    write(packages / "rmm" / "__init__.py")
    write(packages / "librmm" / "__init__.py")
    librmm_at(packages / "librmm", minor)


def cuda_wheel_at(packages: Path) -> None:
    write(packages / "nvidia" / "cu13" / "include" / "cuda.h")
    information = packages / "nvidia_cuda_runtime-13.0.dist-info"
    write(information / "METADATA", "Metadata-Version: 2.1\nName: nvidia-cuda-runtime\n")
    write(information / "RECORD", "nvidia/cu13/include/cuda.h,,\n")


def test_wheels_are_found_beside_this_python_and_in_folders(tmp_path: Path) -> None:
    packages, other = packages_of(tmp_path / "env"), tmp_path / "26.8"
    wheels_at(packages, 10)
    wheels_at(other, 8)
    logger = packages / "rapids_logger"
    write(logger / "__init__.py")
    write(logger / "include" / "rapids_logger" / "logger.hpp")
    cuda_wheel_at(packages)
    assert found(tmp_path / "env", other).stdout.splitlines() == [
        str(packages / "nvidia" / "cu13" / "include"),
        f"26.10;{packages / 'librmm'};{logger};{packages};lib64",
        f"26.08;{other / 'librmm'};{logger};{other};lib64",
    ]


def test_packages_of_conda_are_found_in_its_prefix(tmp_path: Path) -> None:
    packages = packages_of(tmp_path)
    write(packages / "rmm" / "__init__.py")
    librmm_at(tmp_path, 6)
    write(tmp_path / "include" / "rapids_logger" / "logger.hpp")
    write(tmp_path / "targets" / "x86_64-linux" / "include" / "cuda.h")
    assert found(tmp_path).stdout.splitlines() == [
        str(tmp_path / "targets" / "x86_64-linux" / "include"),
        f"26.06;{tmp_path};{tmp_path};{packages};lib",
    ]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "rmm is not installed" in found(tmp_path).stderr
    packages = packages_of(tmp_path)
    write(packages / "rmm" / "__init__.py")
    assert "there is no cuda.h" in found(tmp_path).stderr
    cuda_wheel_at(packages)
    assert "has no librmm" in found(tmp_path).stderr
    librmm_at(tmp_path, 10)
    assert "rapids_logger is not installed" in found(tmp_path).stderr
