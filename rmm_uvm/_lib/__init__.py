# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled layer: Cython over `cpp/`, and the plain Python that it needs beside it. Not public.

The docstring of each ``.pyx`` file says which folder or header it binds.
"""

import importlib.util

from rmm_uvm.support.requirements import installed_packages, rmm_problem

if importlib.util.find_spec("rmm_uvm._lib.driver") is None:
    raise ImportError(
        "these are the sources of rmm_uvm, which are not compiled: run from another directory"
    )

# Beside another RMM than the one it was built for the compiled layer would fail with an undefined
# symbol.
if _problem := rmm_problem(installed_packages()):
    raise ImportError(f"rmm_uvm cannot be used: {_problem}")

import rmm as _rmm  # noqa: F401 - loads librmm.so for the compiled layer
