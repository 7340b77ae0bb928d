# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What two ends say of themselves, and what follows from it."""

from __future__ import annotations

import msgpack
import pytest
import rmm

import rmm_uvm
from rmm_uvm.dask.comm.handshake import STOCK_PEER, Peer, introduce, meet, receives, way_of
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.comm.wire import WIRE_VERSION
from rmm_uvm.errors import DataError
from rmm_uvm.mr import SimulatedCudaMemoryResource


def _install(ipc_pool_size: str | None = "16MiB") -> None:
    rmm_uvm.reinitialize(
        "32MiB",
        driver=rmm_uvm.simulated_device("256MiB"),
        ipc_pool_size=ipc_pool_size,
        libraries=(),
        monitor=False,
    )


def test_introduction_of_a_worker_tells_version_and_chunks() -> None:
    _install()
    said = introduce()
    assert said == {
        "wire": WIRE_VERSION,
        "version": rmm_uvm.__version__,
        "chunk_bytes": 7 << 19,
        "receives": "staged",
    }
    assert msgpack.loads(msgpack.dumps(said)) == said  # as it travels


def test_introduction_of_a_worker_without_a_pool_tells_no_chunks() -> None:
    _install(None)
    assert introduce()["chunk_bytes"] is None
    assert receives() == "staged"


def test_introduction_of_a_process_without_a_gpu_receives_on_the_host() -> None:
    assert introduce()["receives"] == "host"


def test_process_whose_frames_lie_in_cudamalloc_memory_receives_directly() -> None:
    _install()
    plain = SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    rmm.mr.set_per_device_resource(0, rmm.mr.PoolMemoryResource(plain, 1 << 20, 1 << 20))
    assert receives() == "direct"


class CudaAsyncMemoryResource:
    """As RMM's, which cannot be made without a GPU."""


class CudaMemoryResource:
    """As RMM's."""


class Adaptor:
    def __init__(self, upstream_mr: object) -> None:
        self.upstream_mr = upstream_mr


@pytest.mark.parametrize(
    ("source", "way"), [(CudaMemoryResource(), "direct"), (CudaAsyncMemoryResource(), "staged")]
)
def test_way_of_frames_follows_the_source_of_the_memory(source: object, way: str) -> None:
    assert way_of(source) == way_of(Adaptor(Adaptor(source))) == way


def test_peer_that_says_nothing_is_a_stock_peer() -> None:
    assert meet({}, {"compression": None}) is STOCK_PEER


def test_peer_of_the_same_version_is_ours() -> None:
    _install()
    said = introduce()
    peer = meet({"rmm-uvm": said}, {"rmm-uvm": said})
    assert peer == Peer(ours=True, receives="staged", chunk_bytes=7 << 19)


@pytest.mark.parametrize("wire", [0, 1, WIRE_VERSION + 1, None, "1"])
def test_peer_of_another_version_is_refused_in_one_line_that_names_both(wire: object) -> None:
    said = {**introduce(), "wire": wire, "version": "9.9"}
    with pytest.raises(ValueError, match="install the same rmm-uvm") as error:
        meet({"rmm-uvm": introduce()}, {"rmm-uvm": said})
    text = str(error.value)
    assert rmm_uvm.__version__ in text
    assert "rmm-uvm 9.9 speaks" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "said",
    [
        *(0, 1, -1, 1.5, "x", b"x", [], [1], True, {}, {"wire": [1]}, {"wire": True}),
        {"wire": WIRE_VERSION},
        {"wire": WIRE_VERSION, "receives": "host", "chunk_bytes": -256},
        {"wire": WIRE_VERSION, "receives": "host", "chunk_bytes": 0},
        {"wire": WIRE_VERSION, "receives": "host", "chunk_bytes": 100},
        {"wire": WIRE_VERSION, "receives": "host", "chunk_bytes": 1 << 63},
        {"wire": WIRE_VERSION, "receives": "host", "chunk_bytes": True},
        {"wire": WIRE_VERSION, "receives": "staged", "chunk_bytes": "256"},
        {"wire": WIRE_VERSION, "receives": "elsewhere"},
        {"wire": WIRE_VERSION, "receives": [], "chunk_bytes": 256},
        {"wire": WIRE_VERSION + 1, "version": "9\x1b[2J\n" * 1000},
        {"wire": "9" * 100_000, "version": "9.9"},
    ],
)
def test_peer_that_says_nonsense_is_refused_in_one_line_and_counted(said: object) -> None:
    before = totals().refused_messages
    with pytest.raises(DataError) as refused:
        meet({"rmm-uvm": introduce()}, {"rmm-uvm": said})
    text = str(refused.value)
    assert text.isprintable()
    assert len(text) < 300
    assert totals().refused_messages == before + 1


def test_peer_without_chunks_is_ours() -> None:
    said = {**introduce(), "receives": "host", "chunk_bytes": None}
    assert meet({"rmm-uvm": introduce()}, {"rmm-uvm": said}) == Peer(True, "host", None)
