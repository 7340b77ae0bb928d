// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The numbers of the trace format; docs/understand/trace-format.md describes it.

namespace rmm_uvm::monitor {

/** @brief First bytes of a trace: not text, and damaged by anything that takes it for text. */
inline constexpr std::array<std::uint8_t, 8> trace_magic{
  0x89, 'U', 'V', 'M', 'T', '\r', '\n', 0x1a};
inline constexpr std::uint16_t trace_version             = 1;
inline constexpr std::uint64_t trace_tick_ns             = 1000;  ///< times are whole ticks
inline constexpr std::size_t trace_chunk_header_bytes    = 9;     ///< length, CRC-32, kind
inline constexpr std::size_t trace_largest_payload_bytes = std::size_t{1} << 20U;    ///< of a chunk
inline constexpr std::size_t trace_longest_text_bytes    = 1024;                     ///< of a name
inline constexpr std::uint64_t trace_latest_tick         = std::uint64_t{1} << 53U;  ///< 285 years

/** @brief Kinds of chunks; readers skip those that they do not know. */
enum class trace_chunk : std::uint8_t { events = 1, samples = 2, end = 3 };

/** @brief Kinds of records: the three low bits of a record's first number. */
enum class trace_record : std::uint8_t {
  allocate,        ///< address, bytes
  allocate_at,     ///< distance to an earlier allocation at the same address, bytes
  allocate_again,  ///< distance to an earlier allocation of the same address and bytes
  free,            ///< distance to the allocation
  free_at,         ///< address, bytes
  touch,           ///< flags, address, bytes
  context,         ///< index; if it is new: device, stream, thread
  mark,            ///< kind, names
};
inline constexpr unsigned trace_record_bits = 3;

inline constexpr std::uint64_t trace_touch_write  = 1;  ///< flag of a touch that writes
inline constexpr std::uint64_t trace_touch_by_cpu = 2;  ///< flag of a touch by the CPU

/** @brief Kinds of marks. */
enum class trace_mark_kind : std::uint8_t {
  stage_begin,  ///< name, name of the thread
  stage_end,    ///< nothing
  annotation,   ///< text
  kernel,       ///< name: the touches at this time are those of one kernel
};

/**
 * @brief CRC-32 as zlib and PNG compute it.
 * @param bytes what to sum up
 * @param previous the sum of what came before, 0 at the beginning
 */
[[nodiscard]] std::uint32_t trace_crc32(std::span<std::uint8_t const> bytes,
                                        std::uint32_t previous = 0) noexcept;

}  // namespace rmm_uvm::monitor
