# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces (`cpp/include/rmm_uvm/monitor/trace_*.hpp`): written and, chunk by chunk, read."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport make_shared, static_pointer_cast
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport MemoryObserver, memory_observer
from rmm_uvm._lib.trace cimport (
    TimedEvents,
    TraceWriter,
    begin_kernel,
    begin_stage,
    decode_events_chunk,
    decode_samples_chunk,
    fake_clock,
    follow_events,
    kind_of,
    live_ranges,
    note_allocated,
    note_freed,
    note_touched,
    open_timed,
    open_trace,
    sample,
    timed_touch,
    trace_chunk_events,
    trace_counts,
    trace_decoder,
    trace_event,
    trace_writer,
    write_annotation,
    write_samples,
)

import datetime
import json
import os
import stat
import threading
import time

from rmm_uvm.errors import DataError

_LARGEST_FACTS_BYTES = 1 << 20  # readers refuse more
SAMPLE_BYTES = sizeof(sample)
EVENT_BYTES = sizeof(trace_event)


cdef class TraceWriter(MemoryObserver):
    """Writes a trace of this process; `rmm_uvm.trace.read` reads it, also while it is written.

    Parameters
    ----------
    path : str or path-like
        Where to. Made new, for the user alone (0600). Nothing is overwritten: an existing file is
        refused unless it is empty, or `overwrite` is true; then it is unlinked first.
    facts : mapping
        What is known about the run, JSON-serializable; docs/understand/trace-format.md names what readers
        look for. ``began`` and ``pid`` are added.
    origin_ns : int, optional
        What `time.monotonic_ns` showed at time 0 of the trace; now by default. Give the monitor's
        so that samples, stages and events share one time.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    DataError
        If the file cannot be made, or exists; if `facts` take more than 1 MiB.
    TypeError
        If `facts` cannot be written as JSON.

    Notes
    -----
    Thread-safe; no method blocks but for the disk. When the file cannot be written any more, for
    example because the disk is full, tracing stops, `failed` says why and the program goes on.
    In a forked child a writer does nothing.

    Examples
    --------
    >>> import tempfile
    >>> from rmm_uvm.trace import TraceWriter, read
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = TraceWriter(f"{folder.name}/program.uvmtrace", {"program": "example"})
    >>> writer.stage_begin("etl")
    >>> writer.stage_end()
    >>> writer.close()
    >>> trace = read(f"{folder.name}/program.uvmtrace")
    >>> trace.facts["program"], [stage.name for stage in trace.stages]
    ('example', ['etl'])
    >>> folder.cleanup()
    """

    def __cinit__(self, path, facts=None, *, origin_ns=None, bool overwrite=False):
        self.path = os.fspath(path)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        described = {"began": now, "pid": os.getpid(), **(facts or {})}
        cdef string text = _encoded(described)
        cdef uint64_t origin = time.monotonic_ns() if origin_ns is None else origin_ns
        cdef int file = _open_new(self.path, overwrite)
        try:
            self.writer = open_trace(file, text, origin)
        except BaseException:
            os.close(file)
            raise
        self.handle = static_pointer_cast[memory_observer, trace_writer](self.writer)

    def __init__(self, *_, **__):
        pass  # `__cinit__` took the arguments; the base cannot be made

    def observe(self, source):
        """Note what happens there, from now on until the end or ``source.observe(None)``.

        Parameters
        ----------
        source : UvmResourceAdaptor or SimulatedDevice
            Tells of allocations and frees, or of touches. It keeps this writer; close it anyway.

        Raises
        ------
        DataError
            If another writer, not closed yet, notes what happens there.
        """
        if not source.attach_observer(self):
            raise DataError(
                f"a trace is being written already: close it before {self.path} is written"
            )

    def stage_begin(self, name, thread=None):
        """Note that a stage begins on this thread.

        Parameters
        ----------
        name : str
            Cut at 1024 bytes.
        thread : str, optional
            Name of the thread; by default what Python calls it.
        """
        cdef string stage = _as_text(name)
        cdef string runner = _as_text(threading.current_thread().name if thread is None else thread)
        with nogil:
            begin_stage(dereference(self.writer), stage, runner)

    def stage_end(self):
        """Note that the latest stage of this thread ends."""
        with nogil:
            dereference(self.writer).stage_end()

    def annotate(self, text):
        """Note a remark at this time; cut at 1024 bytes."""
        cdef string remark = _as_text(text)
        with nogil:
            write_annotation(dereference(self.writer), remark)

    def samples(self, rows):
        """Write samples.

        Parameters
        ----------
        rows : ndarray, dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
            In order of time.

        Raises
        ------
        TypeError
            If the rows have another layout.
        """
        if rows.dtype.itemsize != SAMPLE_BYTES or rows.dtype.names is None:
            raise TypeError(f"samples have the layout SAMPLE_DTYPE, not {rows.dtype}")
        cdef bytes raw = rows.tobytes()
        cdef const char* data = raw
        cdef size_t count = len(raw) // sizeof(sample)
        with nogil:
            write_samples(dereference(self.writer), data, count)

    def allocated(self, int device_id, uintptr_t address, size_t nbytes, uintptr_t stream=0):
        """Note an allocation. Adaptors do by themselves, see `observe`."""
        with nogil:
            note_allocated(dereference(self.writer), device_id, address, nbytes, stream)

    def freed(self, int device_id, uintptr_t address, size_t nbytes, uintptr_t stream=0):
        """Note a free."""
        with nogil:
            note_freed(dereference(self.writer), device_id, address, nbytes, stream)

    def touched(
        self, int device_id, uintptr_t address, size_t nbytes, bool write=False, bool by_cpu=False
    ):
        """Note that a kernel, or the CPU, accesses a range."""
        with nogil:
            note_touched(dereference(self.writer), device_id, address, nbytes, write, by_cpu)

    def flush(self):
        """Hand what there is to the operating system; once a second is enough."""
        with nogil:
            dereference(self.writer).flush()

    def close(self):
        """Write the rest and the end; idempotent. What follows is dropped."""
        with nogil:
            dereference(self.writer).close()

    @property
    def failed(self):
        """Why writing stopped, one sentence; empty while all is well."""
        cdef string message
        with nogil:  # waits for a write to the disk
            message = dereference(self.writer).failure()
        reason = message.decode(errors="replace")
        return f"{self.path}: {reason}; tracing has stopped" if reason else ""

    @property
    def counts(self):
        """What was noted so far, and ``written_bytes`` of the file: a dict of int."""
        cdef trace_counts now
        with nogil:  # waits for a write to the disk
            now = dereference(self.writer).counts()
        return now

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


