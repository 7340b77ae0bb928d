// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/monitor/trace_format.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief What an event of a trace says. */
enum class trace_event_kind : std::uint8_t {
  allocate = 1,
  free,
  read,       ///< a kernel reads
  write,      ///< a kernel writes, or reads and writes
  cpu_read,   ///< the CPU reads
  cpu_write,  ///< the CPU writes, or reads and writes
};

/** @brief One event, in the layout of NumPy's rows (rmm_uvm/trace/events.py). */
struct trace_event {
  std::uint64_t time_ns{0};  ///< since the trace began
  std::uint64_t address{0};  ///< first byte
  std::uint64_t bytes{0};    ///< length
  std::uint64_t stream{0};   ///< handle
  std::int64_t id{-1};       ///< of the allocation, counted from 0; -1: not known
  std::uint32_t thread{0};   ///< the kernel's number
  std::int16_t device_id{0};
  trace_event_kind kind{trace_event_kind::allocate};
  std::uint8_t reserved{0};
};
static_assert(sizeof(trace_event) == 48 && std::is_trivially_copyable_v<trace_event>);

/** @brief A stage's begin or end, or an annotation. */
struct trace_mark {
  std::uint64_t time_ns{0};
  std::uint32_t thread{0};
  trace_mark_kind kind{trace_mark_kind::stage_begin};
  std::uint32_t name{0};         ///< index in the chunk's names
  std::uint32_t thread_name{0};  ///< the same; of a stage's begin only
};

/** @brief What is in one chunk of events. */
struct trace_chunk_events {
  std::vector<trace_event> events;
  std::vector<trace_mark> marks;
  std::vector<std::string> names;  ///< bytes, in UTF-8 if the writer did as it should
};

/**
 * @brief Reads the payloads of chunks, of which nothing is believed.
 *
 * Whatever the bytes are, nothing outside them is read, and the memory used is at most 48 bytes for
 * each of theirs (three times that for what is live). Not thread-safe.
 */
class trace_decoder {
 public:
  /**
   * @brief Reads the next chunk of events.
   * @param payload its bytes, at most `trace_largest_payload_bytes`
   * @param result what was whole, before damage too
   * @return null, or what is wrong
   * @throws std::bad_alloc if there is no memory
   */
  [[nodiscard]] char const* read_events(std::span<std::uint8_t const> payload,
                                        trace_chunk_events& result);

  /** @brief Reads a chunk of samples; the rest is as in `read_events`. */
  [[nodiscard]] static char const* read_samples(std::span<std::uint8_t const> payload,
                                                std::vector<sample>& result);

 private:
  // Ordered, since a made-up file could let every hash collide.
  std::map<std::pair<std::uint64_t, int>, std::int64_t> live_;
  std::int64_t next_id_{0};

  class chunk_reader;
};

}  // namespace rmm_uvm::monitor
