# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Running a Python script or module in this process, as ``python`` itself would.

Covers what the program sees (``__main__``, ``sys.argv``, ``sys.path``) and how it ends. Does not
cover watching it; see `rmm_uvm.run.watching`.

Notes
-----
The program's ``__main__`` stays in ``sys.modules`` when it has ended, unlike with `runpy`: threads,
exit handlers and pickles go on finding it. Processes that multiprocessing spawns import the
program by its file or name, and never this package's command.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import stat
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from rmm_uvm.errors import AvailabilityError, ConfigurationError

__all__ = ["PythonProgram", "check", "main_in", "run_as_main"]

_NAMES_CACHE = sys.version_info < (3, 15)  # whether a program finds the name `__cached__`
# Frames that stand between the interpreter and the program: nobody wants them in a traceback.
_OUR_FILES = frozenset({__file__, importlib.util.__file__, "<frozen importlib.util>"})


@dataclass(frozen=True)
class PythonProgram:
    """A Python program.

    Parameters
    ----------
    kind : {"script", "module"}
        What `target` is.
    target : str
        A file, a directory or zip file with ``__main__.py``, or the name of a module.
    arguments : tuple of str
        What follows in ``sys.argv``.
    """

    kind: Literal["script", "module"]
    target: str
    arguments: tuple[str, ...] = ()


def check(program: PythonProgram) -> None:
    """Raise if the program is not there; runs none of it.

    Raises
    ------
    ConfigurationError
        If the script cannot be read.
    AvailabilityError
        If there is no such module.
    """
    if program.kind == "module":
        top = program.target.partition(".")[0]
        if not _is_found(top):
            raise AvailabilityError(f"no module named {program.target!r}")
        return
    try:
        mode = os.stat(program.target).st_mode  # noqa: PTH116 - no ValueError becomes False
        if not stat.S_ISDIR(mode):
            with io.open_code(os.path.abspath(program.target)):  # noqa: PTH100 - keeps links
                return
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", "") or str(error)).lower()
        raise ConfigurationError(
            f"the script {program.target!r} cannot be read: {reason}; "
            "for a command that is not a Python script write -- before it"
        ) from error
    if main_in([os.path.abspath(program.target)]) is None:  # noqa: PTH100
        raise ConfigurationError(f"no __main__.py in the directory {program.target!r}")


def run_as_main(
    program: PythonProgram, failed: Callable[[BaseException], object] | None = None
) -> None:
    """Run the program and end as the interpreter would end after it.

    Call it last, outside any handler of exceptions, in the main thread.

    Parameters
    ----------
    program : PythonProgram
        What to run.
    failed : callable, optional
        Called with an exception that the program did not catch, after its traceback was printed;
        not for `SystemExit`.

    Raises
    ------
    SystemExit
        The program's own; with status 1 after an exception, whose traceback has been printed.
    KeyboardInterrupt
        If the program did not catch it; its traceback has been printed. At top level the
        interpreter then ends by SIGINT, which shells show as 130.
    """
    error = _execute(program)
    if error is None:
        return
    if isinstance(error, SystemExit):
        raise error
    _show(error)
    if failed is not None:
        failed(error)
    if isinstance(error, KeyboardInterrupt):
        sys.excepthook = lambda *_: None  # it has been shown, without our frames
        raise KeyboardInterrupt
    sys.exit(1)


def _execute(program: PythonProgram) -> BaseException | None:
    """Run the program; return what it raised, with the program's own frames only."""
    try:
        if program.kind == "module":
            _execute_module(program.target, program.arguments)
        else:
            _execute_script(program.target, program.arguments)
    except BaseException as error:
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename in _OUR_FILES:
            frame = frame.tb_next
        return error.with_traceback(frame)
    return None


def _execute_script(target: str, arguments: Sequence[str]) -> None:
    sys.argv = [target, *arguments]
    path = str(Path.cwd() / target)  # as the interpreter has it: links and dots are kept
    if spec := main_in([path]):
        _set_first_path(path)
        _execute_spec(spec)
        return
    _set_first_path(os.path.dirname(os.path.realpath(target)))  # noqa: PTH120 - without links
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)  # a .pyc file; None for source
    loader: importlib.machinery.SourceFileLoader | importlib.machinery.SourcelessFileLoader
    if code is None:
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    else:
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
    main = _new_main()
    main.__dict__.update(__file__=path, __loader__=loader, __package__=None, __spec__=None)
    if _NAMES_CACHE:
        main.__dict__.update(__cached__=None)
    exec(code, main.__dict__)


def _execute_module(name: str, arguments: Sequence[str]) -> None:
    sys.argv = ["-m", *arguments]  # as it is while the module is being looked for
    _set_first_path(str(Path.cwd()))
    spec = _find_module(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_module(f"{name}.__main__")
        if spec is None:
            _refuse(f"the package {name!r} cannot be run: it has no __main__ module")
    if spec is None:
        _refuse(f"no module named {name!r}")
    sys.argv[0] = spec.origin or name
    _execute_spec(spec)


def _execute_spec(spec: importlib.machinery.ModuleSpec) -> None:
    get_code = getattr(spec.loader, "get_code", None)
    code = None if get_code is None else get_code(spec.name)
    if code is None:
        _refuse(f"{spec.name!r} cannot be run: it has no Python code")
    main = _new_main()
    main.__dict__.update(
        __file__=spec.origin,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    if _NAMES_CACHE:
        main.__dict__.update(__cached__=spec.cached)
    exec(code, main.__dict__)


def _find_module(name: str) -> importlib.machinery.ModuleSpec | None:
    """Return the module's spec; None if it, or a package that it is in, does not exist."""
    parent = name.rpartition(".")[0]
    try:
        return importlib.util.find_spec(name)  # imports the parent: that is the program's code
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if parent and (missing == parent or parent.startswith(f"{missing}.")):
            return None
        raise  # something that the parent wanted to import
    except ValueError:  # a module without a spec, such as __main__ itself
        return None


def _is_found(name: str) -> bool:
    """Whether a top-level module would be found; imports nothing."""
    if not sys.flags.safe_path and (
        importlib.machinery.PathFinder.find_spec(name, [str(Path.cwd())]) is not None
    ):
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # in sys.modules, without a spec
        return True


def main_in(places: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of ``__main__`` in directories or zip files; None for a plain file."""
    try:
        return importlib.machinery.PathFinder.find_spec("__main__", places)
    except (ImportError, OSError):
        return None


def _set_first_path(folder: str) -> None:
    if not sys.flags.safe_path:  # then the interpreter put our own folder there
        sys.path[0] = folder


def _new_main() -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _refuse(what: str) -> NoReturn:
    sys.exit(f"Error: {what}")


def _show(error: BaseException) -> None:
    """Print a traceback the way the program wants it printed."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception:
        sys.__excepthook__(type(error), error, error.__traceback__)
