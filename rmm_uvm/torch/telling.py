# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Being told by torch: of allocations and frees, of streams and events.

Torch keeps lists of callbacks, which threads go through while others change them: lists are
replaced as a whole here. Segments have to be told of every allocation; see `before_others`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rmm_uvm._lib.torch_segments import Teller, TorchSegments

__all__ = ["before_others", "tell"]


def tell(registry: Any, callback: Callable[..., None]) -> Callable[[], None]:
    """Have a callback of a registry of torch's called; return what ends it."""
    registry.callback_list = [*registry.callback_list, callback]

    def end() -> None:
        registry.callback_list = [each for each in registry.callback_list if each != callback]

    return end


def before_others(
    registry: Any, segments: TorchSegments, *, frees: bool = False
) -> Callable[[], None]:
    """Have segments told of every allocation, or free, whatever signals wait; return what ends it.

    Torch calls a function of Python, which may be begun by the handler of a signal that raises: the
    callbacks are passed over then. So the function is replaced by one that is not Python's. It also
    takes less of the host's time, at each of a step's thousands of allocations and frees: torch's
    own function is called only while somebody is registered there.

    Parameters
    ----------
    registry : object
        Of torch's.
    segments : TorchSegments
        Who is told.
    frees : bool
        Whether the registry is that of frees.
    """
    theirs = registry.fire_callbacks
    own = getattr(theirs, "__func__", None) is type(registry).fire_callbacks
    own = own and hasattr(registry, "callback_list")
    teller = Teller(segments, theirs, frees, registry if own else None)
    registry.fire_callbacks = teller

    def end() -> None:
        teller.end()
        if registry.fire_callbacks is teller:  # else somebody's after ours, which passes on
            registry.fire_callbacks = teller.theirs

    return end
