# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A place where a library is seen: attached when its modules are imported, and undone."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping

from rmm_uvm.integrations.seen.announcer import Announcer
from rmm_uvm.integrations.when_imported import when_imported
from rmm_uvm.integrations.wiring import Wiring

__all__ = ["Seam"]


class Seam:
    """Calls of a library that are seen from the import of its modules on, until `detach`.

    Parameters
    ----------
    announcer : Announcer
        Stands in for the calls.
    attach : mapping of str to callable
        By a module's name: what is done once it is imported. What it raises is noted, so that the
        import does not fail with it.

    Attributes
    ----------
    announcer : Announcer
        Its `failures` are calls that could not be looked at.
    """

    def __init__(self, announcer: Announcer, attach: Mapping[str, Callable[[], None]]) -> None:
        self.announcer = announcer
        self._attach_by_module = dict(attach)
        self._forget: list[Callable[[], None]] = []

    def attach_when_imported(self) -> None:
        """Announce from now on, or from the import of each module on."""
        for module, attach in self._attach_by_module.items():
            self._forget.append(when_imported(module, self._carefully(module, attach)))

    def detach(self) -> None:
        """Announce nothing any more."""
        for forget in self._forget:
            forget()
        self.announcer.detach()

    def wiring(self, name: str, package: str | None = None) -> Wiring:
        """Attach, unless a package is named that is not installed; return what tells of it."""
        if package is not None and importlib.util.find_spec(package) is None:
            reason = f"{self.announcer.library} is not installed"
            return Wiring(name, active=False, reason=reason)
        self.attach_when_imported()
        reason = "announced to the budget's manager"
        return Wiring(name, active=True, reason=reason, undo=self.detach)

    def _carefully(self, module: str, attach: Callable[[], None]) -> Callable[[], None]:
        def attached() -> None:
            try:
                attach()
            except Exception as error:  # else the import would fail with ours
                self.announcer.fail(f"all calls of {module}", error)

        return attached
