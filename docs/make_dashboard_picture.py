# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Make the picture of the dashboard's page: four workers on simulated devices, for half a minute.

    python -P docs/make_dashboard_picture.py

Every figure in it is what the workers told. Needs the extra ``dask``, ``rmm-uvm-mortgage[cpu]``,
and Chromium.
"""

from __future__ import annotations

import base64
import io
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from distributed import Client
from PIL import Image

import rmm_uvm.dask

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for `tests`

from tests.integration.browser import opened

_MIB = 1 << 20
_DEVICE_MEMORY = "512MiB"
_BLOCK_BYTES = 16 * _MIB
_FOOTPRINTS_BYTES = [300 * _MIB, 720 * _MIB, 560 * _MIB, 180 * _MIB]
_SECONDS = 45.0
_WIDTH, _HEIGHT = 1280, 820


def work(footprint_bytes: int, seconds: float) -> None:
    """Hold some memory and let kernels use it; runs on a worker."""
    mr = rmm_uvm.current_installation().managed_mr
    choose = random.Random(footprint_bytes)
    blocks = [mr.allocate(_BLOCK_BYTES) for _ in range(footprint_bytes // _BLOCK_BYTES)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        mr.driver.touch(choose.choice(blocks), _BLOCK_BYTES)
        time.sleep(0.05)
    for block in blocks:
        mr.deallocate(block, _BLOCK_BYTES)


def shot(url: str) -> bytes:
    """Return the page as it looks after a while, as PNG."""
    with tempfile.TemporaryDirectory() as profile, opened(Path(profile)) as page:
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=_WIDTH, height=_HEIGHT, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        page.call("Page.navigate", url=url)
        page.wait("document.querySelector('.bk-Column')")
        time.sleep(2.0)  # for the first updates
        return base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])


def main(path: Path) -> None:
    """Run the cluster, and take the picture while it works."""
    settings: dict[str, Any] = {"ipc_pool_size": "32MiB", "monitor": {"on_finding": "log"}}
    with (
        rmm_uvm.dask.local_cluster(
            4, simulated=_DEVICE_MEMORY, dashboard_address="127.0.0.1:0", threads_per_worker=1,
            **settings,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        addresses = list(client.scheduler_info(n_workers=-1)["workers"])
        futures = [
            client.submit(work, footprint_bytes, _SECONDS, workers=[address], pure=False)
            for address, footprint_bytes in zip(addresses, _FOOTPRINTS_BYTES, strict=True)
        ]
        time.sleep(0.75 * _SECONDS)
        url = cluster.dashboard_link.replace("/status", "/rmm-uvm")
        image = Image.open(io.BytesIO(shot(url)))
        client.gather(futures)
    # Greys stay grey with as many colours as a palette holds, spread by how often they are used.
    few = image.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, 1, None, Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    default = Path(__file__).parent / "pictures" / "dashboard.png"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
