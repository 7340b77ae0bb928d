# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How the IPC pool is divided into staging chunks, and for how long one is waited for.

In Dask's configuration, for processes that want other values::

    rmm-uvm:
      comm:
        chunk-size: 8MiB
        wait-seconds: 10
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.dask.settings import OF_COMM
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.units import format_bytes

__all__ = ["CommSettings", "PoolShares", "configured", "share_pool"]

_LARGEST_CHUNK_BYTES = 64 << 20  # above, copying in and out overlaps less
_FEWEST_CHUNKS = 2  # in each direction: one is filled or emptied while the other travels


@dataclasses.dataclass(frozen=True)
class CommSettings:
    """The settings of communication.

    Parameters
    ----------
    chunk_bytes : int or None
        Size of a staging chunk, in bytes; None: by the size of the pool, see `share_pool`.
    wait_seconds : float
        How long a transfer waits for a chunk before it goes past the pool; >= 0.
    """

    chunk_bytes: int | None = None
    wait_seconds: float = 10.0


class PoolShares(NamedTuple):
    """How a pool is divided: so many chunks for each direction, of one size."""

    chunk_bytes: int
    chunks_each_way: int


def share_pool(pool_bytes: int, chunk_bytes: int | None = None) -> PoolShares:
    """Divide a pool: at most 7/8 of it become chunks, the rest is left for exports.

    Parameters
    ----------
    pool_bytes : int
        Size of the IPC pool, in bytes.
    chunk_bytes : int or None
        Size of a chunk, in bytes; by default such that there are 2 each way, but at most
        64 MiB: large ones are fewer messages (benchmarks/results/message_size.json).

    Raises
    ------
    ConfigurationError
        If there would be fewer than 2 chunks for each direction.

    Examples
    --------
    >>> share_pool(256 << 20)
    PoolShares(chunk_bytes=58720256, chunks_each_way=2)
    """
    usable_bytes = pool_bytes // 8 * 7
    largest = usable_bytes // (2 * _FEWEST_CHUNKS) // ALIGNMENT_BYTES * ALIGNMENT_BYTES
    if chunk_bytes is None:
        wanted = min(_LARGEST_CHUNK_BYTES, largest)
    else:
        wanted = -(-chunk_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    if wanted > largest or wanted <= 0:
        raise ConfigurationError(
            f"rmm-uvm.comm.chunk-size is {format_bytes(wanted)}: an IPC pool of "
            f"{format_bytes(pool_bytes)} has chunks of at most {format_bytes(largest)}"
        )
    return PoolShares(wanted, usable_bytes // (2 * wanted))


def configured() -> CommSettings:
    """Return what Dask's configuration says.

    Raises
    ------
    ConfigurationError
        If a value cannot be used.
    """
    from dask import config

    found = {}
    for each in OF_COMM.values():
        name = f"rmm-uvm.comm.{each.key}"
        value = config.get(name, None)
        found[each.name] = each.read(each.default if value is None else value, name)
    return CommSettings(found["chunk_size"], float(found["wait_seconds"]))
