# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of what was copied is where, and at which positions."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, insort

from rmm_uvm.torch.activations.copies import Copy, State

__all__ = ["CopyStates"]


class CopyStates:
    """Bytes of copies by their state. Not thread-safe.

    Attributes
    ----------
    bytes_in : dict of State
        Bytes in each.
    """

    def __init__(self) -> None:
        self.bytes_in = dict.fromkeys(State, 0)
        self._away: list[int] = []  # positions of copies that are, ascending
        self._ahead: set[int] = set()  # of what was brought back before its use

    def enter(self, copy: Copy) -> None:
        """Count a copy that is made."""
        self.bytes_in[copy.state] += copy.nbytes

    def change(self, copy: Copy, state: State) -> None:
        """Count a copy in another state from now on."""
        self.take_out(copy)
        copy.state = state
        self.bytes_in[state] += copy.nbytes
        if state is State.AHEAD:
            self._ahead.add(copy.position)
        elif state is State.AWAY:
            insort(self._away, copy.position)

    def take_out(self, copy: Copy) -> None:
        """Count a copy no more."""
        self.bytes_in[copy.state] -= copy.nbytes
        if copy.state is State.AHEAD:
            self._ahead.discard(copy.position)
        elif copy.state is State.AWAY:
            with contextlib.suppress(ValueError):  # gone, if an interrupt came in between
                self._away.remove(copy.position)  # at once: a collection may come back to us

    def away_before(self, position: int, most: int) -> list[int]:
        """Return the positions of the last ones before a position that are away, the last first."""
        place = bisect_left(self._away, position)
        return self._away[max(place - most, 0) : place][::-1]

    def ahead_past(self, position: int) -> list[int]:
        """Return the positions past another one of what was brought back."""
        # A list that is made at once: a collection within may end copies that are in the set.
        return [one for one in list(self._ahead) if one > position]
