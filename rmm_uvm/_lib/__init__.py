# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled layer: Cython over `cpp/`, and the plain Python that it needs beside it. Not public.

The docstring of each ``.pyx`` file says which folder or header it binds.
"""

import importlib.util

if importlib.util.find_spec("rmm_uvm._lib.driver") is None:
    raise ImportError(
        "these are the sources of rmm_uvm, which are not compiled: run from another directory"
    )

from rmm_uvm._lib import rmm_check as rmm_check  # first: says in one line what is wrong with RMM
