// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/owner_load.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmm_uvm {

/**
 * @brief What others may hold of this device: how much, when they leave, when they stay away.
 *
 * It offers what the budget has left, and says when the device's links are busy with this program's
 * own work. It moves nothing. Under the ledger's lock; where it asks or waits it gives that up.
 */
class device_offer {
 public:
  device_offer(uvm_driver& driver,
               residency_settings const& settings,
               budget_ledger& ledger,
               work_signal& work) noexcept;
  device_offer(device_offer const&)            = delete;
  device_offer& operator=(device_offer const&) = delete;
  device_offer(device_offer&&)                 = delete;
  device_offer& operator=(device_offer&&)      = delete;
  /** @brief Withdraws the offer. */
  ~device_offer();

  /** @brief Withdraws the offer for good, and takes no lock. */
  void withdraw() noexcept;
  /** @brief Has the next offer be told whatever was told before: another may have withdrawn it. */
  void renew() noexcept { offered_bytes_ = any_length; }
  /** @brief Tells others how much of this device they may hold: what the budget has left. */
  void offer_idle() noexcept;
  /**
   * @brief Waits until others have left what this program is about to use, but not for long.
   *
   * Its own need comes first: the offer is lowered already. Where they do not leave in time the
   * kernel driver makes room, and nothing is lost.
   */
  void await_others(ledger_view& view) noexcept;
  /** @brief A call begins that moves blocks over this device's links. */
  void moving_begins() noexcept;
  /** @brief Such a call has ended. */
  void moving_ends() noexcept;
  /** @brief Looks now and then how busy this device's links are with its own work, and says so. */
  void tell_if_busy(ledger_view& view) noexcept;
  /** @brief When the thread is to look again; none: nobody has to. */
  [[nodiscard]] std::optional<std::chrono::microseconds> look_again_in() const noexcept;
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  [[nodiscard]] bool tells_load() const noexcept;

  uvm_driver& driver_;
  residency_settings const& settings_;
  budget_ledger& ledger_;
  work_signal& work_;
  std::atomic<bool> withdrawn_{false};
  owner_watch owner_;
  std::size_t kept_by_others_{any_length};  // so much they held when they were last waited for
  std::size_t offered_bytes_{any_length};   // to others, at last
  std::uint64_t reclaims_{0};
  std::uint64_t reclaim_wait_ns_{0};
};

}  // namespace rmm_uvm
