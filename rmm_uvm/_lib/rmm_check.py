# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Refuse to load beside another RMM than the one this package was built for.

Imported before the compiled layer, which would otherwise fail with an undefined symbol. Importing
RMM here also loads ``librmm.so`` for it.
"""

from __future__ import annotations

from rmm_uvm.support.requirements import installed_packages, rmm_problem

if _problem := rmm_problem(installed_packages()):
    raise ImportError(f"rmm_uvm cannot be used: {_problem}")

import rmm as _rmm  # noqa: F401 - loads librmm.so
