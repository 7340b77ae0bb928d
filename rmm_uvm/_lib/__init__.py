# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled layer: Cython over `cpp/`, and the plain Python that it needs beside it. Not public.

The docstring of each ``.pyx`` file says which folder or header it binds.
"""

import importlib.util
from pathlib import Path

from rmm_uvm.support.requirements import (
    installed_packages,
    parse_version,
    rmm_package,
    rmm_problem,
)

if importlib.util.find_spec("rmm_uvm._lib.driver") is None:
    raise ImportError(
        "these are the sources of rmm_uvm, which are not compiled: run from another directory"
    )

# What is derived from RMM's classes is compiled for each RMM, in a folder each: rmm-26.08, say.
# Beside another one it would fail with an undefined symbol, or later.
_compiled = {
    minor: file.parent
    for file in Path(__file__).parent.glob("rmm-*/mr.*.so")
    if len(minor := parse_version(file.parent.name.removeprefix("rmm-"))) == 2
}
_packages = installed_packages()
if _problem := rmm_problem(_packages, _compiled):
    raise ImportError(f"rmm_uvm cannot be used: {_problem}")
__path__.insert(0, str(_compiled[parse_version(_packages[rmm_package(_packages)[0]])[:2]]))

import rmm as _rmm  # noqa: E402, F401 - loads librmm.so for the compiled layer
