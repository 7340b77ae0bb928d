// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/stream.hpp>

namespace rmm_uvm {

/**
 * @brief Is told of every allocation, free and known touch. For traces.
 *
 * Called on the thread that allocates, so it must be quick. Thread-safe; never throws.
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
  /** @brief Whether it ignores what it is told from now on, so that another may take its place. */
  [[nodiscard]] virtual bool finished() const noexcept { return false; }
};

}  // namespace rmm_uvm
