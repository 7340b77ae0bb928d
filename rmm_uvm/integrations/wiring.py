# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Wires libraries to the pool, by a table of them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.settings import LIBRARIES


def _nothing() -> None:
    """Undo nothing."""


@dataclasses.dataclass(frozen=True)
class Wiring:
    """A library that allocates through RMM now, or the reason why it does not.

    Parameters
    ----------
    library : str
        Its import name.
    active : bool
        It allocates through RMM's current resource.
    reason : str
        What was done, or why nothing was; a few words.
    undo : callable
        Puts back what was there.
    permanent : bool
        It cannot be undone in this process.
    """

    library: str
    active: bool
    reason: str
    undo: Callable[[], None] = _nothing
    permanent: bool = False


def wire(library: str) -> Wiring:
    """Let a library allocate through RMM's current resource.

    Parameters
    ----------
    library : {"cupy", "numba", "torch"}
        What to wire.

    Raises
    ------
    ConfigurationError
        If the library is none that this package knows.
    AvailabilityError
        If the library is there but cannot be wired any more.
    """
    if library not in LIBRARIES:
        raise ConfigurationError(
            f"libraries contains {shown(library)}: it can contain {', '.join(map(repr, LIBRARIES))}"
        )
    module = importlib.import_module(f"rmm_uvm.integrations.{library}")
    wiring: Wiring = module.wire()
    return wiring
