# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker sent and received, and its IPC pool, for Prometheus at the worker's ``/metrics``.

docs/metrics.md lists the names. Here and not with those of the monitor, which know of no Dask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rmm_uvm.dask.comm.statistics import totals

__all__ = ["CommCollector"]

_BYTES = re.compile(r"(sent|received)_(\w+)_bytes")
_TEXTS = {
    "chunk_waits": "How often a transfer waited for a staging chunk",
    "chunk_wait_seconds": "For how long transfers waited for staging chunks",
    "aborted_transfers": "Messages with device frames that ended with an error",
}


def _ipc_pools() -> dict[int, int]:
    """Return the bytes of every IPC pool that is installed now, by device."""
    from rmm_uvm.pool.install import current_installation

    installed = current_installation()
    devices = () if installed is None else installed.devices
    return {one.info.device_id: one.sizes.ipc_bytes for one in devices}


class CommCollector:
    """What ``prometheus_client`` asks for figures: a custom collector.

    Parameters
    ----------
    read_totals : callable
        Returns the totals of transfers by name.
    read_pools : callable
        Returns the bytes of IPC pools by device; 0 for a device without one.

    Notes
    -----
    Thread-safe.
    """

    def __init__(
        self,
        read_totals: Callable[[], Mapping[str, float]] = lambda: totals().to_dict(),
        read_pools: Callable[[], Mapping[int, int]] = _ipc_pools,
    ) -> None:
        self._read_totals = read_totals
        self._read_pools = read_pools

    def describe(self) -> Iterator[Any]:
        """Yield all metrics; their names do not depend on what is installed."""
        yield from self._families({})

    def collect(self) -> Iterator[Any]:
        """Yield all metrics with their values now."""
        yield from self._families(self._read_pools())

    def _families(self, pools: Mapping[int, int]) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        moved = CounterMetricFamily(
            "rmm_uvm_comm_bytes",
            "Device bytes sent to and received from other workers, by way",
            labels=["direction", "way"],
        )
        for name, value in self._read_totals().items():
            if match := _BYTES.fullmatch(name):
                moved.add_metric(list(match.groups()), value)
            else:
                text = _TEXTS.get(name, name.replace("_", " "))
                yield CounterMetricFamily(f"rmm_uvm_comm_{name}", text, value=value)
        yield moved
        pool = GaugeMetricFamily(
            "rmm_uvm_ipc_pool_bytes", "Size of the IPC pool, 0 without one", labels=["device"]
        )
        for device_id, nbytes in pools.items():
            pool.add_metric([str(device_id)], nbytes)
        yield pool
