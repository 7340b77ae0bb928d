// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

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
 * evict; two who share a device have a half each then.
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
  std::size_t follow(device_use const& now) noexcept;

  /** @brief The budget now. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept { return budget_bytes_; }
  /** @brief What others are taken to hold beyond what is told. */
  [[nodiscard]] std::size_t hidden_bytes() const noexcept { return hidden_bytes_; }

 private:
  std::size_t most_bytes_;
  std::size_t least_bytes_;
  std::size_t budget_bytes_;
  std::size_t hidden_bytes_{0};
};

}  // namespace rmm_uvm
