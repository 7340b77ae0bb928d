# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest

import rmm_uvm.torch  # some seconds, not to be counted as those of a test

from ...support.fake_torch_cuda import FakeTorchCuda


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorchCuda]:
    """Torch as if it saw a GPU; what it allocated is given back."""
    fake = FakeTorchCuda()
    fake.install(monkeypatch)
    yield fake
    if (memory := rmm_uvm.torch.installed_memory(0)) is not None:
        memory.close()
    fake.deferred.clear()
    for segment in fake.segments.values():
        for address, (size, _) in segment.blocks.items():
            segment.blocks[address] = (size, False)
    fake.empty_cache()
    assert not fake.segments
    assert not fake.mistakes
