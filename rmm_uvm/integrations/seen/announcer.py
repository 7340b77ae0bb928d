# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a library in whose place others are put, which announce what is about to be used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import MonitorWarning
from rmm_uvm.support.user_line import warn_user

__all__ = ["Announcer", "Parts", "Use", "stands_in"]

Use = tuple[int, int, int]
"""Address, bytes, and the first byte of the allocation that they are of."""


class Parts(NamedTuple):
    """A call in parts: the arguments of each, and what makes one result of theirs."""

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    join: Callable[[list[Any]], Any]


class Announcer:
    """Tells managers what a call is about to use, just before it; undone by `detach`.

    Parameters
    ----------
    library : str
        Whose calls they are, for messages.
    residencies : sequence of ManagedResidency
        What is told. Memory of others is passed over.

    Attributes
    ----------
    library : str
        As given.
    failures : dict of str to str
        Calls that could not be looked at, and why: each went on without being announced.
    refused : list of str
        Calls in whose place no other can be put.

    Notes
    -----
    While nothing can be away from the device a call costs some 0.1 us more. Several announcers may
    be at the same calls; they end in any order. Thread-safe but for `replace` and `detach`.
    """

    def __init__(self, library: str, residencies: Sequence[ManagedResidency]) -> None:
        self.library = library
        self._residencies = tuple(residencies)
        self._on = True
        self._replaced: list[tuple[Any, str, Any, Any]] = []  # of what, name, theirs, ours
        self.failures: dict[str, str] = {}
        self.refused: list[str] = []

    def before(
        self,
        name: str,
        theirs: Callable[..., Any],
        uses_of: Callable[[tuple[Any, ...], dict[str, Any]], tuple[list[Use], int]],
        *,
        only_read: bool = False,
        divide: Callable[[tuple[Any, ...], dict[str, Any]], Parts | None] | None = None,
    ) -> Callable[..., Any]:
        """Return a call that announces what `uses_of` finds in its arguments, then is `theirs`.

        Parameters
        ----------
        name : str
            For messages.
        theirs : callable
            Called in any case, with the same arguments.
        uses_of : callable
            Takes positional and named arguments; returns what they use, and the stream's handle.
        only_read : bool
            The call writes nothing of it.
        divide : callable, optional
            Takes positional and named arguments; returns the parts in which the call is made if all
            of it does not fit a budget, or None.
        """
        residencies = self._residencies
        look = functools.partial(self._look, name, uses_of, only_read, divide)

        @functools.wraps(theirs)
        def announced(*args: Any, **kwargs: Any) -> Any:
            for residency in residencies:  # a loop: it is run some thousand times a second
                if not residency.all_present:
                    parts = look(args, kwargs)
                    if parts is not None:
                        return self._in_parts(theirs, look, parts)
                    break
            return theirs(*args, **kwargs)

        announced.without_telling = theirs  # type: ignore[attr-defined] # see `interface_of`
        return announced

    def after(
        self, name: str, theirs: Callable[..., Any], made_of: Callable[[Any], list[Use]]
    ) -> Callable[..., Any]:
        """Return a call that is `theirs`, and then tells what is only read from now on.

        Parameters
        ----------
        name : str
            For messages.
        theirs : callable
            Called in any case, with the same arguments. It has written what it returns, or has
            issued the work that does.
        made_of : callable
            Takes what `theirs` returned; returns the memory that it is made of.
        """

        @functools.wraps(theirs)
        def noted(*args: Any, **kwargs: Any) -> Any:
            result = theirs(*args, **kwargs)
            try:
                if self._on and not all(each.all_present for each in self._residencies):
                    made = made_of(result)
                    for residency in self._residencies:
                        residency.note_made(made)
            except Exception as error:  # the result is as it is
                self.fail(name, error)
            return result

        noted.without_telling = theirs  # type: ignore[attr-defined] # see `interface_of`
        return noted

    def replace(self, thing: Any, name: str, ours: Any, label: str) -> bool:
        """Put `ours` in the place of an attribute, of a module or a class; False if refused."""
        theirs = thing.__dict__[name] if name in thing.__dict__ else getattr(thing, name)
        added = name not in thing.__dict__
        try:
            setattr(thing, name, ours)
        except (TypeError, AttributeError):  # a type that nobody can change
            self.refused.append(label)
            return False
        self._replaced.append((thing, name, None if added else theirs, ours))
        return True

    def detach(self) -> None:
        """Announce nothing any more; what others have put over our calls since stays."""
        self._on = False
        while self._replaced:
            thing, name, theirs, ours = self._replaced.pop()
            if thing.__dict__.get(name) is not ours:
                continue
            if theirs is None:
                delattr(thing, name)
            else:
                setattr(thing, name, theirs)

    def _look(
        self,
        name: str,
        uses_of: Callable[[tuple[Any, ...], dict[str, Any]], tuple[list[Use], int]],
        only_read: bool,  # noqa: FBT001 - a partial has it
        divide: Callable[[tuple[Any, ...], dict[str, Any]], Parts | None] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Parts | None:
        """Announce what a call uses, or return the parts in which it is made."""
        if not self._on:
            return None
        try:
            uses, stream = uses_of(args, kwargs)
            if divide is not None and not self._fits(uses):
                parts = divide(args, kwargs)
                if parts is not None:
                    return parts
            self.tell(uses, stream, only_read=only_read)
        except Exception as error:  # the call goes on without: it has done nothing wrong
            self.fail(name, error)
        return None

    def _fits(self, uses: Iterable[Use]) -> bool:
        """Whether a budget holds what a call uses, and as much again that it makes."""
        used_bytes = sum(nbytes for _, nbytes, _ in uses)
        return all(
            2 * used_bytes <= (each.budget_bytes or 0)
            for each in self._residencies
            if each.budget is not None and each.budget.fetch
        )

    @staticmethod
    def _in_parts(
        theirs: Callable[..., Any], look: Callable[..., Parts | None], parts: Parts
    ) -> Any:
        results = []
        for args, kwargs in parts.calls:
            look(args, kwargs)
            results.append(theirs(*args, **kwargs))
        return parts.join(results)

    def tell(self, uses: Iterable[Use], stream: int, *, only_read: bool = False) -> None:
        """Announce uses."""
        if uses:
            for residency in self._residencies:
                residency.touch_all(uses, stream, only_read)

    def fail(self, name: str, error: Exception) -> None:
        """Take note that a call could not be looked at; warns of the first."""
        first = not self.failures
        self.failures[name] = f"{type(error).__name__}: {error}"
        if first:
            warn_user(
                f"what {self.library} uses in {name} cannot be seen ({self.failures[name]}), and "
                "comes by page faults: announce it with rmm_uvm.touch",
                MonitorWarning,
            )


def _codes_that_stand_in() -> set[CodeType]:
    one = Announcer("", ())
    return {one.before("", len, lambda *_: ([], 0)).__code__, one.after("", len, list).__code__}


_stand_ins = _codes_that_stand_in()


def stands_in(code: CodeType) -> bool:
    """Whether code is that of a call which `Announcer.before` or `after` returned."""
    return code in _stand_ins
