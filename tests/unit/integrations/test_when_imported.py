# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for a module's import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from rmm_uvm.integrations.when_imported import when_imported


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "awaited").mkdir()
    (tmp_path / "awaited" / "__init__.py").write_text("")
    (tmp_path / "awaited" / "inner.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("awaited", "awaited.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "awaited.inner"


def test_module_that_comes_later_is_complete_when_called(module: str) -> None:
    seen = []
    when_imported(module, lambda: seen.append(sys.modules[module].value))
    assert seen == []
    imported = importlib.import_module(module)
    assert seen == [7]
    assert imported.__spec__ is not None
    assert type(imported.__spec__.loader).__module__ == "_frozen_importlib_external"
    importlib.reload(imported)
    assert seen == [7]


def test_module_that_is_only_looked_for_is_awaited_still(module: str) -> None:
    seen: list[int] = []
    finders = list(sys.meta_path)
    when_imported(module, lambda: seen.append(1))
    for _ in range(2):  # as libraries do for what is optional
        assert importlib.util.find_spec(module) is not None
    assert seen == []
    importlib.import_module(module)
    assert seen == [1]
    assert sys.meta_path == finders


def test_module_that_is_there_calls_at_once(module: str) -> None:
    importlib.import_module(module)
    seen: list[int] = []
    when_imported(module, lambda: seen.append(1))
    assert seen == [1]


def test_forgotten_call_never_comes(module: str) -> None:
    seen: list[int] = []
    finders = list(sys.meta_path)
    forget = when_imported(module, lambda: seen.append(1))
    forget()
    forget()
    assert sys.meta_path == finders
    importlib.import_module(module)
    assert seen == []


def test_module_that_does_not_exist_is_not_found_as_ever(module: str) -> None:
    seen: list[int] = []
    forget = when_imported("awaited.nothing", lambda: seen.append(1))
    importlib.import_module(module)
    with pytest.raises(ModuleNotFoundError, match=r"awaited\.nothing"):
        importlib.import_module("awaited.nothing")
    forget()
    assert seen == []


def test_import_that_fails_is_awaited_again(module: str, tmp_path: Path) -> None:
    seen: list[int] = []
    source = tmp_path / "awaited" / "inner.py"
    source.write_text("raise OSError('not yet')\n")
    when_imported(module, lambda: seen.append(1))
    with pytest.raises(OSError, match="not yet"):
        importlib.import_module(module)
    assert seen == []
    source.write_text("value = 7  # now it works\n")
    importlib.invalidate_caches()
    importlib.import_module(module)
    assert seen == [1]


def test_forgotten_while_the_import_fails_is_not_awaited_again(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    source = tmp_path / "awaited" / "inner.py"
    source.write_text("import sys\nsys.forget_inner()\nraise OSError('not yet')\n")
    forget = when_imported(module, lambda: seen.append(1))
    monkeypatch.setattr(sys, "forget_inner", forget, raising=False)
    with pytest.raises(OSError, match="not yet"):
        importlib.import_module(module)
    source.write_text("value = 7  # now it works\n")
    importlib.invalidate_caches()
    importlib.import_module(module)
    assert seen == []
