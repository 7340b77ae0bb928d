# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The command line ``rmm-uvm``: `rmm_uvm.cli.main`, and one module for each subcommand.

A subcommand parses its options, calls the library and prints; it decides nothing itself.
"""

import signal
import threading

__all__ = ["main"]

# While the command is loaded there is nothing to tell of Ctrl-C: it ends the process, silently, in
# the place of a traceback out of somebody's import. From then on click says "Aborted!".
_may_end = (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
)
if _may_end:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    from rmm_uvm.cli.main import main
finally:
    if _may_end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
