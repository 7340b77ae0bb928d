# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How a pool is divided, and what Dask's configuration may say."""

from __future__ import annotations

from typing import Any

import dask
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.dask.comm.settings import CommSettings, configured, share_pool
from rmm_uvm.errors import ConfigurationError

MIB = 1 << 20


@given(st.integers(16 * 1024, 64 << 30))
def test_share_of_any_pool_leaves_an_eighth_and_has_two_chunks_each_way(pool_bytes: int) -> None:
    shares = share_pool(pool_bytes)
    assert shares.chunks_each_way >= 2
    assert 2 * shares.chunks_each_way * shares.chunk_bytes <= pool_bytes * 7 // 8
    assert shares.chunk_bytes % ALIGNMENT_BYTES == 0
    assert shares.chunk_bytes <= 64 * MIB


@pytest.mark.parametrize(
    ("pool_mib", "chunk_mib", "each_way"),
    [(8, 1.75, 2), (64, 14, 2), (256, 56, 2), (512, 64, 3), (4096, 64, 28)],
)
def test_share_of_usual_pools_is_two_chunks_each_way_within_bounds(
    pool_mib: int, chunk_mib: float, each_way: int
) -> None:
    assert share_pool(pool_mib * MIB) == (chunk_mib * MIB, each_way)


def test_share_with_a_chunk_size_rounds_it_up_to_the_alignment() -> None:
    assert share_pool(64 * MIB, 1000).chunk_bytes == 1024


@pytest.mark.parametrize("chunk_bytes", [15 * MIB, 64 * MIB])
def test_share_with_too_large_a_chunk_is_refused(chunk_bytes: int) -> None:
    with pytest.raises(ConfigurationError, match=r"chunk-size is .* at most 14\.00 MiB"):
        share_pool(64 * MIB, chunk_bytes)


def test_share_of_a_tiny_pool_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="IPC pool of 512 B"):
        share_pool(512)


def test_configuration_without_entries_has_the_defaults() -> None:
    assert configured() == CommSettings(None, 10.0)


@pytest.mark.parametrize("key", ["chunk-size", "chunk_size"])
def test_configuration_is_read_with_dashes_and_underscores(key: str) -> None:
    with dask.config.set({"rmm-uvm.comm": {key: "8MiB", "wait-seconds": 2}}):
        assert configured() == CommSettings(8 * MIB, 2.0)


@pytest.mark.parametrize("wait", [-1, "soon", True, float("nan")])
def test_configuration_with_a_wait_that_is_none_is_refused(wait: Any) -> None:
    with (
        dask.config.set({"rmm-uvm.comm.wait-seconds": wait}),
        pytest.raises(ConfigurationError, match="wait-seconds"),
    ):
        configured()


def test_configuration_with_a_chunk_size_that_is_none_is_refused() -> None:
    with (
        dask.config.set({"rmm-uvm.comm.chunk-size": "large"}),
        pytest.raises(ConfigurationError, match="chunk-size"),
    ):
        configured()
