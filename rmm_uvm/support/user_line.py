# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The line of the user's program that a warning names.

Never one of this package or of Python's standard library. Where no line of the program runs any
more, as at its end, a warning names the line that made what it is about, or else the script.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = [
    "CodeLine",
    "Place",
    "library_name",
    "line_here",
    "outermost_of_program",
    "place_of",
    "users_line",
    "users_place",
    "warn_user",
]

_Whose: TypeAlias = Literal["user", "library", "standard", "ours"]

_OURS = str(Path(__file__).parents[1]) + os.sep  # as code names its file: links and all
_SITES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def _folders(*names: str) -> tuple[str, ...]:
    return tuple(path + os.sep for name in names if (path := sysconfig.get_path(name)))


_LIBRARIES = _folders("purelib", "platlib", "scripts")
_STANDARD = (*_folders("stdlib", "platstdlib"), "<frozen ")
# Modules that stand between a program and what was called while it waited for events.
_LOOPS = frozenset({"asyncio.base_events", "asyncio.events", "asyncio.runners"})
# Names of code that a person typed into a session.
_TYPED = ("<ipython-input-", "<python-input-", "<stdin>")
# What `python -c` is given in processes that multiprocessing starts.
_STARTS = frozenset({"spawn_main", "multiprocessing.forkserver"})


class CodeLine(NamedTuple):
    """A line of code, also when its frame is gone.

    Parameters
    ----------
    file : str
        Its file, as tracebacks show it.
    number : int
        From 1 on.
    module : str
        Its module, for filters of warnings.
    registry : dict or None
        Where the module notes what was warned of already. None: each warning is shown.
    """

    file: str
    number: int
    module: str
    registry: dict[Any, Any] | None = None

    @classmethod
    def of(cls, frame: FrameType) -> CodeLine:
        """Return the line that a frame runs. The frame is not kept, nor what its function has."""
        return cls(
            frame.f_code.co_filename,
            frame.f_lineno or frame.f_code.co_firstlineno,  # some instructions are of no line
            frame.f_globals.get("__name__") or "<unknown>",
            frame.f_globals.setdefault("__warningregistry__", {}),
        )

    def warn(self, message: str, category: type[Warning]) -> None:
        """Warn at this line."""
        if warnings is None:  # late in the end of Python
            return
        warnings.warn_explicit(
            message, category, self.file, self.number, module=self.module, registry=self.registry
        )


@dataclasses.dataclass(frozen=True)
class Place:
    """The place in the program where a thread is.

    Parameters
    ----------
    steady : bool
        An exception raised here is raised in user code or in something that it called. False
        inside this package, and where an event loop waits: an exception would break either.
    in_cell : bool
        A notebook cell, or an IPython prompt's input, is running.
    """

    steady: bool
    in_cell: bool


def place_of(frame: FrameType | None) -> Place:
    """Return where a thread is whose innermost frame of interest is `frame`.

    Parameters
    ----------
    frame : FrameType or None
        Frames from here outwards count.
    """
    in_user_code = in_cell = False
    steady = True
    for each in _outwards(frame):
        module = each.f_globals.get("__name__", "")
        if module == "IPython.core.interactiveshell" and each.f_code.co_name == "run_code":
            in_cell = True
        if in_user_code:
            continue
        whose = _whose(each)
        in_user_code = whose == "user"
        if whose == "ours" or module in _LOOPS:
            steady = False
    return Place(steady and in_user_code, in_cell)


def line_here() -> CodeLine | None:
    """Return the innermost line of user code of this thread, or None."""
    frame = _users_frame(sys._getframe(1))
    return None if frame is None else CodeLine.of(frame)


def users_line(about: CodeLine | None = None) -> CodeLine:
    """Return the line of the program that a warning names.

    The first that there is: the innermost line of user code of this thread, or of another one that
    the program waits for before it ends; of an installed program; `about`; a line of user code of a
    daemon thread; the first line of the script.

    Parameters
    ----------
    about : CodeLine or None
        The line that made what the warning is about.
    """
    here = sys._getframe(1)
    found = _users_frame(here) or _elsewhere(daemon=False) or _librarys_frame(here)
    if found is None and about is not None:
        return about
    found = found or _elsewhere(daemon=True)
    if found is not None:
        return CodeLine.of(found)
    return CodeLine(_script() or "<string>", 1, "__main__")


def warn_user(message: str, category: type[Warning], about: CodeLine | None = None) -> None:
    """Warn at the line of the program that `users_line` returns.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("the device is full", UserWarning)
    >>> str(caught[0].message)
    'the device is full'
    """
    users_line(about).warn(message, category)


