# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The log that Dask keeps of a worker keeps text, and no data."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from distributed.utils import DequeHandler

from rmm_uvm.dask.worker import logged_errors

LOGGER = logging.getLogger("distributed.worker")
WORKER = SimpleNamespace(id="Worker-1")


class Data:
    """Stands for what a transfer holds."""


@pytest.fixture
def log() -> Iterator[DequeHandler]:
    """The log of a worker, as Dask adds it."""
    handler = DequeHandler(n=10)
    LOGGER.addHandler(handler)
    yield handler
    LOGGER.removeHandler(handler)


def transfer(data: Data) -> None:
    raise OSError("connection lost")


def fail_and_log(logger: logging.Logger = LOGGER) -> weakref.ref[Data]:
    data = Data()
    try:
        transfer(data)
    except OSError:
        logger.exception("failed during get data")
    return weakref.ref(data)


def test_logged_error_with_the_filter_keeps_its_text_and_no_data(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)

    data = fail_and_log()
    gc.collect()

    assert data() is None
    text = log.format(log.deque[-1])
    assert text.startswith("failed during get data\nTraceback (most recent call last)")
    assert 'raise OSError("connection lost")' in text
    assert text.endswith("OSError: connection lost")


def test_logged_error_without_the_filter_keeps_the_data(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)
    logged_errors.detach(WORKER)

    data = fail_and_log()
    gc.collect()

    assert data() is not None


def test_logged_error_of_a_part_of_the_worker_keeps_no_data_either(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)

    data = fail_and_log(LOGGER.getChild("memory"))
    gc.collect()

    assert data() is None
    assert "OSError: connection lost" in log.format(log.deque[-1])


def test_attaching_twice_adds_one_filter_and_detaching_leaves_none(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)
    logged_errors.attach(WORKER)
    assert len(log.filters) == 1

    logged_errors.detach(WORKER)
    assert log.filters == []


def test_worker_that_ends_leaves_the_filter_of_another_in_its_process(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)
    logged_errors.attach(SimpleNamespace(id="Worker-2"))

    logged_errors.detach(WORKER)
    data = fail_and_log()
    gc.collect()

    assert data() is None


def test_records_without_an_error_pass_unchanged(log: DequeHandler) -> None:
    logged_errors.attach(WORKER)

    LOGGER.warning("as it was")

    assert log.format(log.deque[-1]) == "as it was"
