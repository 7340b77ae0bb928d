# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory traffic by lines of the program (`cpp/include/rmm_uvm/monitor/line_account.hpp`)."""

from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    MemoryObserver,
    UvmDriver,
    memory_observer,
    move_queue,
    opened_move_queue,
    uvm_driver,
)

import sys
import types

from rmm_uvm._lib.thread_starts import starting_thread
from rmm_uvm.errors import AvailabilityError


cdef extern from "rmm_uvm/monitor/line_account.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass code_line:
        string file
        string function
        int line

    cdef cppclass moved_bytes:
        uint64_t brought
        uint64_t faulted
        uint64_t evicted
        uint64_t read_back
        uint64_t dropped
        uint64_t returned

    cdef cppclass stretches "std::array<std::uint64_t, rmm_uvm::monitor::progress::most_stretches>":
        uint64_t operator[](size_t) const
        size_t size() const

    cdef cppclass bytes_by_stretch:
        stretches bytes

    cdef cppclass path_account:
        vector[uint32_t] lines
        uint64_t allocations
        uint64_t live_bytes
        uint64_t peak_bytes
        bytes_by_stretch allocated
        bytes_by_stretch held_at_peak
        bytes_by_stretch held_at_top
        moved_bytes moved

    cdef cppclass object_account:
        uint64_t number
        uint32_t path
        uint64_t bytes
        bool live
        moved_bytes moved

    cdef cppclass line_report:
        vector[code_line] lines
        vector[path_account] paths
        vector[object_account] objects
        size_t last_stretch
        uint64_t peak_bytes
        size_t peak_stretch

    cdef cppclass line_account(memory_observer):
        void close() noexcept
        line_report report() except +


cdef extern from "rmm_uvm/monitor/move_windows.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass window_totals:
        uint64_t windows
        uint64_t open_ns
        uint64_t run_ns
        uint64_t faulted_bytes
        uint64_t seen_bytes
        uint64_t lost_moves

    cdef cppclass move_windows:
        move_windows(shared_ptr[uvm_driver], unique_ptr[move_queue], shared_ptr[line_account]) except +
        void start() except +
        void stop() noexcept
        window_totals totals() noexcept
        string refused() except +


