# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs scripts one after the other, each as the main program; writes what came of them as JSON.

In one process, so that what they import is imported once.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import traceback
import warnings


def ran(script: str) -> dict[str, str]:
    """Run a script; what it printed and, if it failed, how."""
    printed = io.StringIO()
    error = ""
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        try:
            runpy.run_path(script, run_name="__main__")
        except Exception:
            error = traceback.format_exc()
    return {"printed": printed.getvalue(), "error": error}


if __name__ == "__main__":
    print(json.dumps([ran(script) for script in sys.argv[1:]]))
