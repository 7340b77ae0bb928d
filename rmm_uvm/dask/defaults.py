# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The section ``rmm-uvm`` of Dask's configuration: its defaults, and reading it.

The defaults are in rmm-uvm.yaml beside this file. Files of users and Dask's environment variables
come before them, as with every library of Dask; docs/use/configuration.md has the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmm_uvm.support.package_files import package_text

__all__ = ["SECTION", "register_defaults", "section"]

SECTION = "rmm-uvm"


def register_defaults() -> None:
    """Let Dask know the defaults; nothing where Dask is not installed."""
    try:
        import dask.config
        import yaml  # comes with Dask
    except ImportError:
        return
    text = package_text("rmm_uvm.dask", "rmm-uvm.yaml")
    # Dask puts a section of defaults, or of a file, in the place of what is no section, without a
    # word. A worker is to say that it cannot be used.
    places = (dask.config.config, dask.config.collect_env())
    names = (f"{SECTION}.comm", SECTION)
    written = [(name, dask.config.get(name, None, config)) for name in names for config in places]
    dask.config.update_defaults(yaml.safe_load(text))
    for name, value in written:
        if value is not None and not isinstance(value, Mapping):
            dask.config.set({name: value})


def section() -> Mapping[str, Any] | None:
    """Return the section as Dask has it now, keys as they were written."""
    import dask.config

    found: Mapping[str, Any] | None = dask.config.get(SECTION, None)
    return found
