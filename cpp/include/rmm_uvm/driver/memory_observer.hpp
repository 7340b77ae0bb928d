// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/stream.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/** @brief What happened to the contents of managed memory. */
enum class traffic : std::uint8_t {
  asked,      ///< a driver was asked for it on the device; what was there already did not move
  brought,    ///< it came to the device, because somebody asked for it
  faulted,    ///< it came to the device by page faults
  evicted,    ///< it left the device for the host or another GPU
  read_back,  ///< it went to the host, because the CPU used it
  dropped,    ///< it was discarded, so that nothing is copied when it leaves
  renewed     ///< it was discarded and asked for on the device, so that nothing is copied
};

/**
 * @brief Is told of every allocation, free, known touch and known move. For traces and accounts.
 *
 * Called on the thread that allocates or moves, so it must be quick. Thread-safe; never throws.
 */
class memory_observer {
 public:
  memory_observer()                                  = default;
  memory_observer(memory_observer const&)            = delete;
  memory_observer& operator=(memory_observer const&) = delete;
  memory_observer(memory_observer&&)                 = delete;
  memory_observer& operator=(memory_observer&&)      = delete;
  virtual ~memory_observer()                         = default;

  /** @brief Memory was allocated on device `device_id`. */
  virtual void allocated(int device_id, memory_range range, stream_handle stream) noexcept = 0;
  /** @brief Memory is about to be freed. */
  virtual void freed(int device_id, memory_range range, stream_handle stream) noexcept = 0;
  /** @brief A kernel (or, `by_cpu`, the host) accesses a range. */
  virtual void touched(int device_id, memory_range range, bool write, bool by_cpu) noexcept = 0;
  /**
   * @brief So many bytes of a range moved, in no known pages of it if they are fewer than it has.
   *
   * Called with locks down to those of a simulated device.
   */
  virtual void moved(memory_range within, std::size_t bytes, traffic what) noexcept
  {
    static_cast<void>(within);
    static_cast<void>(bytes);
    static_cast<void>(what);
  }
  /** @brief Whether it ignores what it is told from now on, so that another may take its place. */
  [[nodiscard]] virtual bool finished() const noexcept { return false; }
};

}  // namespace rmm_uvm
