# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Wheels of a release: what they ask pip for, and that they hold all that is supported."""

from __future__ import annotations

import importlib.util
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from wheel.wheelfile import WheelFile

from rmm_uvm.support.requirements import RMM_MINORS

REPOSITORY = Path(__file__).resolve().parents[3]
METADATA = """Metadata-Version: 2.2
Name: rmm-uvm
Version: 0.1.0
Requires-Dist: rmm-cu13==26.10.*
Requires-Dist: click>=8.1
Requires-Dist: cupy-cuda13x>=13.6; extra == "cupy"
Requires-Dist: distributed-ucxx-cu13==0.52.*; extra == "dask"

Needs rmm-cu13==26.10.*, as the README says.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    path = REPOSITORY / "ci" / "release_wheels.py"
    spec = importlib.util.spec_from_file_location("release_wheels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources_wheel(folder: Path, minors: tuple[tuple[int, ...], ...] = RMM_MINORS) -> Path:
    path = folder / "rmm_uvm-0.1.0-cp311-abi3-linux_x86_64.whl"
    with WheelFile(path, "w") as made:
        made.writestr("rmm_uvm/", b"")
        for major, minor in minors:
            made.writestr(f"rmm_uvm/_lib/rmm-{major}.{minor:02}/mr.abi3.so", b"compiled")
        made.writestr("rmm_uvm-0.1.0.dist-info/METADATA", METADATA)
    return path


def test_newest_rmm_is_the_one_that_the_sources_are_built_with() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    newest = f"rmm-cu13=={'.'.join(map(str, RMM_MINORS[-1]))}.*"
    assert newest in project["project"]["dependencies"]
    assert newest in project["build-system"]["requires"]


@pytest.mark.parametrize("cuda", [12, 13])
def test_release_asks_for_any_supported_rmm_of_its_cuda(
    release: ModuleType, tmp_path: Path, cuda: int
) -> None:
    made = release.release(sources_wheel(tmp_path), tmp_path, cuda, ((26, 6), (26, 8), (26, 10)))
    assert made.name == f"rmm_uvm_cu{cuda}-0.1.0-cp311-abi3-linux_x86_64.whl"
    folder = f"rmm_uvm_cu{cuda}-0.1.0.dist-info"
    with zipfile.ZipFile(made) as wheel:
        told = wheel.read(f"{folder}/METADATA").decode().splitlines()
        record = wheel.read(f"{folder}/RECORD").decode()
        assert wheel.read("rmm_uvm/_lib/rmm-26.06/mr.abi3.so") == b"compiled"
    assert told[1:2] + told[3:7] == [
        f"Name: rmm-uvm-cu{cuda}",
        f"Requires-Dist: rmm-cu{cuda}>=26.6,<26.12",
        "Requires-Dist: click>=8.1",
        f'Requires-Dist: cupy-cuda{cuda}x>=13.6; extra == "cupy"',
        f'Requires-Dist: distributed-ucxx-cu{cuda}>=0.50,<0.53; extra == "dask"',
    ]
    assert told[-1] == METADATA.splitlines()[-1]  # what is no field stays
    assert "rmm_uvm/_lib/rmm-26.06/mr.abi3.so,sha256=" in record
    assert "/,sha256" not in record  # uninstalling removes what is listed


def test_range_ends_before_the_rmm_after_the_newest(release: ModuleType) -> None:
    assert release.range_of(((26, 10), (26, 12), (27, 2))) == (">=26.10,<27.4", ">=0.52,<0.55")
    assert release.range_of(((26, 12),)) == (">=26.12,<27.2", ">=0.53,<0.54")


def test_wheel_that_lacks_an_rmm_is_refused_and_leaves_nothing(
    release: ModuleType, tmp_path: Path
) -> None:
    wheel = sources_wheel(tmp_path, RMM_MINORS[1:])
    with pytest.raises(SystemExit, match=r"is not compiled for rmm-26\.06"):
        release.release(wheel, tmp_path, 12, RMM_MINORS)
    assert list(tmp_path.iterdir()) == [wheel]


def test_wheel_for_conda_asks_for_its_names_and_the_rmm_that_it_is_compiled_for(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = sources_wheel(tmp_path, ((26, 8),))
    monkeypatch.setattr("sys.argv", ["release", "--conda", str(wheel), str(tmp_path / "conda")])
    release.main()
    (made,) = (tmp_path / "conda").iterdir()
    assert made.name == wheel.name
    with zipfile.ZipFile(made) as read:
        told = read.read("rmm_uvm-0.1.0.dist-info/METADATA").decode().splitlines()
    assert told[1:2] + told[3:7] == [
        "Name: rmm-uvm",
        "Requires-Dist: rmm>=26.8,<26.10",
        "Requires-Dist: click>=8.1",
        'Requires-Dist: cupy>=13.6; extra == "cupy"',
        'Requires-Dist: distributed-ucxx>=0.51,<0.52; extra == "dask"',
    ]
