# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a plugin that a worker refuses says: at the client, and in the log of a worker that joins.

With real workers: tests/integration/test_dask_plugin.py.
"""

from __future__ import annotations

import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from rmm_uvm.dask.worker.plugin import UvmPlugin
from rmm_uvm.dask.worker.pool import WorkerPool
from rmm_uvm.errors import ConfigurationError, DriverError

KEPT = 'or call client.unregister_worker_plugin("rmm-uvm")'


class FakeWorker:
    def __init__(self, *, runs: bool) -> None:
        self.extensions: dict[str, Any] = {}
        self.periodic_callbacks = {"heartbeat": SimpleNamespace(is_running=lambda: runs)}
        self.called: list[Any] = []
        self.loop = SimpleNamespace(add_callback=lambda call, **_: self.called.append(call))

    def close(self) -> None:
        raise AssertionError("the loop calls it")


def set_up(worker: FakeWorker, error: Exception, monkeypatch: pytest.MonkeyPatch) -> Exception:
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(WorkerPool, "hold", refuse)
    with pytest.raises(type(error)) as caught:
        UvmPlugin(maximum_pool_size="1GiB").setup(worker)
    return caught.value


@pytest.mark.parametrize("kind", [ConfigurationError, DriverError, MemoryError])
def test_client_is_told_that_refused_settings_stay_registered(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = FakeWorker(runs=True)
    error = pickle.loads(pickle.dumps(set_up(worker, kind("too much"), monkeypatch)))
    assert str(error).startswith("too much; these settings stay registered all the same")
    assert str(error).endswith(KEPT)
    assert worker.called == []


def test_error_that_is_no_line_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    error = set_up(FakeWorker(runs=True), OSError(12, "no memory"), monkeypatch)
    assert error.args == (12, "no memory")


def test_worker_that_joins_ends_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = FakeWorker(runs=False)
    with caplog.at_level(logging.ERROR, "distributed.worker.rmm_uvm"):
        error = set_up(worker, ConfigurationError("too much"), monkeypatch)
    assert str(error) == "too much"
    assert caplog.messages == ["rmm_uvm: this worker ends, since it cannot have the pool: too much"]
    assert worker.called == [worker.close]
