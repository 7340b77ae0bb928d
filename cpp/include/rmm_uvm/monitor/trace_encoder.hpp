// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/monitor/trace_format.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief Who did something, where. */
struct trace_context {
  std::int32_t device_id{-1};  ///< CUDA ordinal; -1 where there is none
  std::uint32_t thread{0};     ///< the kernel's number
  std::uint64_t stream{0};     ///< handle

  friend bool operator==(trace_context const&, trace_context const&) noexcept = default;
};

/**
 * @brief Turns events into the bytes of a chunk, small. Pure: no file, no clock, no lock.
 *
 * Every chunk can be read without the ones before it. Memory is fixed, but for names. A program
 * allocates the same bytes at the same address again and again, so a table of recent allocations
 * lets most records be a kind, a time and a distance. Not thread-safe.
 */
class trace_encoder {
 public:
  /** @brief A chunk is full from here on: long enough for repetitions, short enough to lose. */
  static constexpr std::size_t full_bytes = std::size_t{64} << 10U;

  trace_encoder();

  // Times are ticks; one that goes back is taken for the latest. The answer is false, and nothing
  // is written, for addresses, sizes (2^60 and more) or devices (32768 and more) that there are
  // not.
  bool allocated(std::uint64_t tick, trace_context const& context, memory_range range) noexcept;
  bool freed(std::uint64_t tick, trace_context const& context, memory_range range) noexcept;
  bool touched(std::uint64_t tick,
               trace_context const& context,
               memory_range range,
               std::uint64_t flags) noexcept;
  /**
   * @brief A mark; names are cut at `trace_longest_text_bytes`.
   * @param name of a stage that begins, or the text of an annotation
   * @param second the thread's name, of a stage that begins
   * @throws std::bad_alloc if there is no memory to keep a name; nothing is written then
   */
  void mark(std::uint64_t tick,
            trace_context const& context,
            trace_mark_kind kind,
            std::string_view name   = {},
            std::string_view second = {});

  [[nodiscard]] bool full() const noexcept { return size() >= full_bytes; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /**
   * @brief Exchanges the chunk for `buffer` and begins a new one. Room for a chunk's header is left
   *        before the payload.
   * @pre `buffer` is from `make_buffer` or an earlier `take`
   */
  void take(std::vector<std::uint8_t>& buffer) noexcept;
  /** @brief A buffer for `take`. */
  [[nodiscard]] static std::vector<std::uint8_t> make_buffer();

 private:
  struct recent {
    std::uint64_t address{0};
    std::uint64_t bytes{0};
    std::uint64_t number{0};  // of the allocation, counted over all chunks, from 1
    std::int32_t device_id{-1};
  };
  struct known_context {
    trace_context context;
    std::uint64_t chunk{0};
    std::uint64_t index{0};
  };

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] recent& slot_of(std::uint64_t address) noexcept;
  [[nodiscard]] bool holds(recent const& slot,
                           trace_context const& context,
                           memory_range range) const noexcept;
  void put(std::uint64_t value) noexcept;
  void begin(std::uint64_t tick, trace_record kind, trace_context const& context) noexcept;
  void begin(std::uint64_t tick, trace_record kind) noexcept;
  void enter(std::uint64_t tick, trace_context const& context) noexcept;
  void put_range(memory_range range) noexcept;
  [[nodiscard]] std::uint64_t& index_of(std::string_view name);
  void put_name(std::uint64_t& index, std::string_view name) noexcept;
  void restart() noexcept;

  std::vector<std::uint8_t> buffer_;
  std::uint8_t* cursor_{nullptr};
  std::vector<recent> recents_;
  std::array<known_context, 64> contexts_{};
  std::unordered_map<std::string, std::uint64_t> names_;
  trace_context current_;
  bool entered_{false};
  std::uint64_t chunk_{1};
  std::uint64_t context_count_{0};
  std::uint64_t name_count_{0};
  std::uint64_t tick_{0};
  std::uint64_t next_address_{0};
  std::uint64_t allocations_{0};        // of all chunks
  std::uint64_t chunk_allocations_{0};  // before this chunk
};

/** @brief Most samples in one chunk. */
inline constexpr std::size_t trace_most_samples = 1024;

/**
 * @brief Turns samples into the payload of a chunk.
 * @pre at most `trace_most_samples`
 * @throws std::bad_alloc if there is no memory for it
 */
[[nodiscard]] std::vector<std::uint8_t> encode_samples(std::span<sample const> samples);

}  // namespace rmm_uvm::monitor
