# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls made by the main thread, between two of its bytecodes.

Warnings belong to the thread that runs the program, and Python's own ways to get there (signals,
event loops) belong to the program. The interpreter's queue of pending calls (`Python.h`) belongs to
nobody.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "Python.h":
    # -1 with an error set is what the interpreter expects of a call that raised.
    int Py_AddPendingCall(int (*function)(void*) except -1, void* argument)


cdef int _call(void* argument) except -1 with gil:
    function = <object>argument
    Py_DECREF(function)  # the queue's reference; ours lives until the end of this function
    function()
    return 0


def call_in_main_thread(function not None):
    """Have the main thread call a function soon.

    Parameters
    ----------
    function : callable
        Takes nothing. What it raises is raised in the main thread, at the line that runs then.

    Returns
    -------
    bool
        False when the interpreter's queue is full (it holds 32 calls): nothing will be called.

    Notes
    -----
    Thread-safe, and never waits. The call comes when the main thread runs Python again: not while
    it is inside a long call into C.
    """
    Py_INCREF(function)
    if Py_AddPendingCall(_call, <void*>function) != 0:
        Py_DECREF(function)
        return False
    return True
