# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport MemoryObserver, memory_observer


cdef extern from "rmm_uvm/monitor/sample.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass sample:
        pass

cdef extern from "rmm_uvm/monitor/fake_clock.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass fake_clock:
        void advance(uint64_t) noexcept

cdef extern from "rmm_uvm/monitor/trace_writer.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef struct trace_counts:
        uint64_t allocations
        uint64_t frees
        uint64_t touches
        uint64_t marks
        uint64_t samples
        uint64_t dropped
        uint64_t written_bytes

    cdef cppclass trace_writer(memory_observer):
        void stage_end() noexcept
        void flush() noexcept
        void close() noexcept
        string failure() except +
        trace_counts counts() noexcept

cdef extern from "rmm_uvm/monitor/live_ranges.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass live_ranges:
        live_ranges() except +

cdef extern from "rmm_uvm/monitor/trace_decoder.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef struct trace_event:
        pass

    cdef cppclass trace_mark:
        uint64_t time_ns
        uint32_t thread
        uint8_t kind
        uint32_t name
        uint32_t thread_name

    cdef cppclass trace_chunk_events:
        trace_chunk_events() except +
        vector[trace_event] events
        vector[trace_mark] marks
        vector[string] names

    cdef cppclass trace_decoder:
        trace_decoder() except +

cdef extern from *:
    """
    #include <rmm_uvm/monitor/fake_clock.hpp>
    #include <rmm_uvm/monitor/trace_decoder.hpp>
    #include <rmm_uvm/monitor/trace_writer.hpp>
    #include <cstring>
    #include <memory>
    #include <string>
    // Spans and views do not cross into Cython.
    namespace rmm_uvm_cython {
    using namespace rmm_uvm::monitor;
    inline std::shared_ptr<trace_writer> open_trace(int file, std::string const& facts,
                                                    std::uint64_t origin_ns) {
      return std::make_shared<trace_writer>(file, facts, origin_ns);
    }
    inline std::shared_ptr<trace_writer> open_timed(int file, std::string const& facts,
                                                    std::shared_ptr<fake_clock> const& clock) {
      return std::make_shared<trace_writer>(file, facts, 0, clock);
    }
    inline void timed_touch(trace_writer& writer, std::uintptr_t address, std::size_t bytes,
                            bool write, bool by_cpu, std::uintptr_t stream) noexcept {
      writer.touched(0, {address, bytes}, write, by_cpu, reinterpret_cast<void*>(stream));
    }
    inline void begin_kernel(trace_writer& writer, std::string const& name) noexcept {
      writer.kernel(name);
    }
    inline void begin_stage(trace_writer& writer, std::string const& name,
                            std::string const& thread) noexcept {
      writer.stage_begin(name, thread);
    }
    inline void allocated(trace_writer& writer, int device_id, std::uintptr_t address,
                          std::size_t bytes, std::uintptr_t stream) noexcept {
      writer.allocated(device_id, {address, bytes}, reinterpret_cast<void*>(stream));
    }
    inline void freed(trace_writer& writer, int device_id, std::uintptr_t address,
                      std::size_t bytes, std::uintptr_t stream) noexcept {
      writer.freed(device_id, {address, bytes}, reinterpret_cast<void*>(stream));
    }
    inline void touched(trace_writer& writer, int device_id, std::uintptr_t address,
                        std::size_t bytes, bool write, bool by_cpu) noexcept {
      writer.touched(device_id, {address, bytes}, write, by_cpu);
    }
    inline void annotate(trace_writer& writer, std::string const& text) noexcept {
      writer.annotate(text);
    }
    inline void write_samples(trace_writer& writer, char const* rows, std::size_t count) {
      std::vector<sample> copy(count);  // aligned
      std::memcpy(copy.data(), rows, count * sizeof(sample));
      writer.samples(copy);
    }
    inline std::span<std::uint8_t const> as_span(char const* bytes, std::size_t count) noexcept {
      return {reinterpret_cast<std::uint8_t const*>(bytes), count};
    }
    inline char const* decode_events(trace_decoder& decoder, char const* bytes, std::size_t count,
                                     trace_chunk_events& result) {
      return decoder.read_events(as_span(bytes, count), result);
    }
    inline char const* decode_samples(char const* bytes, std::size_t count,
                                      std::vector<sample>& result) {
      return trace_decoder::read_samples(as_span(bytes, count), result);
    }
    inline std::vector<trace_event> follow_events(live_ranges& live, char const* rows,
                                                  std::size_t count) {
      std::vector<trace_event> events(count);  // aligned
      if (count != 0) { std::memcpy(events.data(), rows, count * sizeof(trace_event)); }
      live.follow(events);
      return events;
    }
    inline unsigned kind_of(trace_mark const& mark) noexcept {
      return static_cast<unsigned>(mark.kind);
    }
    }  // namespace rmm_uvm_cython
    """
    shared_ptr[trace_writer] open_trace "rmm_uvm_cython::open_trace"(
        int, const string&, uint64_t) except + nogil
    shared_ptr[trace_writer] open_timed "rmm_uvm_cython::open_timed"(
        int, const string&, const shared_ptr[fake_clock]&) except + nogil
    void timed_touch "rmm_uvm_cython::timed_touch"(
        trace_writer&, uintptr_t, size_t, bool, bool, uintptr_t) noexcept nogil
    void begin_kernel "rmm_uvm_cython::begin_kernel"(trace_writer&, const string&) noexcept nogil
    void begin_stage "rmm_uvm_cython::begin_stage"(
        trace_writer&, const string&, const string&) noexcept nogil
    void note_allocated "rmm_uvm_cython::allocated"(
        trace_writer&, int, uintptr_t, size_t, uintptr_t) noexcept nogil
    void note_freed "rmm_uvm_cython::freed"(
        trace_writer&, int, uintptr_t, size_t, uintptr_t) noexcept nogil
    void note_touched "rmm_uvm_cython::touched"(
        trace_writer&, int, uintptr_t, size_t, bool, bool) noexcept nogil
    void write_annotation "rmm_uvm_cython::annotate"(trace_writer&, const string&) noexcept nogil
    void write_samples "rmm_uvm_cython::write_samples"(
        trace_writer&, const char*, size_t) except + nogil
    const char* decode_events_chunk "rmm_uvm_cython::decode_events"(
        trace_decoder&, const char*, size_t, trace_chunk_events&) except + nogil
    const char* decode_samples_chunk "rmm_uvm_cython::decode_samples"(
        const char*, size_t, vector[sample]&) except + nogil
    vector[trace_event] follow_events "rmm_uvm_cython::follow_events"(
        live_ranges&, const char*, size_t) except + nogil
    unsigned kind_of "rmm_uvm_cython::kind_of"(const trace_mark&) noexcept nogil


cdef class TimedEvents:
    cdef shared_ptr[trace_writer] writer
    cdef shared_ptr[fake_clock] clock
    cdef uint64_t now_ns


cdef class TraceWriter(MemoryObserver):
    cdef shared_ptr[trace_writer] writer
    cdef readonly str path