cdef extern from *:
    """
    #include <rmm_uvm/monitor/line_account.hpp>

    #include <Python.h>
    #include <dlfcn.h>

    #include <cstring>
    #include <memory>
    #include <string>
    #include <vector>

    namespace {

    // What a code object has where, from the table of its type's members.
    struct code_members {
      std::size_t file       = 0;
      std::size_t function   = 0;
      std::size_t first_line = 0;
      std::size_t lines      = 0;  // those of its instructions, from the first on
      int (*line_of)(PyObject*, int) = nullptr;
    };
    code_members members_of_code;

    struct table_entry {  // PyMemberDef
      char const* name;
      int type;
      Py_ssize_t offset;
      int flags;
      char const* doc;
    };

    bool find_code_members(PyObject* type) {
      auto const* entry =
        static_cast<table_entry const*>(PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type),
                                                       Py_tp_members));
      code_members found;
      for (; entry != nullptr && entry->name != nullptr; ++entry) {
        if (std::strcmp(entry->name, "co_filename") == 0) { found.file = entry->offset; }
        if (std::strcmp(entry->name, "co_qualname") == 0) { found.function = entry->offset; }
        if (std::strcmp(entry->name, "co_firstlineno") == 0) { found.first_line = entry->offset; }
        if (std::strcmp(entry->name, "co_linetable") == 0) { found.lines = entry->offset; }
      }
      // Reads the code object only, and so needs no GIL.
      found.line_of =
        reinterpret_cast<int (*)(PyObject*, int)>(dlsym(RTLD_DEFAULT, "PyCode_Addr2Line"));
      members_of_code = found;
      return found.file != 0 && found.function != 0 && found.first_line != 0 &&
             found.lines != 0 && found.line_of != nullptr;
    }

    PyObject* object_in(std::uintptr_t code, std::size_t offset) noexcept {
      PyObject* object = nullptr;
      std::memcpy(&object, reinterpret_cast<void const*>(code + offset), sizeof(object));
      return object;
    }

    // Text and bytes keep their hash once it was asked for. What is derived from them may run code
    // of Python for it, and is known by its address.
    std::uint64_t hash_of(PyObject* object) noexcept {
      bool const plain = PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
      return plain ? static_cast<std::uint64_t>(PyObject_Hash(object))
                   : reinterpret_cast<std::uintptr_t>(object);
    }

    // All that `describe` reads.
    std::uint64_t contents_of(std::uintptr_t code) noexcept {
      using rmm_uvm::monitor::mixed;
      int first_line = 0;
      std::memcpy(&first_line, reinterpret_cast<void const*>(code + members_of_code.first_line),
                  sizeof(first_line));
      auto hash = static_cast<std::uint64_t>(first_line);
      for (auto const offset : {members_of_code.lines, members_of_code.function,
                                members_of_code.file}) {
        hash = mixed(hash, hash_of(object_in(code, offset)));
      }
      return hash;
    }

    // As UTF-8, without the GIL: nothing is allocated for the text, and no reference is taken.
    std::string text_of(std::uintptr_t code, std::size_t offset) {
      auto* const text = object_in(code, offset);
      std::string told;
      auto const length = PyUnicode_GetLength(text);
      for (Py_ssize_t i = 0; i < length; ++i) {
        auto const point = PyUnicode_ReadChar(text, i);
        if (point < 0x80) {
          told += static_cast<char>(point);
        } else if (point < 0x800) {
          told += static_cast<char>(0xc0 | (point >> 6));
          told += static_cast<char>(0x80 | (point & 0x3f));
        } else {
          if (point < 0x10000) {
            told += static_cast<char>(0xe0 | (point >> 12));
          } else {
            told += static_cast<char>(0xf0 | (point >> 18));
            told += static_cast<char>(0x80 | ((point >> 12) & 0x3f));
          }
          told += static_cast<char>(0x80 | ((point >> 6) & 0x3f));
          told += static_cast<char>(0x80 | (point & 0x3f));
        }
      }
      return told;
    }

    std::uintptr_t state_of_thread() noexcept {
      return reinterpret_cast<std::uintptr_t>(PyGILState_GetThisThreadState());
    }

    bool describe(rmm_uvm::monitor::code_place place, rmm_uvm::monitor::code_line& line) {
      line.file     = text_of(place.code, members_of_code.file);
      line.function = text_of(place.code, members_of_code.function);
      line.line     = members_of_code.line_of(reinterpret_cast<PyObject*>(place.code),
                                          static_cast<int>(place.instruction));
      return true;
    }

    // Frames, code objects and instructions that are known; nothing where frames cannot be read.
    std::shared_ptr<rmm_uvm::monitor::line_account> make_line_account(
        std::vector<std::uintptr_t> const& frames,
        std::vector<std::uintptr_t> const& codes,
        std::vector<std::size_t> const& instructions,
        PyObject* code_type,
        std::size_t code_bytes) {
      using namespace rmm_uvm::monitor;
      if (!find_code_members(code_type)) { return nullptr; }
      std::vector<known_frame> known;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        known.push_back({frames[i], {codes[i], instructions[i], contents_of(codes[i])}});
      }
      auto const layout = find_layout(state_of_thread(),
                                      known,
                                      {reinterpret_cast<std::uintptr_t>(code_type), code_bytes,
                                       contents_of});
      if (!layout) { return nullptr; }
      return std::make_shared<line_account>(interpreter{state_of_thread, describe, *layout});
    }

    }  // namespace
    """
    shared_ptr[line_account] make_line_account(
        const vector[uintptr_t]&, const vector[uintptr_t]&, const vector[size_t]&, object, size_t
    ) except +
    shared_ptr[memory_observer] as_observer "std::static_pointer_cast<rmm_uvm::memory_observer>"(
        shared_ptr[line_account]
    )


cdef tuple _moved(const moved_bytes& moved):
    return (moved.brought, moved.faulted, moved.evicted, moved.read_back, moved.dropped,
            moved.returned)


cdef tuple _by_stretch(const stretches& told, size_t last):
    return tuple([told[at] for at in range(last + 1)])


cdef str _text(const string& told):
    cdef bytes raw = told
    return raw.decode("utf-8", "surrogatepass")


