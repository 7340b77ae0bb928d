// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief A CUDA stream handle, opaque to everything above the CUDA driver.
 *
 * Handles are passed on at once, and kept for no call: 0x2 (per-thread default) is another stream
 * on another thread, and a destroyed stream's handle may be given out again.
 */
using stream_handle = void*;

/** @brief Whether work issued to a stream is being recorded instead of run. */
enum class capture_state : std::uint8_t {
  none,       ///< work runs
  capturing,  ///< the stream records a graph; driver calls would end or spoil the capture
  implied,    ///< the legacy stream, while a stream that waits for it captures: as `capturing`
  unknown     ///< it cannot be known
};

/** @brief What a driver's own streams are for: work for one does not wait for another's. */
enum class own_stream_use : std::uint8_t {
  evictions,  ///< migrations to the host
  discards,   ///< what is dropped; it waits for no other stream, or discards would be put off
  arrivals,   ///< what is fetched before anybody waits for it
  frees       ///< nothing but waits: behind every free of what may be discarded
};
inline constexpr std::size_t mark_count       = 96;  ///< numbers of `uvm_driver::mark`
inline constexpr std::size_t own_stream_count = 4;   ///< number of `own_stream_use` values

}  // namespace rmm_uvm
