# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `import rmm_uvm` gives, and ways to begin the command."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rmm_uvm
from rmm_uvm import errors

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = re.compile(r"(?<![\w/.])rmm_uvm(?:\.[A-Za-z]\w*)+(?![\w/])")


def run(*words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with a folder of modules that come first."""
    places = [path, *sys.path] if path else sys.path
    return subprocess.run(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["torch.managed", "dask.UvmPlugin", "mr.UvmResourceAdaptor"])
def test_subpackage_is_there_without_an_import_of_its_own(name: str) -> None:
    done = run("-c", f"import rmm_uvm; print(rmm_uvm.{name}.__name__)")
    assert (done.stdout.strip(), done.stderr) == (name.partition(".")[2], "")


def told_names() -> list[str]:
    """Return names below the package that documents tell: one of each module; torch is slow."""
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    names = {name for path in documents for name in NAME.findall(path.read_text())}
    one_of = {name.rpartition(".")[0]: name for name in sorted(names, reverse=True)}
    return [name for module, name in one_of.items() if module.count(".") and "torch" not in module]


EACH_ALONE = """
import os, sys
import numpy, rmm  # what many have in common
try:
    import distributed
except ImportError:
    pass
import rmm_uvm
for name in sys.argv[1:]:
    if os.fork() == 0:  # where none of the others was imported
        try:
            eval(name)
        except AttributeError as error:
            print(f"{name}: {error}", flush=True)
        except Exception:  # of a library that is not installed
            pass
        os._exit(0)
    os.wait()
"""


def test_dotted_names_of_documents_need_only_the_package() -> None:
    names = told_names()
    assert len(names) > 15
    assert {"rmm_uvm.watch.sampling.process.attach", "rmm_uvm.dask.dashboard.attach"} <= set(names)
    done = run("-c", EACH_ALONE, *names, "rmm_uvm.watch.nothing", "rmm_uvm.nothing.at_all")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "rmm_uvm.watch.nothing: module 'rmm_uvm.watch' has no attribute 'nothing'",
        "rmm_uvm.nothing.at_all: module 'rmm_uvm' has no attribute 'nothing'",
    ]


def test_package_alone_imports_none_of_its_modules() -> None:
    code = "import sys, rmm_uvm; print(*(m for m in sys.modules if m.startswith('rmm_uvm.')))"
    assert run("-c", code).stdout.strip() == ""


def test_names_that_are_not_public_modules_are_not_there() -> None:
    assert not hasattr(rmm_uvm, "_messages")
    assert not hasattr(rmm_uvm, "__wrapped__")  # what looks through modules asks for it


def test_subpackage_whose_library_is_missing_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('none', name='torch')\n")
    done = run("-c", "import rmm_uvm; rmm_uvm.torch", path=str(tmp_path))
    assert "pip install 'rmm-uvm[torch]'" in done.stderr.splitlines()[-1]


def test_other_names_are_not_there_and_only_public_ones_are_listed() -> None:
    assert not hasattr(rmm_uvm, "cudf")
    listed = {name for name in dir(rmm_uvm) if not name.startswith("__")}
    assert listed <= set(rmm_uvm.__all__)
    assert {"reinitialize", "mr", "plan"} <= listed


def test_errors_and_warnings_are_on_the_front_page_without_what_is_compiled() -> None:
    for name in errors.__all__:
        assert getattr(rmm_uvm, name) is getattr(errors, name)
        assert name in dir(rmm_uvm)
    done = run("-c", "import sys, rmm_uvm; rmm_uvm.UvmError; print('rmm_uvm._lib' in sys.modules)")
    assert done.stdout == "False\n"
    assert not hasattr(rmm_uvm, "OtherWarning")


def test_type_checkers_know_every_name_of_the_front_page() -> None:
    tree = ast.parse(Path(rmm_uvm.__file__).read_text())
    told = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rmm_uvm")
        for alias in node.names
    }
    assert told == set(rmm_uvm.__all__) - {"__version__"}


@pytest.mark.parametrize("filter_", ["ignore::rmm_uvm.OversubscriptionWarning", "ignore:device 0"])
@pytest.mark.parametrize("variable", [False, True])
def test_filters_given_to_python_hold(
    filter_: str,
    variable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "import warnings, rmm_uvm\n"
        "warnings.warn('device 0: full', rmm_uvm.OversubscriptionWarning)\n"
        "warnings.warn('none', rmm_uvm.EvictionWarning)\n"
    )
    if variable:
        monkeypatch.setenv("PYTHONWARNINGS", filter_)
    done = run(*(() if variable else ("-W", filter_)), "-c", code)
    assert done.stderr.splitlines() == ["<string>:3: EvictionWarning: none"]


def test_package_and_command_line_run_as_modules() -> None:
    for module in ("rmm_uvm", "rmm_uvm.cli"):
        done = run("-m", module, "--version")
        assert done.returncode == 0
        assert rmm_uvm.__version__ in done.stdout


def test_interrupt_while_the_command_is_loaded_ends_it_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(30)\n"
    )
    done = run("-c", "from rmm_uvm.cli import main; main()", path=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_interrupt_is_an_error_as_ever_once_the_command_is_loaded() -> None:
    code = (
        "import os, signal, rmm_uvm.cli\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    print(1)"
    )
    assert run("-c", code).stdout == "1\n"
