// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget_sharing.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace rmm_uvm {

/** @brief What is known of a device's memory at one moment, bytes; a plain value. */
struct device_use {
  std::size_t used_bytes{0};           ///< by anybody
  std::size_t unmanaged_bytes{0};      ///< of those, told to be nobody's managed memory
  std::size_t least_managed_bytes{0};  ///< of those, managed memory of ours: at least
  std::size_t most_managed_bytes{0};   ///< the same, at most: the driver keeps memory for blocks
                                       ///< that left, and does not tell how much
  bool tells_unmanaged{true};          ///< false: `unmanaged_bytes` is not told
};

/**
 * @brief The budget that others leave, followed reading by reading; a pure rule.
 *
 * What others hold is what the driver tells of, and what it does not: its own memory, processes
 * that cannot be seen, managed memory of others. The second part is never read, but lies between
 * two bounds. It is taken to be as large as it was, unless a bound says otherwise: so what the
 * driver keeps for blocks of ours that left counts as ours, and no reading makes the budget smaller
 * and smaller.
 *
 * A budget follows at once where it has to shrink. It grows by steps, so that two who share a
 * device do not follow each other's every block. What is hidden takes no more than half of what the
 * others leave: most of it is managed memory of others, idle perhaps, which the kernel driver can
 * evict; two who share a device and do not agree have a half each then.
 *
 * Budgets that agree (`budget_sharing`) are not hidden: each has its fair share of what the others
 * leave. It grows no faster than they leave, and waits for one that does not leave only a while.
 */
class auto_budget {
 public:
  /**
   * @param most_bytes of the device, for others and us: all but a reserve
   * @param least_bytes the budget never is less
   */
  auto_budget(std::size_t most_bytes, std::size_t least_bytes) noexcept
    : most_bytes_{most_bytes}, least_bytes_{least_bytes}, budget_bytes_{most_bytes}
  {
  }

  /** @brief Takes note of a reading. @return the budget from now on */
  std::size_t follow(device_use const& now) noexcept { return follow(now, 0, {}); }
  /**
   * @brief The same beside budgets that agree with this one.
   * @param wanted_bytes what this one wants
   * @param others what they say; `now` is about this one's managed memory only
   */
  std::size_t follow(device_use now,
                     std::size_t wanted_bytes,
                     std::span<budget_share const> others) noexcept;

  /** @brief The budget now. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept { return budget_bytes_; }
  /** @brief What others are taken to hold beyond what is told. */
  [[nodiscard]] std::size_t hidden_bytes() const noexcept { return hidden_bytes_; }
  /** @brief What all budgets together have of the device, of those that agree. */
  [[nodiscard]] std::size_t left_bytes() const noexcept { return left_bytes_; }

 private:
  [[nodiscard]] std::size_t as_others_leave(std::size_t next, std::size_t others_bytes) noexcept;

  [[nodiscard]] std::size_t surely_hidden(std::size_t bound) noexcept;

  std::size_t most_bytes_;
  std::size_t least_bytes_;
  std::size_t budget_bytes_;
  std::size_t left_bytes_{most_bytes_};
  std::size_t hidden_bytes_{0};
  bool begun_{false};
  std::array<std::size_t, 32> lately_{};  // what was hidden at least, with others who agree
  std::size_t looks_{0};
  int looks_without_leaving_{0};
  std::size_t least_others_bytes_{0};  // that they had at any of those looks
};

}  // namespace rmm_uvm
