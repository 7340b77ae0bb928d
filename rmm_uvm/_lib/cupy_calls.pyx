# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of objects whose types nobody can change from Python, seen before they are made.

Covers the slot that such a call goes through, ``tp_call``, of CuPy's ufuncs, kernels and
reductions. While nothing can be away from the device, a call is a look at each budget and then
theirs: no Python is run.
"""

from cpython.ref cimport PyObject
from cython.operator cimport dereference
from libcpp.vector cimport vector

from rmm_uvm._lib.residency cimport ManagedResidency, managed_residency


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject* Py_TYPE(object) noexcept
    unsigned long PyType_GetFlags(PyTypeObject*) noexcept
    void* PyType_GetSlot(PyTypeObject*, int) noexcept
    int PyType_IsSubtype(PyTypeObject*, PyTypeObject*) noexcept
    enum: Py_tp_call

ctypedef object (*call_slot)(object, object, PyObject*)

# Where tp_call lies in CPython's PyTypeObject, which the stable API does not show: behind the head
# of three words, and twelve words and a size. Seen in 3.10 to 3.13; `watch` asks CPython.
cdef enum:
    _WORDS_BEFORE_CALL = 16
    _MOST_KINDS = 16
    _HAVE_VECTORCALL = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL, which the stable API has from 3.12 on

cdef struct seat:
    PyTypeObject* kind
    call_slot theirs

# Kept for good: a class that somebody made of such a type meanwhile has our call in its own slot.
cdef seat _seats[_MOST_KINDS]
cdef int _seat_count = 0
cdef vector[managed_residency*] _watched  # each once for each listener
cdef tuple _listeners = ()


cdef object _call(object called, object args, PyObject* kwargs):
    """In the place of their tp_call."""
    cdef managed_residency* residency
    for residency in _watched:
        if not dereference(residency).all_present():
            _tell(args, {} if kwargs is NULL else <object>kwargs)
            break
    return _theirs(Py_TYPE(called))(called, args, kwargs)


cdef object _tell(object args, object kwargs):
    for _residencies, before in _listeners:
        before(*args, **kwargs)


cdef call_slot _theirs(PyTypeObject* kind) noexcept:
    cdef int index
    for index in range(_seat_count):
        if _seats[index].kind == kind:
            return _seats[index].theirs
    for index in range(_seat_count):  # a class made of one
        if PyType_IsSubtype(kind, _seats[index].kind):
            return _seats[index].theirs
    return _seats[0].theirs  # it has our call, so it is one of those above


cdef call_slot* _slot_of(PyTypeObject* kind) noexcept:
    return <call_slot*>(<void**>kind + _WORDS_BEFORE_CALL)


cdef str _sit(object kind):
    """Put our call in a type's slot; return why not, "" if it is there."""
    global _seat_count
    cdef PyTypeObject* found = <PyTypeObject*><PyObject*>kind
    cdef call_slot* slot = _slot_of(found)
    cdef void* theirs = PyType_GetSlot(found, Py_tp_call)
    cdef int index
    if theirs == NULL:
        return "its objects cannot be called"
    if <void*>slot[0] != theirs:
        return "this Python lays types out in another way"
    if PyType_GetFlags(found) & <unsigned long>_HAVE_VECTORCALL:
        return "its calls go another way"
    if slot[0] == <call_slot>_call:
        return ""
    for index in range(_seat_count):
        if _seats[index].kind == found:
            if <void*>_seats[index].theirs != theirs:
                return "somebody else's call was put over ours"  # and may call ours
            break
    else:
        if _seat_count == _MOST_KINDS:
            return "too many types are seen"
        index = _seat_count
        _seats[index].kind = found
        _seats[index].theirs = slot[0]
        _seat_count += 1
        _kinds.append(kind)
    slot[0] = _call
    return ""


_kinds = []  # keeps the types


def watch(kinds, residencies, before):
    """Call `before` ahead of each call of an object of these types, while something can be away.

    Parameters
    ----------
    kinds : iterable of type
        Whose objects are called. A class that was made of one earlier keeps its own call.
    residencies : iterable of ManagedResidency
        Kept until `unwatch`. While nothing can be away from the device in any, `before` is not
        called.
    before : callable
        Takes what the call takes. What it raises is raised in place of the call.

    Returns
    -------
    dict of str to str
        Types that are not seen, and why.
    """
    global _listeners
    cdef ManagedResidency residency
    refused = {}
    for kind in kinds:
        if not isinstance(kind, type):
            refused[repr(kind)] = "it is no type"
            continue
        why = _sit(kind)
        if why:
            refused[kind.__name__] = why
    residencies = tuple(residencies)
    _listeners += ((residencies, before),)
    for residency in residencies:
        _watched.push_back(residency.handle.get())
    return refused


def unwatch(before):
    """End what `watch` began; with the last one all types have their own calls again."""
    global _listeners
    cdef ManagedResidency residency
    cdef call_slot* slot
    cdef int index
    _listeners = tuple(each for each in _listeners if each[1] is not before)
    _watched.clear()
    for residencies, _before in _listeners:
        for residency in residencies:
            _watched.push_back(residency.handle.get())
    if _listeners:
        return
    for index in range(_seat_count):
        slot = _slot_of(_seats[index].kind)
        if slot[0] == <call_slot>_call:  # else somebody has put another over it, which stays
            slot[0] = _seats[index].theirs
