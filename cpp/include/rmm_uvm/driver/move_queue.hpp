// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/migration_events.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm {

/** @brief Pages that moved between the host and the device, and why. */
struct seen_move {
  memory_range within;  ///< the pages, or what they are part of
  std::uint64_t bytes{0};
  bool to_device{false};
  migration_cause cause{migration_cause::unknown};
};

/**
 * @brief Tells which pages move, for short windows: kernels that fault take longer meanwhile.
 *
 * For one thread. In a forked child it tells nothing.
 */
class move_queue {
 public:
  static constexpr std::size_t most_moves = std::size_t{1}
                                            << 14U;  ///< in a window; others are lost

  move_queue()                             = default;
  move_queue(move_queue const&)            = delete;
  move_queue& operator=(move_queue const&) = delete;
  move_queue(move_queue&&)                 = delete;
  move_queue& operator=(move_queue&&)      = delete;
  virtual ~move_queue()                    = default;

  /** @brief Opens a window. */
  [[nodiscard]] virtual availability begin() = 0;
  /**
   * @brief Closes it, and adds what moved in it.
   * @return how many moves were lost
   * @throws std::bad_alloc; the window is closed then, too
   */
  virtual std::uint64_t end(std::vector<seen_move>& moves) = 0;
};

/** @brief A queue, or why there is none. */
struct opened_move_queue {
  std::unique_ptr<move_queue> queue;  ///< null when not opened
  availability opened;
};

}  // namespace rmm_uvm
