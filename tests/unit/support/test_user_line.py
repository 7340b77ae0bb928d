# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which line of the program a warning names, told from frames of this thread and of others."""

from __future__ import annotations

import _thread
import asyncio
import gc
import importlib.machinery
import json
import linecache
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.support.user_line import (
    CodeLine,
    Place,
    line_here,
    place_of,
    users_line,
    users_place,
    warn_user,
)

OURS = str(Path(rmm_uvm.__file__).parent / "made_up.py")


def here() -> Place:
    return place_of(sys._getframe(0))


def called_from(filename: str, module: str, call: Callable[[], Any], **more: Any) -> Any:
    """Call a function from a frame that claims to be of a file and a module."""
    space: dict[str, Any] = {"__name__": module, **more}
    exec(compile("def run_code(call):\n    return call()\n", filename, "exec"), space)
    return space["run_code"](call)


def place_in(filename: str, module: str) -> Place:
    """Return the place of a made-up innermost frame, called from this test."""
    return place_of(called_from(filename, module, lambda: sys._getframe(1)))


# Where a thread is


def test_users_own_frame_is_steady() -> None:
    assert here() == Place(steady=True, in_cell=False)


def test_frames_of_this_package_are_not_steady() -> None:
    assert not place_in(OURS, "rmm_uvm.made_up").steady


def test_frames_of_libraries_that_the_user_called_are_steady() -> None:
    assert place_in(json.__file__, "json").steady


def test_package_that_runs_the_users_script_is_steady() -> None:
    assert called_from(OURS, "rmm_uvm.cli.run", here).steady


def test_cell_is_told_by_the_shell_that_runs_it() -> None:
    assert called_from("interactiveshell.py", "IPython.core.interactiveshell", here).in_cell


def test_event_loop_that_waits_is_not_steady() -> None:
    places: list[Place] = []

    async def main() -> None:
        places.append(here())
        # A callback of a library's: no frame of the user's on this side of the loop.
        space: dict[str, Any] = {"sys": sys, "place_of": place_of, "__name__": "selectors"}
        code = "def look(places): places.append(place_of(sys._getframe(0)))"
        exec(compile(code, asyncio.__file__, "exec"), space)
        asyncio.get_running_loop().call_soon(space["look"], places)
        await asyncio.sleep(0)

    asyncio.run(main())
    in_coroutine, in_loop = places
    assert in_coroutine.steady
    assert not in_loop.steady


def test_no_frame_at_all_is_a_place_too() -> None:
    assert place_of(None) == Place(steady=False, in_cell=False)


# Which line it is


@pytest.mark.parametrize(
    ("filename", "module", "more"),
    [
        (OURS, "rmm_uvm.made_up", {}),
        (json.__file__, "json", {}),
        (rmm.__file__, "rmm", {}),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", {}),
        ("/usr/lib/python3/dist-packages/made_up.py", "made_up", {}),
        ("<string>", "json", {"__file__": json.__file__}),  # as `__init__` of its dataclasses
        ("<string>", "rmm_uvm.made_up", {"__file__": OURS}),
    ],
)
def test_lines_of_others_are_passed_over(filename: str, module: str, more: Any) -> None:
    line = called_from(filename, module, users_line, **more)
    assert (line.file, line.module) == (__file__, __name__)


@pytest.mark.parametrize(
    ("filename", "module", "more"),
    [
        ("/home/me/etl.py", "etl", {}),
        ("<string>", "__main__", {}),
        ("<string>", "etl", {"__file__": "/home/me/etl.py"}),
        ("<ipython-input-3-0123456789ab>", "__main__", {}),
        ("/tmp/ipykernel_17/123.py", "__main__", {}),
    ],
)
def test_lines_of_the_user_are_named(filename: str, module: str, more: Any) -> None:
    line = called_from(filename, module, users_line, **more)
    assert (line.file, line.number, line.module) == (filename, 2, module)


def test_line_that_made_something_is_not_named_while_the_user_runs() -> None:
    made = CodeLine("made.py", 7, "made")
    assert users_line(made).file == line_here().file == __file__  # type: ignore[union-attr]


def test_line_keeps_no_frame_and_warns_once_as_the_module_asks() -> None:
    line = line_here()
    assert line is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            line.warn("one text", UserWarning)
        warn_user("another", UserWarning)
    assert [(str(each.message), each.filename) for each in caught] == [
        ("one text", __file__),
        ("another", __file__),
    ]
    assert "line = line_here()" in linecache.getline(__file__, caught[0].lineno)


def test_line_of_another_thread_keeps_nothing_of_this_one_alive() -> None:
    gone = threading.Event()
    space: dict[str, Any] = {"__name__": "rmm_uvm.made_up", "users_line": users_line, "gone": gone}
    code = """
class Held:
    def __init__(self):
        users_line()
    def __del__(self):
        gone.set()
"""
    exec(compile(code, OURS, "exec"), space)
    gc.disable()
    try:
        _thread.start_new_thread(space["Held"], ())
        assert gone.wait(60)
    finally:
        gc.enable()


