# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which names in docstrings are no links: an extension of Sphinx, for conf.py.

In a NumPy docstring `name` is a parameter, a name of another package, or one of ours, with a page
or without. What has no page is set as code once it is certain that it is there; of all others
Sphinx warns, and of those that may be several.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import itertools
import pkgutil
import re
import sys
from typing import Any

__all__ = ["is_elsewhere", "is_internal", "parameters", "setup", "told_names"]

_OURS = "rmm_uvm"
_ELSEWHERE = {"rmm", "time", "torch"}  # a link would need their inventories, from a network
_SECTIONS = {"Parameters", "Attributes", "Returns"}
_NAMES = re.compile(r"[*\w]+(, [*\w]+)*(?= : |$)")


def told_names(docstring: str) -> set[str]:
    """Return the names of parameters and attributes that a docstring has a line for."""
    found: set[str] = set()
    section = ""
    for line, below in itertools.pairwise([*inspect.cleandoc(docstring).splitlines(), ""]):
        if below and set(below) == {"-"}:
            section = line
        elif section in _SECTIONS and (names := _NAMES.match(line)):
            found |= set(re.findall(r"\w+", names[0]))
    return found


def parameters(name: str) -> set[str]:
    """Return the parameters and attributes of an object and of the class that it is in.

    `name` is that of an object with its module, or of a field, which is no object.
    """
    found: set[str] = set()
    while name:
        try:
            one = pkgutil.resolve_name(name)
        except AttributeError:
            one = None
        if inspect.ismodule(one):
            break
        found |= told_names(inspect.getdoc(one) or "")
        if callable(one):
            with contextlib.suppress(TypeError, ValueError):  # compiled, without one
                found |= set(inspect.signature(one).parameters)
        name = name.rpartition(".")[0]
    return found


def is_elsewhere(name: str) -> bool:
    """Return whether another package has a name, or Python an error of that name.

    Other builtins are not told from parameters that are gone: `input`, `format`, `filter`.
    """
    one = getattr(builtins, name, None)
    is_error = inspect.isclass(one) and issubclass(one, BaseException)
    return is_error or (name.partition(".")[0] in _ELSEWHERE and _resolved(name) is not None)


def is_internal(name: str, where: str) -> bool:
    """Return whether ours is a name that is in the docstring of the object `where`.

    With its module, as a member of the class there, or as a class or constant of any module; and so
    is a field of a class.
    """
    if _is_ours(name):
        return True
    head, _, last = name.rpartition(".")
    owners = [where, where.rpartition(".")[0], head]
    if re.match("[A-Z]", name):
        owners += [f"{module}.{head}".rstrip(".") for module in sys.modules]
    owners = [one for one in owners if one.partition(".")[0] == _OURS]
    return any(_is_ours(f"{one}.{last}") or last in _fields(one) for one in owners)


def _fields(name: str) -> set[str]:
    return parameters(name) if _is_ours(name) and inspect.isclass(_resolved(name)) else set()


def _is_ours(name: str) -> bool:
    """Return whether a name of our package is there, by way of nothing that others made."""
    owner, dot, _ = name.rpartition(".")
    if not dot:
        return name == _OURS
    if not _is_ours(owner):
        return False
    one = _resolved(name)
    module = one.__name__ if inspect.ismodule(one) else getattr(one, "__module__", None) or _OURS
    return one is not None and module.partition(".")[0] == _OURS


def _resolved(name: str) -> Any:
    """Return what has a name; None if nothing has, or if it can be that of nothing (`2x`)."""
    try:
        return pkgutil.resolve_name(name)
    except (AttributeError, ImportError, ValueError):
        return None


def _object_of(node: Any) -> str:
    """Return the name of the object in whose docstring a node is; empty if it is in none."""
    while node is not None and not node.source:
        node = node.parent
    return "" if node is None else node.source.partition("docstring of ")[2]


def _settle(app: Any, doctree: Any) -> None:
    """Before anything is looked up: another class may have what is a parameter here."""
    for node in list(doctree.findall()):
        if node.tagname != "pending_xref" or node["reftype"] != "any":
            continue
        # A page has the name of its module.
        if f"docs/api/{node['reftarget']}" in app.env.found_docs:
            node["refdomain"], node["reftype"] = "py", "mod"
        elif node["reftarget"] in parameters(_object_of(node)):
            node.replace_self(node.children)


def _settle_missing(_app: Any, _env: Any, node: Any, content: Any) -> Any:
    name = node["reftarget"]
    if node["reftype"] != "any" or not re.fullmatch(r"\w+(\.\w+)*", name):
        return None
    found = is_elsewhere(name) or is_internal(name, _object_of(node))
    return content if found else None


def setup(app: Any) -> dict[str, bool]:
    """Have names settled, and those that Sphinx does not find."""
    app.connect("doctree-read", _settle)
    app.connect("missing-reference", _settle_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
