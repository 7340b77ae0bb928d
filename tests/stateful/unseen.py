# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong where nobody sees it: in threads, finalizers and callbacks, and in the log."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from typing import Any

_noted: list[str] = []


def note(what: str) -> None:
    """Keep it until somebody looks, and write it into the log of the round."""
    print(what, file=sys.stderr, flush=True)
    _noted.append(what)


def note_exceptions() -> None:
    """Note from now on exceptions that reach no caller: Python, or we, only say that they were."""
    threading.excepthook = _of_thread
    sys.unraisablehook = _of_object
    logging.getLogger("rmm_uvm").addHandler(_Errors(logging.ERROR))


def nothing_was_noted() -> None:
    """Raise what was noted, once: the same program may be tried again."""
    noted, _noted[:] = _noted[:], []
    assert not noted, "nobody saw:\n" + "\n".join(noted)


class _Errors(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(f"in the log of {record.name}: {self.format(record)}")


def _of_thread(raised: threading.ExceptHookArgs) -> None:
    if not issubclass(raised.exc_type, SystemExit):
        _exception(f"in {raised.thread}", raised)


def _of_object(raised: Any) -> None:
    _exception(f"{raised.err_msg or 'Exception ignored in'}: {raised.object!r}", raised)


def _exception(where: str, raised: Any) -> None:
    # As text: what its frames hold has to go.
    lines = traceback.format_exception(raised.exc_type, raised.exc_value, raised.exc_traceback)
    note(where + "\n" + "".join(lines))
