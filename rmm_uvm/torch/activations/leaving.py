# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which of what autograd keeps leaves the device as copies: the largest of a round.

A copy takes the host's time, however few bytes it has. What is kept last is needed first: a copy of
it would be back as soon as it left. So it stays. Where all that comes before is not enough, less of
it does, or more would be evicted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

import torch

__all__ = ["LargestFirst", "address_that_may_leave"]


def address_that_may_leave(tensor: torch.Tensor, device: torch.device, small_bytes: int) -> int:
    """Return where a tensor's storage begins, if a copy of it may take its place; else 0.

    Parameters
    ----------
    tensor : torch.Tensor
        No parameter, no view of one, no subclass, and at least half of its storage.
    device : torch.device
        That it has to be on.
    small_bytes : int
        Storages of no more than that are not copied.
    """
    if (
        type(tensor) is not torch.Tensor  # a parameter, or something of the program's own
        or tensor.layout is not torch.strided
        or 2 * tensor.nbytes <= small_bytes  # most of them: half of a storage
        or tensor.device != device
        or tensor.is_nested
        or tensor.is_quantized
        or tensor.is_conj()
        or tensor.is_neg()
        or is_parameter(tensor)
    ):
        return 0
    try:
        storage = tensor.untyped_storage()
        nbytes, address = storage.nbytes(), storage.data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0  # as in `extents_of`
    return address if nbytes > small_bytes and 2 * tensor.nbytes >= nbytes else 0


def is_parameter(tensor: torch.Tensor) -> bool:
    """Whether it is one, or a view of one; a frozen one, too."""
    base = tensor._base if tensor._is_view() else None
    leaf = tensor if base is None else base
    return isinstance(leaf, torch.nn.Parameter) or bool(leaf.is_leaf and leaf.requires_grad)


_EARLY_FRACTION = 7 / 8  # of a round's bytes
_LAST_FRACTION = 15 / 16  # instead, where those are not enough
_MORE_FRACTION = 1 / 16  # of what is to leave: rounds may differ
_ROUNDS = 8  # whose lengths count


class LargestFirst:
    """Learns sizes in one round for the next.

    Examples
    --------
    >>> choice = LargestFirst()
    >>> sizes = {"a": 10, "b": 60, "c": 10, "d": 60, "e": 10, "f": 40}
    >>> [choice.takes(key, nbytes) for key, nbytes in sizes.items()]  # nothing is known yet
    [True, True, True, True, True, True]
    >>> choice.begin(100)
    >>> [choice.takes(key, nbytes) for key, nbytes in sizes.items()]
    [False, True, False, True, False, False]
    """

    def __init__(self) -> None:
        # In this round: bytes, where in it they end, and the answer.
        self._kept: dict[Hashable, tuple[int, int, bool]] = {}
        self.kept_bytes = self._round_begin = 0
        """Of all that was kept until now, once in each round."""
        self._lengths: deque[int] = deque(maxlen=_ROUNDS)  # in bytes
        self._least_bytes = 0
        self._until_fraction = _EARLY_FRACTION

    def begin(self, needed_bytes: int) -> None:
        """Choose for the round that begins.

        Parameters
        ----------
        needed_bytes : int
            That are to leave.
        """
        round_bytes = self.kept_bytes - self._round_begin
        self._lengths.append(round_bytes)
        self._least_bytes = 0
        missing = needed_bytes * (1 + _MORE_FRACTION)
        for nbytes in sorted(self._early(round_bytes), reverse=True):
            missing -= nbytes
            if missing <= 0:
                self._least_bytes = nbytes
                break
        self._until_fraction = _EARLY_FRACTION if missing <= 0 else _LAST_FRACTION
        self._kept.clear()
        self._round_begin = self.kept_bytes

    def pass_over(self, nbytes: int) -> None:
        """Take note of so much that is kept next, of which nothing is to be copied."""
        self.kept_bytes += nbytes

    def takes(self, key: Hashable, nbytes: int) -> bool:
        """Whether something is to be copied that is kept next, unless enough left already.

        Parameters
        ----------
        key : hashable
            What it is: it may be kept more than once.
        nbytes : int
            Its length.
        """
        if key not in self._kept:
            self.kept_bytes += nbytes
            end = self.kept_bytes - self._round_begin
            length = max(self._lengths, default=0)
            # A round that is longer than any before has its end elsewhere.
            is_late = length * self._until_fraction < end <= length
            self._kept[key] = nbytes, end, nbytes >= self._least_bytes and not is_late
        return self._kept[key][2]

    def _early(self, round_bytes: int) -> list[int]:
        """Return the sizes of the last round, without those of its end."""
        most = round_bytes * _EARLY_FRACTION
        return [nbytes for nbytes, end, _ in self._kept.values() if end <= most]
