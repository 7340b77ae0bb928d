# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from rmm_uvm.torch.whole_blocks import keep_large_blocks_whole

GIB = 1 << 30
_set, _get = (getattr(torch._C, f"_accelerator_{verb}AllocatorSettings") for verb in ("set", "get"))


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = _get()
    yield
    _set(before)


def test_settings_of_the_program_stay_beside_ours_and_come_back() -> None:
    _set("garbage_collection_threshold:0.5")
    end = keep_large_blocks_whole(8 * GIB)
    assert _get() == "garbage_collection_threshold:0.5,max_split_size_mb:1024"
    end()
    assert _get() == "garbage_collection_threshold:0.5"


def test_size_that_the_program_chose_stays() -> None:
    _set("max_split_size_mb:64")
    end = keep_large_blocks_whole(8 * GIB)
    assert _get() == "max_split_size_mb:64"
    end()
    assert _get() == "max_split_size_mb:64"


def test_settings_that_the_program_makes_meanwhile_stay() -> None:
    end = keep_large_blocks_whole(8 * GIB)
    _set("garbage_collection_threshold:0.5")
    end()
    assert _get() == "garbage_collection_threshold:0.5"


def test_small_budgets_have_the_least_size_that_torch_takes() -> None:
    end = keep_large_blocks_whole(1)
    assert _get() == "max_split_size_mb:21"
    end()


def test_words_that_torch_does_not_know_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = _get()

    def refuses(_settings: str) -> None:
        raise RuntimeError("Unrecognized option")

    with monkeypatch.context() as patched:
        patched.setattr(torch._C, "_accelerator_setAllocatorSettings", refuses)
        keep_large_blocks_whole(8 * GIB)()
    assert _get() == before


def test_torch_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.delattr(torch._C, "_accelerator_setAllocatorSettings")
        keep_large_blocks_whole(8 * GIB)()


def test_torch_that_does_not_tell_its_settings_gets_those_of_the_environment_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.delattr(torch._C, "_accelerator_getAllocatorSettings")
        patched.setenv("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.5")
        end = keep_large_blocks_whole(8 * GIB)
        assert _get() == "garbage_collection_threshold:0.5,max_split_size_mb:1024"
        end()
    assert _get() == "garbage_collection_threshold:0.5"
