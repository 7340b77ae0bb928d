// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/auto_budget.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace rmm_uvm {

/**
 * @brief Has a budget follow what others take of the device and give back.
 *
 * It reads the device's memory now and then, and says how large the budget is to be
 * (`auto_budget`). It moves nothing. Under the ledger's lock, which it gives up while it reads.
 */
class budget_follower {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    std::function<void(std::size_t budget_bytes)> change;  ///< called under the lock
  };
  explicit budget_follower(parts all);

  /** @brief Whether the budget follows anything. */
  [[nodiscard]] bool follows() const noexcept { return with_.settings.followed_bytes > 0; }
  /**
   * @brief Looks if it is time to: soon again while the budget may bind, else now and then.
   * @return whether the budget changed
   */
  bool look_if_due(ledger_view& view);
  /**
   * @brief The first look, before anybody asks the budget: all slabs that are there may have their
   * memory on the device. None is looked at before.
   */
  void begin(ledger_view& view);
  /** @brief In a forked child: whoever was looking is not there. */
  void is_alone() noexcept { looking_ = false; }
  /** @brief When the thread is to look again; none: it follows nothing. */
  [[nodiscard]] std::optional<std::chrono::microseconds> look_again_in() const noexcept;
  /** @brief Fills in what others hold, and how often the budget followed. */
  void tell(residency_statistics& told) const noexcept;

 private:
  using clock = std::chrono::steady_clock;

  bool look(ledger_view& view);
  [[nodiscard]] status read(device_use const& before, device_use& use) noexcept;
  [[nodiscard]] std::size_t least_managed_bytes() noexcept;
  [[nodiscard]] std::size_t most_managed_bytes() const noexcept;
  [[nodiscard]] clock::duration period() const noexcept;

  parts with_;
  auto_budget rule_;
  bool begun_{false};
  bool looking_{false};
  int failures_{0};  // of NVML, in a row
  bool tells_unmanaged_{true};
  clock::time_point looked_;
  std::array<std::size_t, 16> lately_{};  // what was on the device at the latest looks, at least
  std::size_t looks_{0};
  device_use last_;
  std::uint64_t changes_{0};
};

}  // namespace rmm_uvm