cdef class TimedEvents:
    """Writes a trace whose times are given; for `rmm_uvm.trace.KernelTraceWriter`.

    Parameters
    ----------
    file : int
        Descriptor of an empty file, which stays the caller's.
    facts : mapping
        JSON-serializable.

    Notes
    -----
    Not thread-safe. Checks nothing of what it is told. Errors as of `TraceWriter`.
    """

    def __cinit__(self, int file, facts):
        cdef string text = _encoded(facts)
        cdef int own = os.dup(file)
        try:
            self.clock = make_shared[fake_clock]()
            self.writer = open_timed(own, text, self.clock)
        except BaseException:
            os.close(own)
            raise

    def __init__(self, *_, **__):
        pass  # `__cinit__` took the arguments

    def at(self, uint64_t time_ns):
        """What follows happens at this time, which is no earlier than what came before."""
        dereference(self.clock).advance(time_ns - self.now_ns)
        self.now_ns = time_ns

    def allocated(self, uintptr_t address, size_t nbytes, uintptr_t stream):
        """Note an allocation."""
        note_allocated(dereference(self.writer), 0, address, nbytes, stream)

    def freed(self, uintptr_t address, size_t nbytes, uintptr_t stream):
        """Note a free."""
        note_freed(dereference(self.writer), 0, address, nbytes, stream)

    def touched(
        self, uintptr_t address, size_t nbytes, uintptr_t stream, *, bool write, bool by_cpu
    ):
        """Note that a kernel, or the CPU, accesses a range."""
        timed_touch(dereference(self.writer), address, nbytes, write, by_cpu, stream)

    def kernel(self, name):
        """Note that a kernel begins."""
        begin_kernel(dereference(self.writer), _as_text(name))

    def stage_begin(self, name):
        """Note that a stage begins."""
        begin_stage(dereference(self.writer), _as_text(name), b"")

    def stage_end(self):
        """Note that the latest stage ends."""
        dereference(self.writer).stage_end()

    def annotate(self, text):
        """Note a remark."""
        write_annotation(dereference(self.writer), _as_text(text))

    def close(self):
        """Write the rest and the end. Return why something is missing; empty: nothing is."""
        dereference(self.writer).close()
        return dereference(self.writer).failure().decode(errors="replace")


