# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The page about managed memory on the scheduler's dashboard.

`attach` and `detach` are imported when they are first used, since the scheduler's plugin, which
they need, keeps its history in this folder.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmm_uvm.dask.dashboard.attaching import attach, detach

__all__ = ["attach", "detach"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("rmm_uvm.dask.dashboard.attaching"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
