# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs run in this process as the interpreter itself runs them: both are compared."""

from __future__ import annotations

import py_compile
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.run.program import PythonProgram, check

OURS = (
    "import sys; from rmm_uvm.run.program import PythonProgram, run_as_main; "
    "run_as_main(PythonProgram(sys.argv[1], sys.argv[2], tuple(sys.argv[3:])))"
)


def run(folder: Path, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    # Without -P, which this test itself runs with: it changes sys.path.
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def both(
    folder: Path, kind: str, target: str, *arguments: str, stdin: str = ""
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """Run a program by us and by Python."""
    ours = run(folder, "-c", OURS, kind, target, *arguments, stdin=stdin)
    words = ["-m", target] if kind == "module" else [target]
    return ours, run(folder, *words, *arguments, stdin=stdin)


SCRIPTS = {
    "what it sees": """
        import os, sys
        print(__name__, __file__, __package__, __spec__, sorted(globals()))
        print(globals().get("__cached__", "no such name"))
        print(sys.argv, sys.path[0], type(__loader__).__name__, __builtins__)
        print(sys.modules["__main__"].__dict__ is globals(), os.getcwd())
    """,
    "exit 3": "import sys; sys.exit(3)",
    "exit with a message": "import sys; sys.exit('no luck')",
    "exit with None": "import sys; sys.exit()",
    "exit with True": "raise SystemExit(True)",
    "exception": """
        def deep(level):
            if level == 0:
                raise ValueError("deep down")
            deep(level - 1)
        print("before")
        deep(2)
    """,
    "exception with a cause": """
        try:
            {}["key"]
        except KeyError as error:
            raise RuntimeError("outer") from error
    """,
    "exception with a note": """
        error = OSError(2, "gone")
        error.add_note("look elsewhere")
        raise error
    """,
    "error of syntax": "x = (\n",
    "null bytes": "x = 1\0",
    "not UTF-8": None,
    "standard input": "print(input()); import sys; print(sys.stdin.read())",
    "hook for exceptions": """
        import sys
        sys.excepthook = lambda kind, error, trace: print("mine", kind, trace.tb_lineno)
        raise ValueError
    """,
    "hook that fails": """
        import sys
        def hook(*_): raise TypeError("hook")
        sys.excepthook = hook
        raise ValueError("original")
    """,
    "handlers at exit and threads": """
        import atexit, threading, time
        go = threading.Event()
        atexit.register(lambda: print("at exit"))
        def late():
            go.wait(); print("thread", __name__)
        threading.Thread(target=late).start()
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        go.set()
    """,
    "annotations evaluated": """
        def f(x: 1 + 1): ...
        print(f.__annotations__)
        y: int = 1
        print(__annotations__)
    """,
    "imports beside it": "import beside; print(beside.__name__, beside.__file__)",
    "pickles its classes": """
        import pickle
        class Mine: pass
        print(type(pickle.loads(pickle.dumps(Mine()))))
    """,
    "interrupted": "raise KeyboardInterrupt",
    "prints before it is killed": """
        import os, signal, sys
        print("out", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "ends at once": "import os; os._exit(7)",
    "warns": """
        import warnings
        warnings.warn("careful")
    """,
}


LAST_WORDS = {
    "hook that fails": "ValueError: original",
    "null bytes": "cannot contain null bytes",
    "not UTF-8": "SyntaxError: ",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside.py").write_text("")
    return tmp_path


def write(path: Path, text: str | None) -> None:
    import textwrap

    if text is None:
        path.write_bytes(b"x = '\xff'\n")
    else:
        path.write_text(textwrap.dedent(text))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_run_is_as_python_runs_it(folder: Path, name: str) -> None:
    write(folder / "sub" / "script.py", SCRIPTS[name])
    ours, python = both(folder, "script", "sub/script.py", "-x", "--quiet", "a b", stdin="1\n2\n3")
    if name in LAST_WORDS:  # the rest differs: a file is compiled, and a hook called, from Python
        assert LAST_WORDS[name] in ours.stderr
        if name == "null bytes" and python.returncode == 0:  # its file ends there
            assert sys.version_info < (3, 12)
            return
        assert LAST_WORDS[name] in python.stderr
    else:
        assert ours.stderr == python.stderr
    assert ours.stdout == python.stdout
    assert ours.returncode == python.returncode


def test_interrupt_ends_the_process_by_its_signal(folder: Path) -> None:
    (folder / "script.py").write_text("raise KeyboardInterrupt")
    ours, _ = both(folder, "script", "script.py")
    assert ours.returncode == -signal.SIGINT


def test_script_through_a_link_finds_what_is_beside_its_file(folder: Path) -> None:
    write(folder / "sub" / "script.py", "import beside, sys; print(__file__, sys.path[0])")
    (folder / "link.py").symlink_to("sub/script.py")
    ours, python = both(folder, "script", "link.py")
    assert (ours.stdout, ours.returncode) == (python.stdout, 0)


def test_script_compiled_runs(folder: Path) -> None:
    write(folder / "script.py", "print(__file__, __name__)")
    py_compile.compile(str(folder / "script.py"), cfile=str(folder / "script.pyc"), doraise=True)
    ours, python = both(folder, "script", "script.pyc")
    assert (ours.stdout, ours.returncode) == (python.stdout, 0)


def test_directory_and_zip_file_run_their_main(folder: Path) -> None:
    text = "import sys; print(__name__, __package__, sys.argv, sys.path[0], __file__)"
    write(folder / "sub" / "__main__.py", text)
    with zipfile.ZipFile(folder / "app.pyz", "w") as file:
        file.writestr("__main__.py", text)
    for target in ("sub", "app.pyz"):
        ours, python = both(folder, "script", target, "x")
        assert (ours.stdout, ours.stderr, ours.returncode) == (python.stdout, "", 0)


def test_module_run_is_as_python_runs_it(folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    write(package / "__init__.py", "print('init')")
    text = """
        import sys
        from . import other
        print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], __file__)
        sys.exit(int(sys.argv[1]))
    """
    write(package / "__main__.py", text)
    write(package / "other.py", text.replace("from . import other", ""))
    for name in ("package", "package.other"):
        ours, python = both(folder, "module", name, "4")
        assert (ours.stdout, ours.stderr) == (python.stdout, "")
        assert ours.returncode == python.returncode == 4


def test_module_that_fails_shows_its_own_frames_only(folder: Path) -> None:
    write(folder / "failing.py", "def f():\n    1 / 0\nf()")
    ours, python = both(folder, "module", "failing")
    assert ours.returncode == python.returncode == 1
    files = [line for line in ours.stderr.splitlines() if line.startswith("  File ")]
    assert all(f'"{folder}/failing.py"' in line for line in files)
    assert len(files) == 2
    assert ours.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_module_whose_package_fails_shows_where(folder: Path) -> None:
    (folder / "broken").mkdir()
    write(folder / "broken" / "__init__.py", "import no_such_thing")
    ours, _ = both(folder, "module", "broken.part")
    assert ours.returncode == 1
    assert ours.stderr.startswith("Traceback")
    assert ours.stderr.endswith("ModuleNotFoundError: No module named 'no_such_thing'\n")
    assert "rmm_uvm" not in ours.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("package", "Error: the package 'package' cannot be run: it has no __main__ module"),
        ("package.missing", "Error: no module named 'package.missing'"),
        ("package.missing.deep", "Error: no module named 'package.missing.deep'"),
        ("sys", "Error: 'sys' cannot be run: it has no Python code"),
    ],
)
def test_module_that_cannot_be_run_is_one_line(folder: Path, name: str, line: str) -> None:
    (folder / "package").mkdir()
    write(folder / "package" / "__init__.py", "")
    ours, python = both(folder, "module", name)
    assert ours.stderr == f"{line}\n"
    assert ours.returncode == python.returncode == 1


def test_processes_spawned_import_the_script_and_not_us(folder: Path) -> None:
    write(
        folder / "script.py",
        """
        import multiprocessing, sys
        print("imported as", __name__, flush=True)
        def square(x):
            return x * x, __name__
        if __name__ == "__main__":
            for how in ("spawn", "forkserver"):
                with multiprocessing.get_context(how).Pool(1) as pool:
                    print(pool.map(square, [2]), flush=True)
        """,
    )
    ours, python = both(folder, "script", "script.py")
    assert ours.stdout == python.stdout
    assert ours.stdout.count("__mp_main__") == 4
    assert (ours.stderr, ours.returncode) == ("", 0)


def test_check_of_what_is_there_is_silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "script.py", "raise SystemExit('it was run')")
    write(folder / "sub" / "__main__.py", "")
    monkeypatch.chdir(folder)
    for program in (
        PythonProgram("script", "script.py"),
        PythonProgram("script", "sub"),
        PythonProgram("module", "json.tool"),
        PythonProgram("module", "this"),
    ):
        check(program)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing.py", "'missing.py' cannot be read: no such file or directory; for a command"),
        ("empty", "no __main__.py in the directory 'empty'"),
        ("nul\0.py", "cannot be read: .*embedded null"),
        ("script.py/x", "cannot be read: not a directory"),
    ],
)
def test_check_of_a_script_that_is_not_there_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, message: str
) -> None:
    (folder / "empty").mkdir()
    write(folder / "script.py", "")
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigurationError) as raised:
        check(PythonProgram("script", target))
    assert re.search(message, str(raised.value))
    assert "\n" not in str(raised.value)


def test_check_of_a_module_that_is_not_there_says_so() -> None:
    with pytest.raises(AvailabilityError, match=r"no module named 'no_such_thing\.at\.all'"):
        check(PythonProgram("module", "no_such_thing.at.all"))
