# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measuring a real GPU: in time, within the cap, and with figures that can be true."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmm_uvm._lib.limits import process_account
from rmm_uvm.cli.doctor import command
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.simulator import Machine, Simulator, load_machine
from rmm_uvm.simulator.measuring import Measurement, measure
from rmm_uvm.support.machine_profile import CONSTANTS

pytestmark = pytest.mark.gpu

MOST_SECONDS = 60


@pytest.fixture(scope="module")
def measurement(gpu: CudaDriver) -> Measurement:
    free_bytes = gpu.memory()[0]
    begin = time.perf_counter()
    found = measure(gpu, name="this-gpu")
    assert time.perf_counter() - begin < MOST_SECONDS
    assert process_account().used_bytes == 0
    # Loaded kernels and CUDA's own tables may stay.
    assert free_bytes - gpu.memory()[0] < 256 << 20
    return found


def test_measure_takes_every_figure_that_the_device_has(
    gpu: CudaDriver, measurement: Measurement
) -> None:
    missing = [name for name, value in measurement.figures.to_dict().items() if value is None]
    assert all("discard" in name for name in missing)
    assert bool(missing) is not bool(gpu.info.discard)


def test_measured_rates_are_those_of_a_gpu(measurement: Measurement) -> None:
    machine = measurement.machine
    assert 1 < machine.to_device_bytes_per_ns < 1000
    assert 1 < machine.to_host_bytes_per_ns < 1000
    assert 0.4 < machine.duplex_fraction <= 1
    assert machine.memory_bytes_per_ns > machine.to_device_bytes_per_ns
    assert machine.remote_bytes_per_ns < 1.1 * machine.to_device_bytes_per_ns


def test_measured_migrations_are_slower_than_copies_and_faults_than_prefetches(
    measurement: Measurement,
) -> None:
    figures = measurement.figures
    assert figures.copy_to_device is not None
    assert figures.prefetch_to_device is not None
    assert figures.fault_stream is not None
    assert figures.first_touch_stream is not None
    assert figures.prefetch_to_device.bytes_per_ns < 1.05 * figures.copy_to_device.bytes_per_ns
    assert figures.fault_stream.bytes_per_ns < figures.prefetch_to_device.bytes_per_ns
    assert figures.first_touch_stream.seconds < figures.fault_stream.seconds


def test_measured_constants_are_believable_where_they_were_measured(
    measurement: Measurement,
) -> None:
    sources = measurement.machine.sources
    strange = {name for name in CONSTANTS if "the measurement gave" in sources[name]}
    assert not strange


def stream_seconds(machine: Machine, nbytes: int) -> float:
    simulator = Simulator(machine)
    address = simulator.allocate_managed(nbytes)
    simulator.prefetch(address, nbytes)
    simulator.prefetch(address, nbytes, gpu=None)
    simulator.synchronize()
    begin = simulator.seconds
    simulator.prefetch(address, nbytes)
    simulator.synchronize()
    return simulator.seconds - begin


def test_measured_machine_simulates_the_prefetch_that_was_measured(
    measurement: Measurement,
) -> None:
    timing = measurement.figures.prefetch_to_device
    assert timing is not None
    modelled_seconds = stream_seconds(measurement.machine, timing.nbytes)
    assert modelled_seconds == pytest.approx(timing.seconds, rel=0.15)


def test_doctor_measures_and_keeps_a_machine(
    gpu: CudaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "figures.json"
    result = CliRunner().invoke(command, ["--measure", "--save", "mine", "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert "saved as mine" in result.output
    machine = load_machine("mine")
    assert machine.label == "measured"
    report = json.loads(path.read_text())
    assert report["constants"]["copy_ns"]["value"] == machine.copy_ns
    assert report["machine"]["gpu"].startswith(gpu.info.name)


def test_measure_under_too_small_a_cap_is_refused(
    gpu: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "64MiB")
    with pytest.raises(AvailabilityError, match="RMM_UVM_MANAGED_LIMIT"):
        measure(gpu)
