# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calling something once a module is there, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["when_imported"]


def when_imported(name: str, then: Callable[[], None]) -> Callable[[], None]:
    """Call `then` now if a module is imported, else right after its import.

    Parameters
    ----------
    name : str
        Full name of the module.
    then : callable
        Called once, in the importing thread.

    Returns
    -------
    callable
        Forgets it, if `then` was not called yet.

    Examples
    --------
    >>> when_imported("sys", lambda: print("there"))()
    there
    """
    if name in sys.modules:
        then()
        return lambda: None
    finder = _Finder(name, then)
    finder.wait()
    return finder.forget


class _Finder(MetaPathFinder):
    """Finds one module as others do, and has its loader call back."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then
        self._forgotten = False

    def wait(self) -> None:
        """Find the module when it is imported next."""
        if not self._forgotten:
            sys.meta_path.insert(0, self)

    def forget(self) -> None:
        """Find nothing any more, also while the module is being imported."""
        self._forgotten = True
        self._leave()

    def _loaded(self) -> None:
        if not self._forgotten:
            self.forget()
            self._then()

    def _leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec as the other finders make it."""
        if fullname != self._name:
            return None
        self._leave()
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.wait()  # whoever asks may only want to know whether the module is there
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._loaded)
        return spec


class _Loader(Loader):
    """Loads as another loader does, then calls back."""

    def __init__(self, loader: Loader, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)  # resources, source and all that one can ask a loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the loader does, which is the module's again, then call back."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)  # if it fails, the import may be tried again
        self._then()
