# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Listeners hear what the user is told, whatever that does; what is kept silent they do not."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.recording.finding import Finding
from rmm_uvm.watch.telling.delivery import Delivery, OnFinding, subscribe

FINDING = Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")


@pytest.fixture
def heard() -> Iterator[list[Finding]]:
    found: list[Finding] = []
    unsubscribe = subscribe(found.append)
    yield found
    unsubscribe()


def _deliver(on_finding: OnFinding) -> None:
    delivery = Delivery(on_finding)
    delivery.deliver([FINDING])
    delivery.close()


def _fail(finding: Finding) -> None:
    raise RuntimeError("as asked")


def _shown(on_finding: OnFinding) -> None:
    with pytest.warns(rmm_uvm.errors.EvictionWarning):
        _deliver(on_finding)


@pytest.mark.parametrize("on_finding", ["log", lambda finding: None, _fail])
def test_listener_hears_of_a_finding_whatever_is_done_with_it(
    heard: list[Finding], on_finding: OnFinding
) -> None:
    _deliver(on_finding)

    assert heard == [FINDING]


def test_listener_hears_of_a_finding_that_becomes_a_warning(heard: list[Finding]) -> None:
    _shown("warn")

    assert heard == [FINDING]


def test_listener_hears_nothing_of_findings_that_are_only_kept(heard: list[Finding]) -> None:
    _deliver(None)

    assert heard == []


def test_listener_hears_nothing_where_another_monitor_speaks(heard: list[Finding]) -> None:
    delivery = Delivery("log", lambda device_id: True)
    delivery.deliver([FINDING])
    delivery.close()

    assert heard == []


def test_listener_that_unsubscribed_hears_nothing_more() -> None:
    heard: list[Finding] = []
    unsubscribe = subscribe(heard.append)
    unsubscribe()
    unsubscribe()

    _deliver("log")

    assert heard == []


def test_listener_that_fails_is_logged_and_the_others_are_told(
    heard: list[Finding], caplog: pytest.LogCaptureFixture
) -> None:
    unsubscribe = subscribe(_fail)
    try:
        with caplog.at_level(logging.ERROR, "rmm_uvm.watch"):
            _deliver("log")
            _deliver("log")
    finally:
        unsubscribe()

    assert heard == [FINDING, FINDING]
    assert "a listener failed for: device 0: pages leave" in caplog.text


def test_listener_hears_of_a_monitor_that_started_later(heard: list[Finding]) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    with rmm_uvm.reinitialize("16MiB", driver=device, monitor=False) as installed:
        monitor = rmm_uvm.monitor(driver=device, on_finding="log", publish=False)
        monitor._clock = FakeClock()
        with monitor:
            pointer = installed.managed_mr.allocate(96 << 20)
            monitor._clock.advance(0.1)
            monitor._tick()
            installed.managed_mr.deallocate(pointer, 96 << 20)

    assert "footprint" in [finding.kind for finding in heard]
    assert tuple(heard) == monitor.findings
