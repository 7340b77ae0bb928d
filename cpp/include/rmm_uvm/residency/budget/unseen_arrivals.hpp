// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/budget/work_outcome.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Finds what kernels faulted in unannounced, so that it counts under the budget.
 *
 * Counters tell that bytes came, and not which. So when more came than was asked for, blocks that
 * are believed on the host are looked at: what host memory does not hold any more is on the device,
 * and counts as used just now. It moves nothing; others leave for it by the policy. It changes
 * where such blocks are said to be, and commands nothing. Under the ledger's lock.
 */
class unseen_arrivals {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    room_maker& room;
  };
  explicit unseen_arrivals(parts const& all);

  /** @brief Whether there can be any: something is away, and a look would tell. */
  [[nodiscard]] bool possible() const noexcept
  {
    return can_look_ && with_.moved.on_host_bytes() > 0;
  }
  /** @brief Whether so much came that it is looked for; a few loads. */
  [[nodiscard]] bool due() noexcept;
  /**
   * @brief Looks at some blocks, some 0.1 ms.
   * @return again: there may be more to look at; later: evictions are under way, and what leaves
   *         cannot be told from what came
   */
  [[nodiscard]] work_outcome look(ledger_view& view);

  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  void begin(ledger_view& view);
  void end() noexcept;
  [[nodiscard]] std::size_t adopt(ledger_view& view, memory_range part);
  void cannot_look(status why) noexcept;

  parts with_;
  bool can_look_;
  std::size_t times_{1};                 // what is not looked for, grown by looks in vain
  std::deque<memory_range> to_look_at_;  // runs of blocks of this look; empty: none is under way
  std::size_t looked_for_bytes_{0};      // in this look: unexplained when it began
  std::size_t came_bytes_{0};            // found in this look
  std::uintptr_t last_found_{0};         // where the next look begins: data lie together
  std::uint64_t found_bytes_{0};
  std::uint64_t looks_{0};
};

}  // namespace rmm_uvm
