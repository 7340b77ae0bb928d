# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sends what XGBoost prints while workers train to the worker's log, not to the command's output.

XGBoost announces the rank of every worker on standard output, whatever its verbosity. Workers on
this machine share theirs with the command that started them.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator

_logger = logging.getLogger(__name__)


class _LogStream(io.TextIOBase):
    """Logs whole lines."""

    def __init__(self) -> None:
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line:
                _logger.info(line)
        return len(text)


def claim_messages() -> None:
    """Have XGBoost's messages printed by Python on this thread, from where they can be led away.

    XGBoost registers its way out for the thread that imports it first; on others it writes by
    itself. Call this on the thread that will train, before anybody imports it.
    """
    with contextlib.suppress(ImportError):
        import xgboost  # noqa: F401


@contextlib.contextmanager
def output_logged() -> Iterator[None]:
    """Send what this process prints on standard output to its log, as information."""
    with contextlib.redirect_stdout(_LogStream()):
        yield
