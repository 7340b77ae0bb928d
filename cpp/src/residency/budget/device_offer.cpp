// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/device_offer.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t offer_reserve = 16;  // a 16th of the budget is never offered: a program that
                                           // grows by little waits for nobody
constexpr std::chrono::microseconds reclaim_period{100};
constexpr std::chrono::milliseconds longest_reclaim{500};
/** @brief How often this device's own load is looked at while nothing moves. */
constexpr std::chrono::milliseconds own_load_period{100};

}  // namespace

device_offer::device_offer(uvm_driver& driver,
                           residency_settings const& settings,
                           budget_ledger& ledger,
                           work_signal& work) noexcept
  : driver_{driver}, settings_{settings}, ledger_{ledger}, work_{work}
{
  owner_.looked = std::chrono::steady_clock::now();
}

device_offer::~device_offer() { withdraw(); }

void device_offer::withdraw() noexcept
{
  if (!settings_.lends || withdrawn_.exchange(true)) { return; }
  auto const device_id = driver_.info().device_id;
  if (owner_.busy) { static_cast<void>(settings_.lender->set_busy(device_id, false)); }
  settings_.lender->withdraw(device_id);
}

void device_offer::offer_idle() noexcept
{
  if (!settings_.lends || withdrawn_) { return; }
  auto const budget_bytes = ledger_.budget_bytes();
  auto const kept_bytes   = ledger_.resident_bytes() + budget_bytes / offer_reserve;
  auto const offered      = va_block_floor(budget_bytes - std::min(budget_bytes, kept_bytes));
  if (offered == offered_bytes_) { return; }
  if (settings_.lender->offer(driver_.info().device_id, offered)) { offered_bytes_ = offered; }
}

void device_offer::await_others(ledger_view& view) noexcept
{
  if (!settings_.lends || withdrawn_) { return; }
  offer_idle();
  auto const device_id = driver_.info().device_id;
  auto const idle_bytes =
    ledger_.budget_bytes() - std::min(ledger_.budget_bytes(), ledger_.resident_bytes());
  auto const held_bytes = settings_.lender->claimed_by_others(device_id);
  if (held_bytes <= idle_bytes) {
    kept_by_others_ = any_length;
    return;
  }
  if (held_bytes >= kept_by_others_) { return; }  // they did not leave for the last request
  ++reclaims_;
  view.unlock();
  auto const begun = std::chrono::steady_clock::now();
  auto waited      = std::chrono::steady_clock::duration::zero();
  while (settings_.lender->claimed_by_others(device_id) > idle_bytes && waited < longest_reclaim) {
    std::this_thread::sleep_for(reclaim_period);
    waited = std::chrono::steady_clock::now() - begun;
  }
  auto const left_bytes = settings_.lender->claimed_by_others(device_id);
  view.relock();
  kept_by_others_ = left_bytes > idle_bytes ? left_bytes : any_length;
  reclaim_wait_ns_ += static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
}

/** @brief What a model's calls take says nothing of its links. */
bool device_offer::tells_load() const noexcept
{
  return settings_.lends && !driver_.info().simulated;
}

void device_offer::moving_begins() noexcept
{
  if (!tells_load()) { return; }
  owner_.moving.begin(std::chrono::steady_clock::now());
  if (!std::exchange(owner_.stirred, true)) { work_.call(); }  // from now on it looks often
}

void device_offer::moving_ends() noexcept
{
  if (tells_load()) { owner_.moving.end(std::chrono::steady_clock::now()); }
}

void device_offer::tell_if_busy(ledger_view& view) noexcept
{
  if (!settings_.lends) { return; }
  auto const now = std::chrono::steady_clock::now();
  if (now - owner_.looked < neighbor_memory::loads_period) { return; }
  auto const device_id = driver_.info().device_id;
  auto const moving    = owner_.moving.take_fraction(owner_.looked, now);
  owner_.looked        = now;
  owner_.stirred       = moving > 0;
  neighbor_load load;
  status told;
  bool const asks = owner_.told;
  view.unlock();  // the first look loads NVML
  if (asks) { told = driver_.read_neighbor_load(device_id, load); }
  bool const others_hold = settings_.lender->claimed_by_others(device_id) > 0;
  view.relock();
  ledger_.count_unread(told);
  if (told.code == status_code::not_supported) { owner_.told = false; }
  owner_.loads.at(owner_.count++ % owner_.loads.size()) =
    load_of_owner(moving, load.link_fraction, others_hold);
  if (owner_.count < owner_.loads.size()) { return; }
  bool const busy = wants_links(owner_.loads, neighbor_memory::links_busy, owner_.busy);
  if (busy == owner_.busy) { return; }
  // A board that has no row left may have one at the next look.
  if (settings_.lender->set_busy(device_id, busy)) { owner_.busy = busy; }
}

std::optional<std::chrono::microseconds> device_offer::look_again_in() const noexcept
{
  if (owner_.busy || owner_.stirred) { return neighbor_memory::loads_period; }
  if (settings_.lends && owner_.told) { return own_load_period; }
  return std::nullopt;
}

void device_offer::tell(residency_statistics& told) const noexcept
{
  told.reclaims        = reclaims_;
  told.reclaim_wait_ns = reclaim_wait_ns_;
}

}  // namespace rmm_uvm
