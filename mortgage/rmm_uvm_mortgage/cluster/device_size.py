# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How large the simulated devices of workers are when nobody says."""

from __future__ import annotations

from pathlib import Path

from rmm_uvm_mortgage.files import find_files
from rmm_uvm_mortgage.run import default_device_bytes, default_device_reason


def default_worker_device(data: Path, parts: int | None, workers: int) -> tuple[int, str]:
    """Return the memory of each worker's simulated device, and why it is so much.

    That of a single process, see `rmm_uvm_mortgage.run.default_device_bytes`, for each file whose
    features a worker trains on: what XGBoost takes by cudaMalloc cannot exceed the device.

    Parameters
    ----------
    data : Path
        Root of a data set.
    parts : int or None
        Parts of each quarter, >= 1; None takes the files as they are.
    workers : int
        Number of workers, >= 1.

    Returns
    -------
    (int, str)
        Bytes, a multiple of 2 MiB, and a phrase for the page.
    """
    quarters = find_files(data).quarters
    files = sum(len(quarter.performance) for quarter in quarters)
    tasks = files if parts is None else parts * len(quarters)
    share = max(-(-tasks // workers) * files // tasks, 1)
    of_one_bytes = default_device_bytes(data)
    size_bytes, why = of_one_bytes * share, default_device_reason(of_one_bytes)
    return size_bytes, why if share == 1 else f"{why}, {share} files each"
