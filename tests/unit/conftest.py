# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several unit tests share."""

from __future__ import annotations

import pytest
import rmm

import rmm_uvm
from rmm_uvm.mr import SimulatedCudaMemoryResource


@pytest.fixture
def users_mr() -> rmm.mr.DeviceMemoryResource:
    """A resource that the user had installed."""
    mr = rmm.mr.StatisticsResourceAdaptor(
        SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    )
    rmm.mr.set_per_device_resource(0, mr)
    return mr
