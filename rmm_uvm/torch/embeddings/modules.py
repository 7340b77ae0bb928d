# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Embeddings larger than the GPU: drop-ins for those of torch, with rows in managed memory."""

from __future__ import annotations

import rmm
import torch
import torch.nn.functional as functional

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.torch.embeddings.managed_module import ManagedModule, table_for

__all__ = ["ManagedEmbedding", "ManagedEmbeddingBag"]


class ManagedEmbedding(ManagedModule, torch.nn.Embedding):
    """`torch.nn.Embedding` whose rows are in managed memory, and may be larger than the GPU.

    Lookups are counted by blocks of 2 MiB. The hottest blocks stay on the device, as far as the
    budget or free memory allows; the others are used where they are, through a mapping, and do not
    migrate. Hot ids of a hashed table are in all blocks alike: `reorder` puts them together.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Shape of the table, both > 0.
    padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, _freeze, device, dtype
        As of `torch.nn.Embedding`. `device` can only be the pool's. Without ``sparse=True`` a
        gradient is as large as the table, and is not managed.
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool; by default the installed one, and without one a pool for this table alone.
    driver : UvmDriver or str, optional
        Of that pool; as of `rmm_uvm.managed_pool`. On a simulated device rows are in host memory of
        torch, and the device is told and shown what a GPU would be.
    hot_bytes : int or str, optional
        Most of the table on the device, bytes or such as "2GiB"; by default 15/16 of the budget, or
        3/4 of free memory without one, shared by the tables of the pool by their sizes.
    sample_every, place_every : int
        Of so many batches one is counted; after so many batches the hot blocks are chosen anew.
    count_ids : bool
        Count ids as well, 4 bytes each on the device: what `reorder` learns from.

    Raises
    ------
    ConfigurationError
        If a size, `device`, `dtype` or `mr` cannot be used.
    AvailabilityError
        If the pool is a GPU's and torch sees none.
    DriverError
        If there is no GPU, and no simulated device is named.
    MemoryError
        If the pool cannot hold the table.

    See Also
    --------
    torch.nn.Embedding : the same numbers, keys of ``state_dict`` and arguments.

    Notes
    -----
    What an optimiser keeps for each row is not managed by this: plain SGD keeps nothing. Lookups
    from several threads are safe; `reorder`, loading and ``to`` are not, beside them.

    Examples
    --------
    >>> import torch
    >>> from rmm_uvm.torch import ManagedEmbedding
    >>> table = ManagedEmbedding(100_000, 64, sparse=True, driver="simulated:16MiB")
    >>> table(torch.tensor([3, 5])).shape
    torch.Size([2, 64])
    >>> table.hit_statistics().lookups
    2
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,  # noqa: FBT001, FBT002 - torch's order
        sparse: bool = False,  # noqa: FBT001, FBT002
        _weight: torch.Tensor | None = None,
        _freeze: bool = False,  # noqa: FBT001, FBT002
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        mr: rmm.mr.DeviceMemoryResource | None = None,
        driver: UvmDriver | str | None = None,
        hot_bytes: int | str | None = None,
        sample_every: int = 8,
        place_every: int = 64,
        count_ids: bool = True,
    ) -> None:
        table = table_for(
            num_embeddings,
            embedding_dim,
            device=device,
            dtype=dtype if _weight is None else _weight.dtype,
            mr=mr,
            driver=driver,
            hot_bytes=hot_bytes,
            sample_every=sample_every,
            place_every=place_every,
            count_ids=count_ids,
        )
        torch.nn.Embedding.__init__(
            self,
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=table.tensor,
            _freeze=_freeze,
        )
        self._adopt(table, _weight)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the rows of ids, as `torch.nn.Embedding` does.

        Raises
        ------
        IndexError
            If an id on the host is none of the table's; on a GPU the kernel fails, as torch's does.
        DataError
            If the weight was replaced by another tensor.
        """
        return functional.embedding(
            self._rows(input),
            self.weight,
            self._padding_row,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class ManagedEmbeddingBag(ManagedModule, torch.nn.EmbeddingBag):
    """`torch.nn.EmbeddingBag` whose rows are in managed memory, and may be larger than the GPU.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Shape of the table, both > 0.
    max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset, padding_idx
        As of `torch.nn.EmbeddingBag`, and so are `device` and `dtype`; `device` can only be the
        pool's.
    mr, driver, hot_bytes, sample_every, place_every, count_ids
        As of `ManagedEmbedding`, and so is what is raised.

    Examples
    --------
    >>> import torch
    >>> from rmm_uvm.torch import ManagedEmbeddingBag
    >>> bags = ManagedEmbeddingBag(100_000, 64, mode="sum", driver="simulated:16MiB")
    >>> bags(torch.tensor([[3, 5, 7], [1, 1, 2]])).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,  # noqa: FBT001, FBT002 - torch's order
        mode: str = "mean",
        sparse: bool = False,  # noqa: FBT001, FBT002
        _weight: torch.Tensor | None = None,
        include_last_offset: bool = False,  # noqa: FBT001, FBT002
        padding_idx: int | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        mr: rmm.mr.DeviceMemoryResource | None = None,
        driver: UvmDriver | str | None = None,
        hot_bytes: int | str | None = None,
        sample_every: int = 8,
        place_every: int = 64,
        count_ids: bool = True,
    ) -> None:
        table = table_for(
            num_embeddings,
            embedding_dim,
            device=device,
            dtype=dtype if _weight is None else _weight.dtype,
            mr=mr,
            driver=driver,
            hot_bytes=hot_bytes,
            sample_every=sample_every,
            place_every=place_every,
            count_ids=count_ids,
        )
        torch.nn.EmbeddingBag.__init__(
            self,
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=table.tensor,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        self._adopt(table, _weight)

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the sum, mean or maximum of each bag's rows, as `torch.nn.EmbeddingBag` does.

        Raises
        ------
        IndexError, DataError
            As `ManagedEmbedding.forward`.
        """
        return functional.embedding_bag(
            self._rows(input),
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self._padding_row,
        )
