# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of a pool that the tests of hints and of advice are about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rmm_uvm

MIB = 1 << 20


@pytest.fixture
def block(mr: rmm_uvm.mr.UvmResourceAdaptor) -> Iterator[int]:
    """8 MiB that begin where a block does."""
    address = mr.allocate(8 * MIB)
    assert address % (2 * MIB) == 0
    yield address
    mr.deallocate(address, 8 * MIB)
