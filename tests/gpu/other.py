# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`tests/other_process.py`, which a package does not reach with a relative import."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "rmm_uvm_tests_other_process", Path(__file__).parents[1] / "other_process.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

OtherError = _module.OtherError
OtherProcess = _module.OtherProcess
other_process = _module.other_process