# Programs whose own lines do not run any more, or not in this thread. `# NAMED` is the line.
BEGIN = """
import asyncio, atexit, gc, threading, time
from rmm_uvm.support.user_line import line_here, warn_user
import rmm

def ours(body, file=warn_user.__code__.co_filename, **more):
    "Return a function of this package, or of another file."
    space = dict(globals(), **more)
    exec(compile("def run(*_):\\n " + body, file, "exec"), space)
    return space["run"]

say = ours("warn_user('text', UserWarning)")
begun, over = threading.Event(), threading.Event()

def say_of(made):
    return ours("warn_user('text', UserWarning, made)", made=made)
"""
PROGRAMS = {
    "another thread names the main thread": """
thread = threading.Thread(target=say)
thread.start(); thread.join()  # NAMED
""",
    "another thread names the main thread before the line that made it": """
thread = threading.Thread(target=say_of(line_here()), daemon=True)
thread.start(); thread.join()  # NAMED
""",
    "thread of a library that called us names the main thread": """
thread = threading.Thread(target=ours("say()", rmm.__file__))
thread.start(); thread.join()  # NAMED
""",
    "end of the program names the line that made it": """
made = line_here()  # NAMED
atexit.register(say_of(made))
""",
    "end of the program names the line that made it before that of a daemon": """
threading.Thread(target=lambda: begun.set() or time.sleep(60), daemon=True).start()
begun.wait()
made = line_here()  # NAMED
atexit.register(say_of(made))
""",
    "end of the program names the line of a daemon where nothing made it": """
def task():
    begun.set(); time.sleep(60)  # NAMED
threading.Thread(target=task, daemon=True).start()
begun.wait()
atexit.register(say)
""",
    "end of the program names a thread that it waits for before the line that made it": """
def work():
    begun.set(); over.wait()  # NAMED
threading.Thread(target=work).start()
begun.wait()
say = say_of(line_here())
threading._register_atexit(ours("say(); over.set()"))  # called where the main thread has ended
""",
    "exit handler of the program names its own line": """
@atexit.register
def at_exit():
    say()  # NAMED
""",
    "collected garbage names the line that ran": """
class Held:
    pass
Held.__del__ = say
held = Held()
held.itself = held
del held
gc.collect()  # NAMED
""",
    "event loop that called us names the line that runs it": """
async def main():
    asyncio.get_running_loop().call_soon(say)
    await asyncio.sleep(0)
asyncio.run(main())  # NAMED
""",
}


def named_by(tmp_path: Path, program: str) -> tuple[str, str]:
    """Return what a program's warning names, and what it should name."""
    path = tmp_path / "program.py"
    path.write_text(BEGIN + program)
    ended = subprocess.run(
        [sys.executable, "-P", str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    numbered = enumerate(path.read_text().splitlines(), 1)
    number = next((i for i, text in numbered if text.endswith("# NAMED")), 1)
    assert ended.stderr.count("UserWarning: text") == 1, ended.stderr
    return ended.stderr.partition(": UserWarning")[0], f"{path}:{number}"


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_warning_names_a_line_of_the_program(tmp_path: Path, program: str) -> None:
    named, right = named_by(tmp_path, program)
    assert named == right


def test_end_of_a_program_that_made_nothing_names_the_first_line_of_it(tmp_path: Path) -> None:
    named, first = named_by(tmp_path, "atexit.register(say)\n")
    assert named == first


def test_program_that_is_installed_as_a_library_is_named_while_it_runs(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    named, right = named_by(site, "say()  # NAMED\n")
    assert named == right


@pytest.mark.parametrize(
    ("holds_packages", "whose"), [(True, "library"), (False, "module of the program")]
)
def test_module_in_a_folder_that_packages_were_installed_into_is_a_librarys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds_packages: bool, whose: str
) -> None:
    folder = tmp_path / "target"
    (folder / ("frames-1.0.dist-info" if holds_packages else "frames")).mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    module = str(folder / "frames" / "core.py")
    program = str(tmp_path / "etl.py")
    chosen = [module, program].index(program if whose == "library" else module)
    assert users_place([module, program]) == chosen


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("path", ["etl.py", "jobs/etl.py", "jobs/steps.py", "src/steps.py"])
def test_packages_around_the_script_leave_the_program_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, ended: bool
) -> None:
    (tmp_path / "frames-1.0.dist-info").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "src"), *sys.path])
    script = str(tmp_path / path.replace("steps", "etl").replace("src", "jobs"))
    main = types.ModuleType("__main__")
    if ended:  # what the interpreter leaves of it
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
    else:
        main.__file__ = script
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert users_place(["/venv/site-packages/frames/core.py", str(tmp_path / path)]) == 1


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_process_of_multiprocessing_without_user_code_names_the_script(
    tmp_path: Path, method: str
) -> None:
    named, first = named_by(
        tmp_path,
        f"""
import multiprocessing
from rmm_uvm.support import user_line
if __name__ == "__main__":
    # The child runs nothing of this file but its definitions.
    arguments = ("text", UserWarning)
    context = multiprocessing.get_context({method!r})
    process = context.Process(target=user_line.warn_user, args=arguments)
    process.start()
    process.join()
""",
    )
    assert named == first
