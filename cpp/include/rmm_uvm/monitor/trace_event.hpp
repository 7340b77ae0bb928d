// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace rmm_uvm::monitor {

/** @brief What an event of a trace says. */
enum class trace_event_kind : std::uint8_t {
  allocate = 1,
  free,
  read,             ///< a kernel reads
  write,            ///< a kernel writes, or reads and writes
  cpu_read,         ///< the CPU reads
  cpu_write,        ///< the CPU writes, or reads and writes
  allocate_failed,  ///< only in RMM's logs
};

/** @brief Bits of `trace_event::flags`: what contradicts earlier events. */
inline constexpr std::uint8_t trace_event_overlaps = 1;  ///< with memory that is live
/** @brief The free has another size than its allocation. */
inline constexpr std::uint8_t trace_event_other_size = 2;

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
  std::uint8_t flags{0};
};
static_assert(sizeof(trace_event) == 48 && std::is_trivially_copyable_v<trace_event>);

}  // namespace rmm_uvm::monitor
