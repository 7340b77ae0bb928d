# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What managed embeddings refuse, each in one line."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import rmm
import torch

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, DriverError
from rmm_uvm.mr import SimulatedCudaMemoryResource
from rmm_uvm.torch import ManagedEmbedding, ManagedEmbeddingBag

SMALL: dict[str, Any] = {"driver": "simulated:64MiB"}


@pytest.mark.parametrize("id_", [-1, 8])
@pytest.mark.parametrize("kind", [ManagedEmbedding, ManagedEmbeddingBag])
def test_id_out_of_range_raises_an_index_error_that_says_the_range(kind: Any, id_: int) -> None:
    ours = kind(8, 4, **SMALL)
    with pytest.raises(IndexError, match=f"index {id_} is out of range: .* 8 rows, 0 to 7"):
        ours(torch.tensor([[3, id_]]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"num_embeddings": 0}, "num_embeddings=0: expected a whole number, > 0"),
        ({"embedding_dim": -4}, "embedding_dim=-4: expected"),
        ({"num_embeddings": 2.5}, r"num_embeddings=2.5: expected"),
        ({"dtype": torch.int64}, "dtype=torch.int64: rows are of floating-point numbers"),
        ({"hot_bytes": "many"}, "hot_bytes"),
        ({"hot_bytes": -1}, "hot_bytes"),
        ({"sample_every": 0}, "sample_every=0: expected a number of batches, > 0"),
        ({"place_every": True}, "place_every=True: expected"),
        ({"mr": rmm.mr.CudaMemoryResource, "driver": None}, "is not a managed pool"),
    ],
)
def test_argument_that_cannot_be_used_is_refused(words: dict[str, Any], message: str) -> None:
    if "mr" in words:
        words = {**words, "mr": SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))}
    given = {"num_embeddings": 8, "embedding_dim": 4, **SMALL, **words}
    with pytest.raises(ConfigurationError, match=message):
        ManagedEmbedding(**given)


@pytest.mark.parametrize("kind", [ManagedEmbedding, ManagedEmbeddingBag])
@pytest.mark.parametrize(
    ("ids", "what"),
    [
        (torch.tensor([[1.0]]), "torch.float32"),
        (torch.tensor([[True]]), "torch.bool"),
        (torch.tensor([[1]], dtype=torch.uint8), "torch.uint8"),
        ([[1]], "list"),
        (None, "NoneType"),
    ],
)
def test_what_is_no_tensor_of_ids_is_refused(kind: Any, ids: Any, what: str) -> None:
    with pytest.raises(DataError, match=f"ids are of {what}: expected a tensor of int32 or int64"):
        kind(8, 4, **SMALL)(ids)


def test_integers_of_numpy_are_numbers() -> None:
    ours = ManagedEmbedding(np.int64(8), np.int32(4), sample_every=np.int64(2), **SMALL)
    assert ours.weight.shape == (8, 4)
    assert ours.sample_every == 2
    assert type(ours.sample_every) is int


def test_device_of_a_block_that_has_no_memory_is_refused() -> None:
    with (
        torch.device("meta"),
        pytest.raises(ConfigurationError, match="device='meta': the pool is of simulated"),
    ):
        ManagedEmbedding(8, 4, **SMALL)


@pytest.mark.parametrize("wrong", [3, [torch.optim.SGD], "x"])
def test_what_is_no_optimiser_is_refused(wrong: Any) -> None:
    ours = ManagedEmbedding(8, 4, **SMALL)
    for call in (ours.reorder, ours.follow):
        with pytest.raises(DataError, match="is not an optimiser of torch"):
            call(wrong)


def test_driver_and_pool_together_are_refused() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB")
    with pytest.raises(ConfigurationError, match="give one of the two"):
        ManagedEmbedding(8, 4, mr=mr, **SMALL)


def test_table_larger_than_its_pool_is_out_of_memory() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="8MiB"
    )
    ManagedEmbedding(1000, 64, mr=mr)
    with pytest.raises(MemoryError):
        ManagedEmbedding(100_000, 64, mr=mr)


def test_no_gpu_and_no_simulated_device_is_a_driver_error() -> None:
    try:
        rmm_uvm.cuda_driver(0)
    except DriverError:
        with pytest.raises(DriverError):
            ManagedEmbedding(8, 4)


def test_package_without_torch_says_so_in_one_line() -> None:
    program = "import sys; sys.modules['torch'] = None; import rmm_uvm.torch"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{AvailabilityError.__module__}.AvailabilityError: rmm_uvm.torch needs")
    assert "pip install 'rmm-uvm[torch]'" in last
