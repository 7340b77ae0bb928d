# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Lets the first Python process of a watched command install the pool, then gets out of the way.

`site` imports this file when a process starts, since `rmm_uvm.run.command` puts its folder first in
PYTHONPATH. It must not break any program, nor any version of Python: hence no syntax that is new,
and errors of one line.
"""

import os
import sys


def _is_here(entry: str) -> bool:
    here = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120 - pathlib is slow to import
    return bool(entry) and os.path.realpath(entry) == here


def _step_aside() -> str:
    """Take this folder out of sys.path and of what child processes inherit."""
    sys.path[:] = [entry for entry in sys.path if not _is_here(entry)]
    kept = [e for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not _is_here(e)]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)
    return os.environ.pop("UVM_RUN_FOLDER", "")


def _chain() -> None:
    """Load the sitecustomize that this file hides, as if this one were not there."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _complain(folder: str, error: Exception) -> None:
    """Say it once for a command, however many Python processes it has."""
    try:
        os.close(os.open(os.path.join(folder, "complained"), os.O_CREAT | os.O_EXCL))  # noqa: PTH118
    except OSError:
        return
    if sys.stderr is None:  # closed: 2>&-
        return
    sys.stderr.write(
        f"rmm_uvm: not watched from inside {sys.executable}: {' '.join(str(error).split())}\n"
    )


def _begin(folder: str) -> None:
    try:
        from rmm_uvm.run.child import begin

        begin(folder)
    except Exception as error:
        _complain(folder, error)


if __name__ == "sitecustomize":  # as site imports it, and not a tool that walks over modules
    _folder = _step_aside()
    try:
        _chain()
    finally:
        if _folder:
            _begin(_folder)
