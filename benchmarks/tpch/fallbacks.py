# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What cudf.pandas leaves to pandas on the CPU, counted through its own log."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH = "LOG_FAST_FALLBACK"  # of cudf.pandas, which looks at it at every call


class _Collector(logging.Handler):
    def __init__(self, counter: Counter[str]) -> None:
        super().__init__()
        self._counter = counter

    def emit(self, record: logging.LogRecord) -> None:
        said = getattr(record.msg, "kwargs", {})
        if "slow_object" in said:
            self._counter[f"{said['slow_object']}: {said['exception']}"] += 1


@contextmanager
def counted_fallbacks() -> Iterator[Counter[str]]:
    """Count what falls back within the block: the function and the error that it met on the GPU.

    cudf.pandas logs to the root logger, and gives it a file in the current folder unless it has a
    handler already.
    """
    counter: Counter[str] = Counter()
    root, handler = logging.getLogger(), _Collector(counter)
    level, before = root.level, os.environ.get(SWITCH)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    os.environ[SWITCH] = "1"
    try:
        yield counter
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before
