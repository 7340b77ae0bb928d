# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The section ``rmm-uvm`` of Dask's configuration: its defaults, and reading it.

The defaults are in rmm-uvm.yaml beside this file. Files of users and Dask's environment variables
come before them, as with every library of Dask; docs/configuration.md has the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["SECTION", "register_defaults", "section"]

SECTION = "rmm-uvm"


def register_defaults() -> None:
    """Let Dask know the defaults; nothing where Dask is not installed."""
    try:
        import dask.config
        import yaml  # comes with Dask
    except ImportError:
        return
    text = Path(__file__).with_name("rmm-uvm.yaml").read_text()
    dask.config.update_defaults(yaml.safe_load(text))


def section() -> Mapping[str, Any] | None:
    """Return the section as Dask has it now, keys as they were written."""
    import dask.config

    found: Mapping[str, Any] | None = dask.config.get(SECTION, None)
    return found
