# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: what is told of a program's allocations, and of one that needs a GPU."""

from __future__ import annotations

from pathlib import Path

from rmm_uvm.trace import read as read_trace

from .started import SIMULATED, USES_THE_POOL, run, script

NEEDS_A_GPU = "import rmm\nimport rmm._cuda.gpu as gpu\ngpu.getDevice()\n"


def test_script_that_needs_a_gpu_has_a_hint_after_its_traceback_and_no_trace(
    tmp_path: Path,
) -> None:
    path, trace = script(tmp_path, NEEDS_A_GPU), tmp_path / "trace"
    done = run(tmp_path, *SIMULATED, "--trace", trace, path)
    assert done.returncode == 1
    traceback, _, rest = done.stderr.partition("CUDARuntimeError: ")
    assert str(path) in traceback
    line = rest.splitlines()[1]
    assert line.startswith("rmm_uvm: the program asked CUDA for a GPU, and a simulated device has")
    assert f"no trace was left at {trace}: the program allocated nothing" in done.stderr
    assert not trace.exists()


def test_script_that_copies_without_a_gpu_has_the_hint_too(tmp_path: Path) -> None:
    copies = USES_THE_POOL + "    rmm.DeviceBuffer(size=100, mr=mr).copy_to_host()\n"
    done = run(tmp_path, *SIMULATED, script(tmp_path, copies))
    assert "Memcpy failed with error: " in done.stderr
    assert "the program asked CUDA for a GPU, and a simulated device has" in done.stderr


def test_script_that_has_no_pool_as_asked_is_told_that_this_is_why(tmp_path: Path) -> None:
    allocates = "import rmm\nrmm.mr.get_per_device_resource(0).allocate(1 << 20)\n"
    path = script(tmp_path, allocates)
    done = run(tmp_path, "--no-pool", *SIMULATED, path)
    assert done.returncode == 1
    assert "rmm_uvm: with --no-pool RMM's own resource asked CUDA" in done.stderr
    assert "get_per_device_resource(0), which" not in done.stderr
    assert run(tmp_path, *SIMULATED, path).returncode == 0


def test_script_that_fails_otherwise_has_no_hint_and_keeps_its_trace(tmp_path: Path) -> None:
    path = script(tmp_path, USES_THE_POOL + "    raise ValueError('mine')")
    trace = tmp_path / "trace"
    done = run(tmp_path, *SIMULATED, "--trace", trace, path)
    assert done.returncode == 1
    assert "asked CUDA for a GPU" not in done.stderr
    assert read_trace(trace).events["bytes"].tolist() == [40 << 20]


def test_trace_of_a_script_without_our_pool_stays_for_its_samples(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = run(tmp_path, "--no-pool", *SIMULATED, "--trace", trace, script(tmp_path, "x = 1"))
    assert done.returncode == 0
    assert "no trace was left" not in done.stderr
    assert trace.exists()


def test_summary_has_the_peak_of_live_bytes_that_no_sample_saw(tmp_path: Path) -> None:
    comes_and_goes = """
        import rmm
        mr = rmm.mr.get_per_device_resource(0)
        for size in (3 << 20, 7 << 20):
            mr.deallocate(mr.allocate(size), size)
    """
    # An hour between two samples: only the first and the last.
    done = run(tmp_path, *SIMULATED, "--interval", "3600", script(tmp_path, comes_and_goes))
    assert "most allocated at a time: 7.00 MiB (peak of live bytes, exact)" in done.stderr
    assert "footprint    at most 7.00 MiB" in done.stderr
    assert "in no sample was anything" not in done.stderr
    idle = run(tmp_path, *SIMULATED, script(tmp_path, "x = 1"))
    assert "most allocated" not in idle.stderr
    assert "in no sample was anything allocated" in idle.stderr
