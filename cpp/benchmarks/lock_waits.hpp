// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::benchmarks {

/**
 * @brief What this thread waited for so far.
 *
 * Counted by the linker's `--wrap`: what is measured is the code as it is, with nothing in it for
 * this. A mutex that is free costs one more call.
 */
struct lock_waits {
  std::uint64_t mutex_ns{0};      ///< for mutexes that others held, asleep or letting others run
  std::uint64_t condition_ns{0};  ///< in `std::condition_variable::wait`
  std::uint64_t locked{0};        ///< mutexes taken
  std::uint64_t contended{0};     ///< of these, those that others held
  bool trying{false};             ///< the last try to take one failed
};

/** @brief This thread's; may be reset. */
[[nodiscard]] lock_waits& waits_of_this_thread() noexcept;

}  // namespace rmm_uvm::benchmarks