cdef class LineAccount(MemoryObserver):
    """Keeps account of what moves by the lines that allocated it; `set_account` of sources tells it.

    Raises
    ------
    AvailabilityError
        If this Python keeps its frames in a way that is not understood.

    Notes
    -----
    Thread-safe. Who allocates is asked nothing of Python, and waits for nobody: its frames are read
    in place.
    """

    cdef shared_ptr[line_account] account

    def __cinit__(self):
        cdef vector[uintptr_t] frames
        cdef vector[uintptr_t] codes
        cdef vector[size_t] instructions
        kept = []
        frame = sys._getframe(0)
        while frame is not None:
            kept.append((frame, frame.f_code))
            frame = frame.f_back
        for frame, code in kept:
            frames.push_back(<uintptr_t>id(frame))
            codes.push_back(<uintptr_t>id(code))
            instructions.push_back(<size_t>frame.f_lasti)
        self.account = make_line_account(
            frames, codes, instructions, types.CodeType, types.CodeType.__basicsize__
        )
        if not self.account:
            raise AvailabilityError(
                f"lines of Python {sys.version.split()[0]} cannot be told: its frames are kept in "
                "another way than is known"
            )
        self.handle = as_observer(self.account)

    def __init__(self):
        pass  # the base cannot be made

    def close(self):
        """Take no more notice of anything; what is known stays."""
        with nogil:
            dereference(self.account).close()

    def report(self):
        """Return what is known.

        Returns
        -------
        tuple of three lists and two int
            Lines: file, function, number. Paths: numbers of lines from the innermost on, number of
            allocations, bytes live now and at most, what moved, and by the stretch of the run in
            which they were allocated all bytes, those of the most, and those live at the run's peak;
            the first is of nobody's line. Allocations that moved most: number, path, bytes, whether live, and what moved.
            What moved are bytes brought, faulted in, evicted, read back and dropped, and of the
            first two those that came back. Then the run's peak, which is nearly the most, and in
            which stretch it was.
        """
        cdef line_report told = dereference(self.account).report()
        cdef size_t i
        lines = [(_text(told.lines[i].file), _text(told.lines[i].function), told.lines[i].line)
                 for i in range(told.lines.size())]
        paths = [(tuple(told.paths[i].lines), told.paths[i].allocations, told.paths[i].live_bytes,
                  told.paths[i].peak_bytes, _moved(told.paths[i].moved),
                  _by_stretch(told.paths[i].allocated.bytes, told.last_stretch),
                  _by_stretch(told.paths[i].held_at_peak.bytes, told.last_stretch),
                  _by_stretch(told.paths[i].held_at_top.bytes, told.last_stretch))
                 for i in range(told.paths.size())]
        objects = [(told.objects[i].number, told.objects[i].path, told.objects[i].bytes,
                    told.objects[i].live, _moved(told.objects[i].moved))
                   for i in range(told.objects.size())]
        return lines, paths, objects, told.peak_bytes, told.peak_stretch


cdef class MoveWindows:
    """Tells an account what a kernel driver moves by itself, from short windows of its queue.

    Parameters
    ----------
    driver : UvmDriver
        Whose device it is.
    account : LineAccount
        Is told, from `start` on.

    Raises
    ------
    AvailabilityError
        If the kernel driver does not tell which pages move; says why.

    Notes
    -----
    To be started and stopped by one thread at a time; the rest is thread-safe. A kernel that does
    nothing but fault takes about three times as long in a window, and those are at most 2 % of the
    run. In a forked child it does nothing.
    """

    cdef unique_ptr[move_windows] windows

    def __cinit__(self, UvmDriver driver not None, LineAccount account not None):
        cdef opened_move_queue opened
        with nogil:
            opened = move(dereference(driver.handle).open_moves())
        if not opened.opened.available:
            raise AvailabilityError(opened.opened.reason.decode())
        self.windows.reset(
            new move_windows(driver.handle, move(opened.queue), account.account)
        )

    def __dealloc__(self):
        with nogil:
            self.windows.reset()

    def start(self):
        """Begin, or go on.

        Raises
        ------
        AvailabilityError
            If there can be no more threads.
        """
        with starting_thread("seeing which pages move", "go without lines"):
            with nogil:
                dereference(self.windows).start()

    def stop(self):
        """Open no more windows; what was seen stays."""
        with nogil:
            dereference(self.windows).stop()

    @property
    def refused(self):
        """Why there are no more windows, although it was started; empty while there can be."""
        return dereference(self.windows).refused().decode()

    def totals(self):
        """Return what was seen so far.

        Returns
        -------
        tuple of int
            Windows; nanoseconds that they were open, and in which they could be; bytes that came by
            page faults in that time, about, and those of them that windows saw; moves that were
            lost, since there was no room for them.
        """
        cdef window_totals told = dereference(self.windows).totals()
        return (told.windows, told.open_ns, told.run_ns, told.faulted_bytes, told.seen_bytes,
                told.lost_moves)
