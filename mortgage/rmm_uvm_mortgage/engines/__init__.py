# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Engines that run the mortgage ETL: pandas on a CPU, cuDF on a GPU.

:mod:`rmm_uvm_mortgage.engines.base` is their common vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm_mortgage.engines.base import Engine

__all__ = ["Engine", "make_engine"]


def _pandas() -> Engine[Any, Any]:
    from rmm_uvm_mortgage.engines.pandas import PandasEngine

    return PandasEngine()


def _cudf() -> Engine[Any, Any]:
    from rmm_uvm_mortgage.engines.cudf import CudfEngine

    return CudfEngine()


_MAKERS: dict[str, Callable[[], Engine[Any, Any]]] = {"cudf": _cudf, "pandas": _pandas}


def make_engine(name: str) -> Engine[Any, Any]:
    """Return a new engine by its name.

    Parameters
    ----------
    name : str
        ``pandas`` or ``cudf``.

    Raises
    ------
    ConfigurationError
        There is no engine of that name.
    AvailabilityError
        A library that the engine needs is not installed, or there is no GPU.
    """
    if name not in _MAKERS:
        raise ConfigurationError(f"no engine {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name]()
