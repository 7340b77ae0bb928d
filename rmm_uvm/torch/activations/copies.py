# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for tensors that autograd keeps: the tensor, or a copy of its storage on the host.

Covers what they consist of, and how much is where. When they are made and move is
`copied_activations`.
"""

from __future__ import annotations

import contextlib
import enum
import sys
from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Copy", "CopyStates", "Kept", "Progress", "State", "key_of"]

Key = tuple[int, int, int]


class State(enum.Enum):
    """The place where the contents of a copy are."""

    LEAVING = "on the device still; the copy may be under way"
    AWAY = "on the host"
    AHEAD = "brought back, nobody waited for it yet"
    THERE = "brought back, and in use"
    USED = "on the host, all that was kept of it was handed out"

    # An Enum's own is Python: slow, asked at every change of a state, and a collection may begin in
    # it, which would come back to who counts.
    __hash__ = object.__hash__


class Progress(NamedTuple):
    """How far autograd has got with keeping, of what may leave.

    Parameters
    ----------
    position : int
        Bytes that it kept, each as often as it did.
    different_bytes : int
        The same, with each once in a round.
    chosen_total : int
        Tensors that were to leave.
    """

    position: int = 0
    different_bytes: int = 0
    chosen_total: int = 0

    def since(self, before: Progress) -> Progress:
        """Return what came since an earlier one."""
        return Progress(*(now - then for now, then in zip(self, before, strict=True)))


class Copy:
    """A storage that autograd keeps, on the host. Lives as long as what leads to it.

    Parameters
    ----------
    tensor : torch.Tensor
        What was kept.
    kept : torch.Tensor
        The same without its graph.
    position : int
        Bytes that autograd kept before it.
    host : torch.Tensor
        Where the bytes go.
    copying : tuple
        The stream that used the tensor, and the mark after the copy.
    forget : callable
        Is called with it when nothing leads to it any more.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        kept: torch.Tensor,
        position: int,
        host: torch.Tensor,
        copying: tuple[int, Any],
        forget: Callable[[Copy], None],
    ) -> None:
        storage = kept.untyped_storage()
        self.nbytes = storage.nbytes()
        self.position = position
        self.state = State.LEAVING
        self.device: torch.Tensor | None = kept
        self.version = tensor._version
        self.error: RuntimeError | None = None  # it was changed while its copy was under way
        self.stream, self.copied = copying
        self.host: torch.Tensor | None = host
        self.back: torch.Tensor | None = None  # its bytes
        self.back_stream = 0  # that it was brought back for
        self.came: Any = None  # the mark after that
        self.kept_total = 0  # of `Kept` that lead here
        self.handed_out: set[int] = set()  # of those, since it was brought back
        self.ending = False  # nothing leads to it any more, although weak references still do
        self._forget = forget
        # Their addresses are nobody else's while these are there: see `key_of`.
        self._weak = (StorageWeakRef(storage), torch._C._WeakTensorRef(_family(tensor)))

    def __del__(self) -> None:
        self.ending = True  # before it waits for whoever may find it now
        if not sys.is_finalizing():  # nothing is used again then
            self._forget(self)


class Kept:
    """The value that hooks hand to autograd for one tensor: the tensor, or its copy and its shape.

    Parameters
    ----------
    tensor : torch.Tensor
        Without its graph.
    version : int
        When it was kept.
    position : int, optional
        Bytes that autograd kept before it; of what stays anyway none.
    """

    __slots__ = ("_layout", "adds_to", "copy", "position", "tensor", "version")

    def __init__(self, tensor: torch.Tensor, version: int, position: int | None = None) -> None:
        self.tensor: torch.Tensor | None = tensor
        self.version = version
        self.position = position
        self.copy: Copy | None = None
        self.adds_to: list[torch.Tensor] | None = None  # parameters whose gradients are added to
        self._layout: tuple[Any, ...] = ()

    def leave(self, copy: Copy) -> None:
        """Lead to a copy, and no more to the tensor."""
        assert self.tensor is not None
        tensor = self.tensor
        self._layout = tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride()
        self.copy, self.tensor = copy, None
        copy.kept_total += 1

    def view_of(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """Return the tensor over a storage with the same bytes."""
        dtype, *layout = self._layout
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, *layout)


def key_of(tensor: torch.Tensor) -> Key:
    """Return what two tensors share that have the same bytes, for as long as both are there.

    Torch counts the changes of a tensor and its views together. What shares memory beside them
    (``.detach()``, ``.data``) may be changed without that count: it is not the same.
    """
    return tensor.untyped_storage()._cdata, _family(tensor)._cdata, tensor._version


def _family(tensor: torch.Tensor) -> torch.Tensor:
    base = tensor._base if tensor._is_view() else None
    return tensor if base is None else base


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
