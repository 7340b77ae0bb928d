// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What others may hold of this device: how much, when they leave it, and when they better stay
// away.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t offer_reserve = 16;  // a 16th of the budget is never offered: a program that
                                           // grows by little waits for nobody
constexpr std::chrono::microseconds reclaim_period{100};
constexpr std::chrono::milliseconds longest_reclaim{500};

}  // namespace

/** @brief Tells others how much of this device they may hold: what the budget has left. */
void residency_manager::offer_idle() noexcept
{
  if (!settings_.lends) { return; }
  auto const kept_bytes = counts_.resident_bytes + settings_.budget_bytes / offer_reserve;
  auto const offered =
    va_block_floor(settings_.budget_bytes - std::min(settings_.budget_bytes, kept_bytes));
  if (offered == offered_bytes_) { return; }
  if (settings_.lender->offer(driver_->info().device_id, offered)) { offered_bytes_ = offered; }
}

/**
 * @brief Waits until others have left what this program is about to use, but not for long.
 *
 * Its own need comes first: the offer is lowered already. Where they do not leave in time the
 * kernel driver makes room, and nothing is lost.
 */
void residency_manager::await_others(ledger_view& view) noexcept
{
  if (!settings_.lends) { return; }
  offer_idle();
  auto const device_id = driver_->info().device_id;
  auto const idle_bytes =
    settings_.budget_bytes - std::min(settings_.budget_bytes, counts_.resident_bytes);
  auto const held_bytes = settings_.lender->claimed_by_others(device_id);
  if (held_bytes <= idle_bytes) {
    kept_by_others_ = ~std::size_t{0};
    return;
  }
  if (held_bytes >= kept_by_others_) { return; }  // they did not leave for the last request
  ++counts_.reclaims;
  view.lock().unlock();
  auto const begun = std::chrono::steady_clock::now();
  auto waited      = std::chrono::steady_clock::duration::zero();
  while (settings_.lender->claimed_by_others(device_id) > idle_bytes && waited < longest_reclaim) {
    std::this_thread::sleep_for(reclaim_period);
    waited = std::chrono::steady_clock::now() - begun;
  }
  auto const left_bytes = settings_.lender->claimed_by_others(device_id);
  view.lock().lock();
  kept_by_others_ = left_bytes > idle_bytes ? left_bytes : ~std::size_t{0};
  counts_.reclaim_wait_ns += static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
}

/** @brief Begins and ends a call that moves blocks over this device's links. */
void residency_manager::moving(bool begins) noexcept
{
  // What a model's calls take says nothing of its links.
  if (!settings_.lends || driver_->info().simulated) { return; }
  auto const now = std::chrono::steady_clock::now();
  if (!begins) {
    owner_.moving.end(now);
    return;
  }
  owner_.moving.begin(now);
  if (!std::exchange(owner_.stirred, true) && settings_.background) {  // from now on it looks often
    woken_ = true;
    wanted_.notify_one();
  }
}

/** @brief Looks now and then how busy this device's links are with its own work, and says so. */
void residency_manager::tell_if_busy(ledger_view& view) noexcept
{
  auto const now = std::chrono::steady_clock::now();
  if (!settings_.lends || now - owner_.looked < loads_period) { return; }
  auto const device_id = driver_->info().device_id;
  auto const moving    = owner_.moving.take_fraction(owner_.looked, now);
  owner_.looked        = now;
  owner_.stirred       = moving > 0;
  neighbor_load load;
  status told;
  bool const asks = owner_.told;
  view.lock().unlock();  // the first look loads NVML
  if (asks) { told = driver_->read_neighbor_load(device_id, load); }
  bool const others_hold = settings_.lender->claimed_by_others(device_id) > 0;
  view.lock().lock();
  count_unread(told);
  if (told.code == status_code::not_supported) { owner_.told = false; }
  owner_.loads.at(owner_.count++ % owner_.loads.size()) =
    load_of_owner(moving, load.link_fraction, others_hold);
  if (owner_.count < owner_.loads.size()) { return; }
  bool const busy = wants_links(owner_.loads, links_busy, owner_.busy);
  if (busy == owner_.busy) { return; }
  // A board that has no row left may have one at the next look.
  if (settings_.lender->set_busy(device_id, busy)) { owner_.busy = busy; }
}

}  // namespace rmm_uvm
