# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""ci/check_layers.py: what counts as an import of what lies above, in packages made for a test."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "ci" / "check_layers.py"


@pytest.fixture(scope="module")
def layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems(
    layers: ModuleType, folder: Path, file: str, text: str, package: str = "rmm_uvm"
) -> list[str]:
    """Return what is wrong with a package that has one file."""
    path = folder / package / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return list(layers.check_python(folder))


@pytest.mark.parametrize(
    ("file", "text", "above"),
    [
        ("support/units.py", "from rmm_uvm.dask.settings import Settings", "dask"),
        ("support/units.py", "def f():\n    import rmm_uvm.dask", "dask"),
        ("support/units.py", "from ..dask.settings import Settings", "dask"),
        ("support/units.py", "from .. import dask", "dask"),
        ("trace/contents.py", "from .. import planner", "planner"),
        ("trace/contents.py", "from ..planner import plan", "planner"),
        ("trace/__init__.py", "from ..planner import plan", "planner"),
        ("trace/contents.py", "from rmm_uvm import plan as _plan", "__init__"),
        ("trace/contents.py", "from rmm_uvm import errors\nfrom rmm_uvm import plan", "__init__"),
        ("trace/contents.py", "from rmm_uvm import plan, errors", "__init__"),
        ("trace/contents.py", "from .. import plan", "__init__"),
        ("trace/contents.py", "from rmm_uvm import *", "__init__"),
        ("trace/contents.py", "import rmm_uvm\nfrom rmm_uvm import errors", "__init__"),
        ("trace/contents.py", "import rmm_uvm.support.units\nrmm_uvm.plan('x')", "__init__"),
        ("support/units.py", "import importlib\nimportlib.import_module('rmm_uvm.dask')", "dask"),
        (
            "support/units.py",
            "from importlib import import_module\nimport_module('rmm_uvm')",
            "__init__",
        ),
        ("trace/contents.py", "import_module('..dask', __package__)", "dask"),
        ("support/units.py", "__import__('rmm_uvm.dask')", "dask"),
        ("_lib/sim.pyi", "from rmm_uvm.trace import Trace", "trace"),
        ("_lib/sim.pyx", "from rmm_uvm import trace", "trace"),
        ("_lib/sim.pyx", "from rmm_uvm import errors\nfrom rmm_uvm import plan", "__init__"),
        ("_lib/sim.pyx", "from rmm_uvm import (\n    errors,\n    plan as _plan,\n)", "__init__"),
        ("_lib/sim.pyx", "from ..trace import Trace", "trace"),
        ("_lib/sim.pyx", "def f():\n    import rmm_uvm.trace", "trace"),
        ("watch/monitor.py", "import_module('rmm_uvm.integrations.cupy')", "integrations"),
        ("cli/main.py", "def f():\n    import rmm_uvm_mortgage.etl", "rmm_uvm_mortgage"),
        ("cli/main.py", "from rmm_uvm_mortgage import etl", "rmm_uvm_mortgage"),
    ],
)
def test_import_of_what_lies_above_is_found(
    layers: ModuleType, tmp_path: Path, file: str, text: str, above: str
) -> None:
    (problem,) = problems(layers, tmp_path, file, text)
    assert problem.startswith(f"rmm_uvm/{file}: ")
    assert problem.endswith(f"may not import {above}, which lies above it")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("dask/settings.py", "from rmm_uvm import plan, errors"),
        ("dask/settings.py", "import rmm_uvm\nrmm_uvm.plan('x')"),
        ("dask/settings.py", "from ..errors import parse\nfrom . import flags"),
        ("trace/contents.py", "from rmm_uvm import errors\nfrom rmm_uvm import errors, support"),
        ("trace/contents.py", "import rmm_uvm.support.units\nrmm_uvm.support.units.parse('1')"),
        ("trace/__init__.py", "from . import facts\nfrom .facts import Facts"),
        ("__init__.py", "import importlib\nimportlib.import_module('rmm_uvm.integrations.torch')"),
        ("__init__.py", "def __getattr__(n):\n    return import_module(f'rmm_uvm.{n}')"),
        ("doctor/probe.py", "import_module('rmm_uvm._lib.mr')\nimport_module('cuda.bindings')"),
        (
            "_lib/sim.pyx",
            "from . cimport driver\nfrom libc cimport math",
        ),
        ("support/units.py", "import rmm\nimport rmm_uvm_of_others.dask\nimport_module(name)"),
    ],
)
def test_import_of_what_lies_below_is_none(
    layers: ModuleType, tmp_path: Path, file: str, text: str
) -> None:
    assert problems(layers, tmp_path, file, text) == []


