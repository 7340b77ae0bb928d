# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks of ours for the tensors that autograd keeps, beside those of the program.

Torch calls the hooks that were pushed last in a thread, and no others. The program's own change
what is kept (`save_on_cpu`, checkpointing), so that they go first: ours are pushed only where there
are none. `torch.func` refuses to work under any hooks: ours leave while it is at work.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["SavedTensorHooks", "are_of_others", "changed", "version_of"]

_autograd = torch._C._autograd
_push = _autograd._push_saved_tensors_default_hooks
_pop = _autograd._pop_saved_tensors_default_hooks

_OURS = __name__.partition(".")[0]
_CHANGED = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [{kind} {shape}] is at version {now}; expected version {then} instead. Hint: "
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True)."
)


def changed(tensor: torch.Tensor, version: int) -> RuntimeError:
    """Return torch's error of a tensor that was kept at a version and is at another one."""
    return RuntimeError(
        _CHANGED.format(
            kind=tensor.type(), shape=list(tensor.shape), now=tensor._version, then=version
        )
    )


def version_of(tensor: torch.Tensor) -> int:
    """Return how often a tensor was changed in place; 0 of those for which torch does not count."""
    return 0 if tensor.is_inference() else tensor._version


def are_of_others() -> bool:
    """Whether the hooks that torch calls in this thread are not ours."""
    top = _top()
    return top is not None and not str(getattr(top[0], "__module__", "")).startswith(_OURS)


class SavedTensorHooks:
    """A pair of hooks, pushed and popped by each thread for itself. Thread-safe.

    Parameters
    ----------
    keep, need : callable
        As `torch.autograd.graph.saved_tensors_hooks` takes them.
    """

    def __init__(self, keep: Callable[[Any], Any], need: Callable[[Any], Any]) -> None:
        self._keep, self._need = keep, need
        self._thread = threading.local()  # .pushed, .lifted
        self._lock = threading.Lock()
        self.pushed_total = 0
        """Of threads in which they are pushed now."""

    @property
    def pushed(self) -> bool:
        """Whether they are pushed in this thread, or would be but for `torch.func`."""
        return bool(getattr(self._thread, "pushed", False))

    @property
    def in_force(self) -> bool:
        """Whether torch calls them in this thread, and none of the program's in their place."""
        top = _top() if self.pushed else None
        return top is not None and top[0] is self._keep

    def push(self) -> None:
        """Push them in this thread, unless the program has its own or forbids any."""
        if self.pushed or _top() is not None or not _autograd._saved_tensors_hooks_is_enabled():
            return
        _push(self._keep, self._need)
        self._thread.pushed = True
        with self._lock:
            self.pushed_total += 1

    def pop(self) -> None:
        """Take them away in this thread, from below the program's own if need be."""
        if not self.pushed:
            return
        self._thread.pushed = False
        with self._lock:
            self.pushed_total -= 1
        if getattr(self._thread, "lifted", False):
            self._thread.lifted = False
            return
        above = []
        while (top := _top()) is not None and top[0] is not self._keep:
            above.append(top)
            _pop()
        if top is not None:
            _pop()
        for keep, need in reversed(above):
            _push(keep, need)

    def make_way(self) -> Callable[[], None]:
        """Leave while somebody forbids hooks, as `torch.func` does; return what ends that."""
        disable, enable = (
            _autograd._saved_tensors_hooks_disable,
            _autograd._saved_tensors_hooks_enable,
        )

        @functools.wraps(disable)
        def ours_disable(message: str, *options: Any, **named: Any) -> None:
            if not self._lift():
                disable(message, *options, **named)
                return
            try:
                disable(message, *options, **named)
            except BaseException:
                self._put_back()
                raise

        @functools.wraps(enable)
        def ours_enable() -> None:
            enable()
            self._put_back()

        _autograd._saved_tensors_hooks_disable = ours_disable
        _autograd._saved_tensors_hooks_enable = ours_enable

        def end() -> None:
            if _autograd._saved_tensors_hooks_disable is ours_disable:
                _autograd._saved_tensors_hooks_disable = disable
            if _autograd._saved_tensors_hooks_enable is ours_enable:
                _autograd._saved_tensors_hooks_enable = enable

        return end

    def _lift(self) -> bool:
        top = _top()
        if top is None or top[0] is not self._keep:
            return False
        _pop()
        self._thread.lifted = True
        return True

    def _put_back(self) -> None:
        if getattr(self._thread, "lifted", False):
            self._thread.lifted = False
            _push(self._keep, self._need)


def _top() -> tuple[Any, Any] | None:
    # Also while torch.compile traces: they are pushed all the same.
    found: tuple[Any, Any] | None = _autograd._top_saved_tensors_default_hooks(True)  # noqa: FBT003
    return found
