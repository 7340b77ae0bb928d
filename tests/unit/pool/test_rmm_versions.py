# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What differs between RMM's versions: ci/wheels.sh runs it beside each that is supported."""

from __future__ import annotations

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib import mr as compiled
from rmm_uvm.support.requirements import RMM_MINORS, parse_version

MIB = 1 << 20
MINOR = parse_version(rmm.__version__)[:2]


def test_compiled_layer_is_that_of_the_installed_rmm() -> None:
    assert MINOR in RMM_MINORS
    assert f"/rmm-{MINOR[0]}.{MINOR[1]:02}/" in compiled.__file__


def test_slabs_that_rmms_pool_keeps_after_a_trim_are_told() -> None:
    pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="32MiB")
    used = rmm.DeviceBuffer(size=20 * MIB, mr=pool)
    del used
    trimmed = rmm_uvm.trim(pool)
    if MINOR >= (26, 10):
        assert (trimmed.given_back_bytes, trimmed.reason) == (32 * MIB, "")
        assert pool.driver.memory()[0] == 64 * MIB
    else:
        assert (trimmed.given_back_bytes, trimmed.discarded_bytes) == (0, 32 * MIB)
        assert trimmed.reason == (
            f"slabs stay in the pool of RMM {rmm.__version__}, which gives none back before 26.10"
        )


def test_idle_pool_is_trimmed_once_whatever_rmms_pool_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rmm_uvm.pool import trimming

    real, calls = trimming.trim, []
    monkeypatch.setattr(trimming, "trim", lambda: calls.append(real()) or calls[-1])
    rmm_uvm.reinitialize(driver="simulated:64MiB", initial_pool_size="32MiB")
    try:
        trimmer = trimming._IdleTrimmer(1000)
        for _ in range(40):
            trimmer._look()
    finally:
        rmm_uvm.restore()
    assert len(calls) == 1
