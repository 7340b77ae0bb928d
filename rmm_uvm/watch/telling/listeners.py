# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Who hears of findings beside the user: whatever a monitor was told to do about them.

Of the process and not of a monitor, since programs start others: a Dask worker hears of findings
also after ``client.run(rmm_uvm.reinitialize)``.

See Also
--------
rmm_uvm.watch.telling.delivery : how findings reach the user of this process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from rmm_uvm.recording.finding import Finding

__all__ = ["Listener", "subscribe", "tell"]

Listener: TypeAlias = Callable[[Finding], object]
"""Called with each finding by the thread that noticed; has to return soon."""

# No lock: a dictionary's own steps are whole, and a fork may come at any time.
_listeners: dict[object, Listener] = {}


def subscribe(listener: Listener) -> Callable[[], None]:
    """Let a function hear of every finding in this process that is not kept silent.

    Those of monitors with ``on_finding=None`` are kept silent, and where two monitors watch a
    device only one of them speaks.

    Parameters
    ----------
    listener : callable
        Called with the `Finding`, by the thread that noticed. What it raises is logged.

    Returns
    -------
    callable
        Ends it; may be called twice, and from any thread.

    Notes
    -----
    Thread-safe. Threads of a monitor do not outlive a fork, so a child hears of nothing.

    Examples
    --------
    >>> heard = []
    >>> unsubscribe = subscribe(heard.append)
    >>> tell(Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer"))
    >>> unsubscribe()
    >>> tell(Finding("eviction", 0, 2.0, 2.0, 1.0, "pages leave", "use fewer"))
    >>> len(heard)
    1
    """
    place = object()
    _listeners[place] = listener

    def unsubscribe() -> None:
        _listeners.pop(place, None)

    return unsubscribe


def tell(finding: Finding) -> None:
    """Hand a finding to all that listen."""
    for listener in list(_listeners.values()):
        try:
            listener(finding)
        except Exception:
            logging.getLogger("rmm_uvm.watch").exception("a listener failed for: %s", finding)