cdef class ChunkDecoder:
    """Reads the payloads of a trace's chunks, in order; for `rmm_uvm.trace`.

    Notes
    -----
    Not thread-safe. The bytes may be anything.
    """

    cdef trace_decoder decoder

    def events(self, bytes payload not None):
        """Read a chunk of events.

        Returns
        -------
        tuple
            Rows of `rmm_uvm.trace.events.EVENT_DTYPE` as bytes; marks, as tuples of time_ns,
            thread, kind, name and the thread's name; what is wrong, or None.
        """
        cdef trace_chunk_events found
        cdef const char* data = payload
        cdef size_t count = len(payload)
        cdef const char* wrong = NULL
        with nogil:
            wrong = decode_events_chunk(self.decoder, data, count, found)
        names = [bytes(one).decode(errors="replace") for one in found.names] or [""]
        marks = [
            (one.time_ns, one.thread, kind_of(one), names[one.name], names[one.thread_name])
            for one in found.marks
        ]
        rows = PyBytes_FromStringAndSize(
            <const char*>found.events.data(), found.events.size() * sizeof(trace_event))
        return rows, marks, None if wrong is NULL else wrong.decode()

    def samples(self, bytes payload not None):
        """Read a chunk of samples: rows of SAMPLE_DTYPE as bytes; what is wrong, or None."""
        cdef vector[sample] found
        cdef const char* data = payload
        cdef size_t count = len(payload)
        cdef const char* wrong = NULL
        with nogil:
            wrong = decode_samples_chunk(data, count, found)
        rows = PyBytes_FromStringAndSize(
            <const char*>found.data(), found.size() * sizeof(sample))
        return rows, None if wrong is NULL else wrong.decode()


cdef class LiveRanges:
    """Which allocations of a recording are live, event by event; for `rmm_uvm.trace`.

    Notes
    -----
    Not thread-safe. The events may be anything.
    """

    cdef live_ranges live

    def follow(self, bytes rows not None):
        """Fill in ids and flags of the next events.

        Parameters
        ----------
        rows : bytes
            Of `rmm_uvm.trace.events.EVENT_DTYPE`, in the order in which they happened.

        Returns
        -------
        bytes
            The same events.

        Raises
        ------
        ValueError
            If the last row is not whole.
        """
        if len(rows) % sizeof(trace_event) != 0:
            raise ValueError(f"events are {sizeof(trace_event)} bytes each, not {len(rows)} in all")
        cdef const char* data = rows
        cdef size_t count = len(rows) // sizeof(trace_event)
        cdef vector[trace_event] found
        with nogil:
            found = follow_events(self.live, data, count)
        return PyBytes_FromStringAndSize(<const char*>found.data(), count * sizeof(trace_event))


cdef bytes _encoded(facts):
    """Return facts as a trace has them."""
    encoded = json.dumps(facts).encode()
    if len(encoded) > _LARGEST_FACTS_BYTES:
        raise DataError(
            f"the trace's facts take {len(encoded)} bytes, and at most {_LARGEST_FACTS_BYTES} "
            "are allowed: leave something out"
        )
    return encoded


cdef bytes _as_text(text):
    return str(text).encode(errors="replace")


cdef int _open_empty(str path) except -1:
    """Open a file in which nothing is, and have it readable for this user alone.

    What it is is asked of the open file: it may be another one than was there before.
    """
    cdef int file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(file)
        if found.st_uid != os.geteuid():
            raise OSError("it belongs to another user; name another file")
        if not stat.S_ISREG(found.st_mode) or found.st_size > 0:
            raise FileExistsError
        os.fchmod(file, 0o600)
    except BaseException:
        os.close(file)
        raise
    return file


cdef int _open_new(str path, bool overwrite) except -1:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        if overwrite:
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    os.unlink(path)
            except FileNotFoundError:
                pass
        try:
            return os.open(path, flags | os.O_EXCL, 0o600)
        except FileExistsError:
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode) or found.st_size > 0:
                raise
            return _open_empty(path)  # mktemp made it
    except FileExistsError:
        raise DataError(
            f"the trace {path} exists: name another file, or remove it first"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"the trace {path} cannot be written: {reason}") from None
