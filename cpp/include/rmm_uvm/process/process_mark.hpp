// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/forks.hpp>

#include <cstdint>

namespace rmm_uvm {

/**
 * @brief Tells, at the cost of two loads, whether this is the process that made the object.
 *
 * Asking the system for the process' number costs a call of it, each time.
 */
class process_mark {
 public:
  process_mark() noexcept;

  /** @brief False in a child of the process that made it, and in children of the child. */
  [[nodiscard]] bool here() const noexcept
  {
    return made_after_ == forks_of_process.behind.load(std::memory_order_relaxed);
  }

 private:
  std::uint64_t made_after_;  // so many forks
};

}  // namespace rmm_uvm
