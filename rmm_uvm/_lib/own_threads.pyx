# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Threads of ours: no signal is handled on them, and they have a name that the kernel knows."""

import contextlib
import signal
import threading


cdef extern from "rmm_uvm/process/own_thread.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass signals_blocked:
        signals_blocked() except +

    void name_this_thread(const char* name) noexcept


class OwnThread(threading.Thread):
    """A thread of ours: whoever begins it joins it.

    Its name, of at most 15 bytes, is the kernel's name for it as well. It blocks all signals but
    those of a crash, and so do threads and processes that it begins: code of users runs in
    `usual_signals` there.
    """

    def start(self):
        """Begin, with all signals blocked from the first moment on."""
        beginner = threading.current_thread()
        self.usual_signals = (
            beginner.usual_signals
            if isinstance(beginner, OwnThread)
            else signal.pthread_sigmask(signal.SIG_BLOCK, ())  # as they are
        )
        # Not by `signal`: it may raise what a handler raises, and leave them blocked.
        cdef signals_blocked* blocked = new signals_blocked()
        try:
            super(OwnThread, self).start()
        finally:
            del blocked

    def run(self):
        """Take the name, and do the work."""
        name = self.name.encode()[:15]
        name_this_thread(name)
        super(OwnThread, self).run()


@contextlib.contextmanager
def usual_signals():
    """Let a thread of ours get the signals meanwhile that the one which began it gets.

    For code of users: a process that it begins inherits what is blocked, and would not end by a
    SIGTERM. In any other thread nothing changes.
    """
    thread = threading.current_thread()
    if not isinstance(thread, OwnThread):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_SETMASK, thread.usual_signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