def users_place(files: Sequence[str]) -> int | None:
    """Return which of some frames is the program's own, given their files only.

    The innermost one in a file of the user. Else of code without a file, such as that of
    ``python -c``: elsewhere that belongs to whoever made it. Else of a library.

    Parameters
    ----------
    files : sequence of str
        Files of frames, the innermost first.

    Examples
    --------
    >>> users_place(["<string>", "/home/me/etl.py", "/home/me/main.py"])
    1
    >>> users_place(["<string>"]), users_place([])
    (0, None)
    >>> users_place(["<ipython-input-1-80>", "/home/me/shell.py"])
    0
    """
    whose = [_whose_file(file) if file[:1] != "<" else _whose_code(file) for file in files]
    for wanted in ("user", "made", "library"):
        if wanted in whose:
            return whose.index(wanted)
    return None


def library_name(file: str) -> str:
    """Return the package of an installed library that a file is of; empty for other files.

    Examples
    --------
    >>> library_name("/venv/lib/python3.11/site-packages/cudf/core/frame.py")
    'cudf'
    >>> library_name("/venv/lib/python3.11/site-packages/six.py"), library_name("/home/me/etl.py")
    ('six', '')
    """
    inside = [file.rpartition(each)[2] for each in _SITES if each in file]
    return inside[0].partition(os.sep)[0].removesuffix(".py") if inside else ""


def outermost_of_program(files: Sequence[str]) -> int:
    """Return how many of some frames are left without those that only run the program.

    Parameters
    ----------
    files : sequence of str
        Files of frames, the innermost first.
    """
    count = len(files)
    while count and (files[count - 1].startswith("<frozen ") or _is_ours(files[count - 1])):
        count -= 1
    return count


def _is_ours(file: str) -> bool:
    return _whose_file(file) == "ours"


def _whose_code(name: str) -> str:
    if name.startswith(_TYPED):
        return "user"
    return "standard" if name.startswith(("<frozen ", "<shim")) else "made"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _users_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and _whose(frame) != "user":
        frame = frame.f_back
    return frame


def _librarys_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a program that is installed itself, or of what it called.

    What this package or an event loop called is no part of it.
    """
    innermost = None
    for each in _outwards(frame):
        module, whose = each.f_globals.get("__name__"), _whose(each)
        if module in _LOOPS:
            return None
        if whose == "ours":
            innermost = None
        elif whose == "library":
            innermost = innermost or each
            if module == "__main__":
                return innermost
    return None


def _elsewhere(*, daemon: bool) -> FrameType | None:
    """Return the innermost frame of user code in another thread; the main one comes first."""
    frames = sys._current_frames()
    numbers = [each.ident for each in threading.enumerate() if each.daemon is daemon]
    found = [_users_frame(frames.get(number)) for number in numbers if number is not None]
    frames.clear()  # our own frame among them would keep itself and its callers
    return next(filter(None, found), None)


def _whose(frame: FrameType) -> _Whose:
    name = frame.f_code.co_filename
    if name[:1] == "<" and not name.startswith("<frozen "):
        if not _STARTS.isdisjoint(frame.f_code.co_names):
            return "standard"
        # Code without a file, such as of a dataclass, belongs to the module that it was made for.
        # Where there is none such, the line that had it run says more.
        if "__name__" not in frame.f_globals:
            return "standard"
        name = frame.f_globals.get("__file__") or name
    return _whose_file(name)


@functools.lru_cache(maxsize=1000)
def _whose_file(name: str) -> _Whose:
    if name.startswith(_OURS):
        return "ours"
    if name.startswith(_LIBRARIES) or any(each in name for each in _SITES):
        return "library"
    if name.startswith(_STANDARD):
        return "standard"
    return "library" if _has_packages(_folder_of(name)) else "user"


def _folder_of(name: str) -> str:
    """Return the folder that a module was looked for in: the innermost; empty for the program's."""
    script = _script()
    program = str(Path(script).absolute().parent) if script else ""
    folders = [
        folder
        for each in {program, *sys.path}
        if name.startswith((folder := each.rstrip(os.sep)) + os.sep)
    ]
    innermost = max(folders, key=len, default="")
    return "" if innermost == program.rstrip(os.sep) else innermost


def _script() -> str | None:
    """Return the file of the program's script, also when it has ended."""
    main = sys.modules.get("__main__")
    # A script has no `__file__` any more when it has ended; its loader still knows the file.
    loader = getattr(main, "__loader__", None)
    return getattr(main, "__file__", None) or getattr(loader, "path", None)


@functools.lru_cache(maxsize=100)
def _has_packages(folder: str) -> bool:
    """Return whether packages were installed in a folder, as by ``pip install --target``."""
    try:
        with os.scandir(folder) as entries:
            return any(each.name.endswith(".dist-info") for each in entries)
    except OSError:
        return False
