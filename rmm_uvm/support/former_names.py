# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Modules that have moved, found by the names that they had.

Programs and pickles that name them get the modules of today. `rmm_uvm` has the table; nothing in
the package uses the former names.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType

__all__ = ["spec_of"]


class _Moved(Loader):
    def __init__(self, today: str) -> None:
        self._today = today

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system: what it makes is replaced below."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of today where the import system looks for the former one."""
        sys.modules[module.__name__] = importlib.import_module(self._today)


def spec_of(former: str, today: str, distribution: str | None = None) -> ModuleSpec | None:
    """Return where the import system finds the module of today by a former name.

    None if there is no such module.

    Raises
    ------
    ModuleNotFoundError
        It is of another distribution, which is not installed.
    """
    if distribution is not None and find_spec(today.partition(".")[0]) is None:
        raise ModuleNotFoundError(
            f"{former} is {today} now, which is not installed: pip install '{distribution}'",
            name=former,
        )
    if distribution is not None and find_spec(today) is None:
        return None
    return spec_from_loader(former, _Moved(today))
