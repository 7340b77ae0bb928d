// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/auto_budget.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/wanted_bytes.hpp>
#include <rmm_uvm/residency/budget_sharing.hpp>
#include <rmm_uvm/residency/live_blocks.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace rmm_uvm {

/**
 * @brief Has a budget follow what others take of the device and give back.
 *
 * It reads the device's memory now and then, and says how large the budget is to be
 * (`auto_budget`). With other budgets that follow it agrees about shares, where they meet
 * (`budget_sharing`). It moves nothing. Under the ledger's lock, which it gives up while it reads.
 */
class budget_follower {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    std::shared_ptr<budget_sharing> sharing;               ///< null: it agrees with nobody
    std::function<void(std::size_t budget_bytes)> change;  ///< called under the lock
  };
  explicit budget_follower(parts all);
  budget_follower(budget_follower const&)            = delete;
  budget_follower& operator=(budget_follower const&) = delete;
  budget_follower(budget_follower&&)                 = delete;
  budget_follower& operator=(budget_follower&&)      = delete;
  ~budget_follower() { leave(); }

  /** @brief Whether the budget follows anything. */
  [[nodiscard]] bool follows() const noexcept { return with_.settings.followed_bytes > 0; }
  /** @brief Whether others that follow have a part of the device, as of the last look. */
  [[nodiscard]] bool shares() const noexcept { return sharers_ > 0; }
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
  /** @brief After an allocation, which may have made a peak of what is wanted. */
  void allocated(ledger_view& view, std::size_t bytes);
  /** @brief The program is at work, though nobody asks for anything. Takes no lock. */
  void note_use() noexcept
  {
    if (!used_.load(std::memory_order_relaxed)) { used_.store(true, std::memory_order_relaxed); }
  }
  /** @brief The program wants nothing until its next use, and others are told so; under the lock.
   */
  void sleep() noexcept
  {
    used_.store(false, std::memory_order_relaxed);
    wanted_.sleep();
    look_soon();
  }
  /** @brief The program is at work again; the next look is due, under the lock. */
  void wake() noexcept
  {
    note_use();
    look_soon();
  }
  /** @brief Others need not reckon with this budget any more. */
  void leave() noexcept;
  /** @brief In a forked child: whoever was looking is not there. */
  void is_alone() noexcept { looking_ = false; }
  /** @brief When the thread is to look again; none: it follows nothing. */
  [[nodiscard]] std::optional<std::chrono::microseconds> look_again_in() const noexcept;
  /** @brief Fills in what others hold, and how often the budget followed. */
  void tell(residency_statistics& told) const noexcept;

 private:
  using clock = std::chrono::steady_clock;

  void look_soon() noexcept { looked_ = clock::time_point{}; }
  bool look(ledger_view& view);
  [[nodiscard]] std::size_t take_wanted(ledger_view& view);
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
  wanted_watch wanted_;
  live_block_watch live_;
  std::size_t resident_bytes_{0};
  std::atomic<bool> used_{false};
  std::array<budget_share, budget_sharing::most_others> others_{};
  std::size_t sharers_{0};  // of them
  std::uint64_t changes_{0};
};

}  // namespace rmm_uvm
