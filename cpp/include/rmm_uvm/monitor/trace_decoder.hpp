// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/live_ranges.hpp>
#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/monitor/trace_event.hpp>
#include <rmm_uvm/monitor/trace_format.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm::monitor {

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
  live_ranges live_;

  class chunk_reader;
};

}  // namespace rmm_uvm::monitor
