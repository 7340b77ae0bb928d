# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's log keeps the text of errors, and not the data that they were about.

Dask keeps the last 10,000 records of a worker's log for `Client.get_worker_logs`. The record of a
transfer that broke has the error, the error has the frames that it went through, and those have the
data that were on their way: device memory that nothing would free any more.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["ErrorsAsText", "attach", "detach"]

_LOGGER = "distributed.worker"


class ErrorsAsText(logging.Filter):
    """Lets every record pass, with the traceback as the text that a formatter makes of it.

    Parameters
    ----------
    owner : str
        Who added it: workers of one process write into each other's logs.

    Examples
    --------
    >>> import sys
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     made = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    >>> ErrorsAsText("worker").filter(made)
    True
    >>> made.exc_info is None, logging.Formatter().format(made).splitlines()[-1]
    (True, 'ZeroDivisionError: division by zero')
    """

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the text in the place of the error, as `logging.handlers.QueueHandler` does."""
        if record.exc_info:
            if not record.exc_text:
                record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        return True


def attach(worker: Any) -> None:
    """Have the log that Dask keeps of a worker hold text only; again: nothing.

    Parameters
    ----------
    worker : distributed.Worker
        Which; of several in one process, the logs of all.
    """
    for handler in _kept_logs():
        if not _added_by(worker, handler):
            handler.addFilter(ErrorsAsText(worker.id))


def detach(worker: Any) -> None:
    """Let it keep errors again, as Dask does, if no other worker of the process objects."""
    for handler in _kept_logs():
        for added in _added_by(worker, handler):
            handler.removeFilter(added)


def _added_by(worker: Any, handler: logging.Handler) -> list[ErrorsAsText]:
    return [
        each
        for each in handler.filters
        if isinstance(each, ErrorsAsText) and each.owner == worker.id
    ]


def _kept_logs() -> list[logging.Handler]:
    from distributed.utils import DequeHandler

    return [each for each in logging.getLogger(_LOGGER).handlers if isinstance(each, DequeHandler)]
