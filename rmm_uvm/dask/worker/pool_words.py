# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker says of the pool that it made, or could not make, in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rmm_uvm.dask.worker.host_share import HostShare
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.units import format_bytes

__all__ = ["pool_line", "with_guess"]


def pool_line(device: Any, prefetch: str, share: HostShare) -> str:
    """Return the line about a pool that was made.

    Parameters
    ----------
    device : rmm_uvm.pool.installation.DeviceInstallation
    prefetch : str
        As it was asked for.
    share : HostShare
        Of the host's memory, which its maximum counts.
    """
    sizes = device.sizes
    parts = [
        f"managed pool on {device.info.name}: {format_bytes(sizes.initial_bytes)}, at most "
        f"{format_bytes(sizes.maximum_bytes)} ({sizes.maximum_reason})",
        *_budget_words(device),
        f"IPC pool {format_bytes(sizes.ipc_bytes) if sizes.ipc_bytes else 'off'}",
        f"prefetch {prefetch}",
    ]
    if share.guess and _counts(share, sizes.maximum_reason):
        parts.append(share.guess)
    return "; ".join(parts)


def _budget_words(device: Any) -> list[str]:
    budget = device.budget
    if budget is None:
        return []
    words = [f"budget {format_bytes(budget.budget_bytes)}", f"eviction {budget.policy}"]
    if budget.neighbors is not None:
        used = device.managed_mr.managed_mr.residency.neighbors
        words.append(f"neighbours {', '.join(map(str, used)) or 'none'}")
    return words


@contextlib.contextmanager
def with_guess(share: HostShare) -> Iterator[None]:
    """Have an error about a share of the host's memory say how that was told.

    Parameters
    ----------
    share : HostShare
    """
    try:
        yield
    except ConfigurationError as error:
        if not share.guess or not _counts(share, str(error)):
            raise
        raise ConfigurationError(f"{error}; {share.guess}") from error


def _counts(share: HostShare, text: str) -> bool:
    """Return whether a reason or an error of `rmm_uvm.pool.sizing` is about the share."""
    return f"shared by {share.workers} workers" in text or f"of {share.workers} workers" in text
