# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Values of modules: of the very module, and as long as it lives."""

from __future__ import annotations

import gc
import weakref

import torch

from rmm_uvm.torch.by_module import ByModule


class Same(torch.nn.Module):
    """Says that it is any other one."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_each_module_has_its_own_whatever_it_says_it_is_equal_to() -> None:
    values: ByModule[str] = ByModule()
    first, second = Same(), Same()
    values.put(first, "first")
    assert values.get(second) is None
    values.put(second, "second")
    assert (values.get(first), values.get(second)) == ("first", "second")


def test_what_is_put_later_takes_the_place() -> None:
    values: ByModule[int] = ByModule()
    module = torch.nn.Identity()
    for number in (1, 2):
        values.put(module, number)
    assert (values.get(module), len(values)) == (2, 1)
    gc.collect()  # the reference of the first one may go
    assert values.get(module) == 2


def test_module_that_is_gone_leaves_nothing_also_within_a_cycle() -> None:
    values: ByModule[list[int]] = ByModule()
    module = torch.nn.Identity()
    module.itself = [module]
    values.put(module, [1])
    gone = weakref.ref(module)
    del module
    assert len(values) == 1
    gc.collect()
    assert gone() is None
    assert len(values) == 0


def test_values_may_go_before_the_modules() -> None:
    module = torch.nn.Identity()
    values: ByModule[int] = ByModule()
    values.put(module, 1)
    del values
    del module
    gc.collect()


def test_another_module_with_the_id_of_one_that_is_gone_has_nothing_of_it() -> None:
    values: ByModule[int] = ByModule()
    other, module = torch.nn.Identity(), torch.nn.Identity()
    values.put(module, 1)
    values._entries[id(other)] = values._entries[id(module)]  # as if it was told of late
    assert values.get(other) is None
    values.put(other, 2)
    del module
    assert values.get(other) == 2
