# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs in a process of its own: reads what to try in which environments, writes what came of it.

Each environment is a fork, made before rmm_uvm is imported. On the standard input is JSON: a list
of environments, each with `name`, `package` and `version` (of a package that is missing or old) and
`tried`, a list of expressions; `there` are libraries of NVIDIA's that can be loaded.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

# Not rmm_uvm: these are not optional, and take their time to import.
import click  # noqa: F401
import rmm  # noqa: F401

from .columns import COLUMNS
from .hidden import require_hidden
from .machines import MACHINES
from .packages import take


def answer(work: Callable[[], Any]) -> dict[str, Any]:
    """Return whether `work` works, and all that a user would read."""
    said = io.StringIO()
    logger = logging.getLogger("rmm_uvm")
    handler = logging.StreamHandler(said)
    logger.addHandler(handler)
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            said.write(str(work()))
            works = True
        except (Exception, SystemExit) as error:
            works = False
            said.write(f"{type(error).__name__}: {error}\n")
            where = traceback.format_exc()
    logger.removeHandler(handler)
    text = said.getvalue() + "".join(
        f"\n{each.category.__name__}: {each.message}" for each in caught
    )
    return {"works": works, "said": text, "where": "" if works else where}


def evaluate(expression: str) -> Any:
    """Evaluate what a document says a user would write, the modules that it names imported.

    ``$ rmm-uvm ...`` is a command, which is run in this process.
    """
    if expression.startswith("$ rmm-uvm "):
        from rmm_uvm.cli.main import main

        sys.argv = expression.removeprefix("$ ").split()
        return main()
    names: dict[str, Any] = {}
    for module in ("rmm", "rmm_uvm"):
        names[module] = importlib.import_module(module)
    path = expression.partition("(")[0].split(".")
    for length in range(2, len(path) + 1):
        with contextlib.suppress(ModuleNotFoundError):
            if importlib.util.find_spec(".".join(path[:length])) is not None:
                importlib.import_module(".".join(path[:length]))
    return eval(expression, names)


def tried(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Try all columns in an environment, in this process; `way` is how it was made."""
    os.environ["RMM_UVM_DRIVER"] = "simulated:64MiB"
    way = None
    if environment.get("package"):
        take(environment["package"], version=environment["version"])
    else:
        way = MACHINES[environment["name"]]()
    there = environment.get("there", ())
    require_hidden(*there)  # in the environment, whose user may be another one
    columns = {name: answer(column) for name, column in COLUMNS.items()}
    for expression in environment["tried"]:
        columns[expression] = answer(functools.partial(evaluate, expression))
    return {**columns, "way": way}


def forked(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Try an environment in a child; what it wrote before it ended, else how it ended."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        text = "{}"
        try:
            text = json.dumps(tried(environment))
        except BaseException:
            text = json.dumps({"broken": traceback.format_exc()})
        finally:
            with contextlib.suppress(OSError):
                os.write(writing, b"")
            os.set_blocking(writing, True)
            data = text.encode()
            while data:
                data = data[os.write(writing, data) :]
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(text) if text else {}
    result.setdefault("status", os.waitstatus_to_exitcode(status))
    return result


if __name__ == "__main__":
    print(json.dumps([forked(environment) for environment in json.load(sys.stdin)]))
