# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Names in docstrings that the API reference sets as code: only those that are there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import rmm_uvm.torch

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def names() -> ModuleType:
    path = REPOSITORY / "docs" / "api" / "plain_names.py"
    spec = importlib.util.spec_from_file_location("plain_names", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parameters_are_told_by_lines_of_their_sections(names: ModuleType) -> None:
    told = names.told_names(
        """Do `e`.

        Parameters
        ----------
        a, b : int
            As `c`.
        **d
            More.

        Returns
        -------
        f : int

        Raises
        ------
        ValueError
            If not.
        """
    )
    assert told == {"a", "b", "d", "f"}
    assert names.told_names("") == set()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("rmm_uvm.pool.build.managed_pool", "device_budget"),
        ("rmm_uvm.torch.embeddings.modules.ManagedEmbeddingBag", "dtype"),  # of its signature
        ("rmm_uvm.residency.budget.Budget.ahead", "budget_bytes"),  # a field has its class's
        ("rmm_uvm._lib.mr.ManagedMemoryResource.deallocate", "nbytes"),  # compiled
    ],
)
def test_parameter_of_an_object_or_of_its_class_is_one(
    names: ModuleType, where: str, name: str
) -> None:
    assert name in names.parameters(where)
    assert f"{name}_gone" not in names.parameters(where)


def test_parameter_of_another_object_is_none(names: ModuleType) -> None:
    assert "nbytes" not in names.parameters("rmm_uvm.pool.build.managed_pool")
    assert names.parameters("rmm_uvm.pool.build") == set()


@pytest.mark.parametrize("name", ["MemoryError", "torch.cuda.empty_cache", "rmm.DeviceBuffer"])
def test_name_of_another_package_is_elsewhere_while_that_has_it(
    names: ModuleType, name: str
) -> None:
    assert names.is_elsewhere(name)
    assert not names.is_elsewhere(f"{name}Gone")


def test_name_of_a_package_that_is_not_named_is_not_elsewhere(names: ModuleType) -> None:
    assert not names.is_elsewhere("json.loads")


@pytest.mark.parametrize("name", ["input", "format", "filter", "None"])
def test_builtin_that_is_no_error_is_not_elsewhere(names: ModuleType, name: str) -> None:
    assert not names.is_elsewhere(name)


@pytest.mark.parametrize(
    "name",
    [
        "rmm_uvm.pool.sizing",  # a module
        # A field of a class with its module.
        "rmm_uvm.machine.device_info.DeviceInfo.direct_migration",
        "Budget.neighbors",  # a field of a class of any module
        "LevelSource",  # a compiled class
        "reorder",  # a member of the class where it stands
    ],
)
def test_name_of_ours_without_a_page_is_internal_while_it_is_there(
    names: ModuleType, name: str
) -> None:
    where = f"{rmm_uvm.torch.ManagedEmbedding.__module__}.ManagedEmbedding"
    assert names.is_internal(name, where)
    assert not names.is_internal(f"{name}_gone", where)


def test_member_is_internal_only_where_its_class_stands(names: ModuleType) -> None:
    assert not names.is_internal("reorder", "rmm_uvm.pool.build.managed_pool")
    assert not names.is_internal("managed_pool", "rmm_uvm.errors.UvmError")


@pytest.mark.parametrize(
    "name",
    [
        "json.loads",
        "os.path.join",
        "json.decoder.JSONDecoder",
        "Any",  # which modules of ours import
        "Path",
        "Path.name",
        "rmm_uvm.torch.memory.Any",
        "2x",  # no name, as Python has them
        "rmm_uvm.2x",
    ],
)
def test_name_of_others_is_not_internal_although_it_can_be_imported(
    names: ModuleType, name: str
) -> None:
    assert not names.is_internal(name, "rmm_uvm.torch.memory.TorchMemory.close")
    assert not names.is_internal(name, "")


def test_member_of_a_class_of_others_is_not_internal_where_that_stands(names: ModuleType) -> None:
    assert not names.is_internal("join", "os.path.split")
    assert names.is_internal("install", "rmm_uvm.torch.memory.TorchMemory")
