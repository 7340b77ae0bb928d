// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace rmm_uvm {

/** @brief What one budget that follows others says of itself, bytes; a plain value. */
struct budget_share {
  std::size_t wanted_bytes{0};  ///< its program's live data, and some room
  std::size_t least_bytes{0};   ///< on the device for sure
  std::size_t most_bytes{0};    ///< what the driver keeps for it, at most
  std::size_t there_bytes{0};   ///< on the device, with what is on its way from there
};

/**
 * @brief Where the budgets of one device that follow others tell each other what they want.
 *
 * Calls are cheap and thread-safe, and take no lock of the CUDA driver.
 */
class budget_sharing {
 public:
  static constexpr std::size_t most_others = 63;

  budget_sharing()                                 = default;
  budget_sharing(budget_sharing const&)            = delete;
  budget_sharing& operator=(budget_sharing const&) = delete;
  budget_sharing(budget_sharing&&)                 = delete;
  budget_sharing& operator=(budget_sharing&&)      = delete;
  virtual ~budget_sharing()                        = default;

  /** @brief Says what this budget wants and holds from now on. @return whether it stands there */
  virtual bool tell(budget_share const& mine) noexcept = 0;
  /** @brief Ends that. */
  virtual void withdraw() noexcept = 0;
  /** @brief What the others say, those that live. @return how many there are, `found` at most */
  [[nodiscard]] virtual std::size_t others(std::span<budget_share> found) noexcept = 0;
};

/**
 * @brief The part of `shared_bytes` of one who wants `mine`, beside others; a pure rule.
 *
 * Nobody gets more than he wants while another lacks, and those who lack get equal parts. What
 * nobody wants is divided equally.
 */
[[nodiscard]] std::size_t fair_share(std::size_t shared_bytes,
                                     std::size_t mine,
                                     std::span<budget_share const> others) noexcept;

}  // namespace rmm_uvm