def test_package_above_may_use_all_of_it(layers: ModuleType, tmp_path: Path) -> None:
    text = "from rmm_uvm import plan, cli\nfrom . import etl\nfrom rmm_uvm_mortgage.etl import f"
    package = "mortgage/rmm_uvm_mortgage"
    assert problems(layers, tmp_path, "shadow/engine.py", text, package) == []


def test_module_in_no_layer_is_told(layers: ModuleType, tmp_path: Path) -> None:
    (problem,) = problems(layers, tmp_path, "novel.py", "")
    assert "rmm_uvm/novel.py: in no layer" in problem


def circles(layers: ModuleType, folder: Path, files: dict[str, str]) -> list[str]:
    """Return the circles of a package that has these files."""
    for file, text in files.items():
        path = folder / "rmm_uvm" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(layers.check_circles(folder))


def test_circle_within_a_folder_is_told(layers: ModuleType, tmp_path: Path) -> None:
    files = {
        "trace/__init__.py": "",
        "trace/a.py": "from rmm_uvm.trace import b",
        "trace/b.py": "def f():\n    from .a import c",
    }
    (problem,) = circles(layers, tmp_path, files)
    assert problem.startswith("a circle of imports: ")
    assert {"rmm_uvm.trace.a", "rmm_uvm.trace.b"} <= set(problem.split(": ")[1].split(" -> "))


def test_circle_within_the_package_above_is_told(layers: ModuleType, tmp_path: Path) -> None:
    files = {
        "../mortgage/rmm_uvm_mortgage/a.py": "from rmm_uvm_mortgage.b import c",
        "../mortgage/rmm_uvm_mortgage/b.py": "from .a import c",
    }
    (problem,) = circles(layers, tmp_path, files)
    assert {"rmm_uvm_mortgage.a", "rmm_uvm_mortgage.b"} <= set(problem.split(": ")[1].split(" -> "))


def test_modules_that_use_others_of_their_folder_are_no_circle(
    layers: ModuleType, tmp_path: Path
) -> None:
    files = {
        "trace/__init__.py": "from rmm_uvm.trace.a import c",
        "trace/a.py": "from rmm_uvm.trace import b",
        "trace/b.py": "from rmm_uvm import errors",
        "errors.py": "",
    }
    assert circles(layers, tmp_path, files) == []


def names(layers: ModuleType, folder: Path, files: dict[str, str]) -> list[str]:
    """Return what is wrong with the names of a package that has these files."""
    for file, text in files.items():
        path = folder / "rmm_uvm" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(layers.check_names(folder))


def test_class_name_that_two_modules_have_is_told(layers: ModuleType, tmp_path: Path) -> None:
    files = {"run/request.py": "class Request: ...", "planner/request.py": "class Request: ..."}
    (problem,) = names(layers, tmp_path, files)
    assert "class Request is in rmm_uvm.planner.request, rmm_uvm.run.request" in problem


def test_module_named_like_its_folder_is_told(layers: ModuleType, tmp_path: Path) -> None:
    (problem,) = names(layers, tmp_path, {"trace/trace.py": ""})
    assert problem.startswith("rmm_uvm/trace/trace.py: named like its folder")


def test_class_name_that_the_mortgage_package_has_as_well_is_told(
    layers: ModuleType, tmp_path: Path
) -> None:
    files = {
        "planner/planned.py": "class Plan: ...",
        "../mortgage/rmm_uvm_mortgage/plan.py": "class Plan: ...",
    }
    (problem,) = names(layers, tmp_path, files)
    assert "class Plan is in rmm_uvm.planner.planned, rmm_uvm_mortgage.plan" in problem


def test_names_of_one_thing_are_nobodys_business(layers: ModuleType, tmp_path: Path) -> None:
    files = {
        "_lib/marks.pyi": "class Mark: ...",
        "dask/comm/quarantine.py": "class Mark: ...",
    }
    assert names(layers, tmp_path, files) == []


def test_classes_that_are_one_thing_have_two_modules(layers: ModuleType) -> None:
    root = SCRIPT.parents[1]
    texts = [path.read_text() for path in layers.python_files(root)]
    for name in layers.SAME_THING:
        assert sum(f"class {name}" in text for text in texts) > 1
