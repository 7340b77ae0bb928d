// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How a budget starts, changes and ends beside a program that runs; `managed_residency` says why no
// byte is lost meanwhile.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {

void residency_manager::adopt(std::function<void()> const& publish) noexcept
{
  {
    ledger_view view{ledger_};
    view.doubt_all();
    std::size_t adopted_bytes = 0;
    view.each([&](block_record& block, memory_range whole) {
      block.adopt(whole.bytes);
      adopted_bytes += whole.bytes;
      ++untold_;
    });
    live_bytes_ += adopted_bytes;
    counts_.resident_bytes += adopted_bytes;
    counts_.peak_resident_bytes = std::max(counts_.peak_resident_bytes, counts_.resident_bytes);
    if (adopted_bytes > 0) { sent_away_.store(true, std::memory_order_release); }  // some may be
    publish();
    offered_bytes_ = ~std::size_t{0};  // a manager before this one may have withdrawn the offer
    leave_what_is_too_much();
  }
  wanted_.notify_one();
}

void residency_manager::change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept
{
  {
    ledger_view const view{ledger_};
    // While all fitted nobody marked how far the device is. To evict what is in use is slow, not
    // wrong, and else all that is there would look so until much more is used.
    if (!under_pressure()) { done_ = now_; }
    settings_.budget_bytes = budget_bytes;
    settings_.low_bytes    = low_bytes;
    counts_.budget_bytes   = budget_bytes;
    budget_bytes_.store(budget_bytes, std::memory_order_relaxed);
    settings_.ahead_bytes = std::min(settings_.ahead_bytes, budget_bytes);
    look_ahead_           = settings_.ahead_adapts
                              ? look_ahead{look_ahead_.bytes(), settings_.piece_bytes, budget_bytes / 2}
                              : look_ahead{settings_.ahead_bytes};
    lead_bytes_           = std::min(lead_bytes_, budget_bytes - low_bytes);
    leave_what_is_too_much();
  }
  wanted_.notify_one();
}

/**
 * @brief As `hand_out`, where blocks may be untold: those count as live already.
 *
 * One allocation of all of a block is all that lives in it.
 */
void residency_manager::hand_out_untold(ledger_view& view, memory_range range)
{
  view.each(range, [this, range](block_record& block, memory_range whole) {
    auto const bytes = static_cast<std::uint32_t>(bytes_in_common(range, whole));
    if (!block.untold) {
      block.live_bytes += bytes;
      return;
    }
    live_bytes_ -= std::min<std::size_t>(live_bytes_, bytes);
    if (bytes < whole.bytes) { return; }
    block.untold = false;
    --untold_;
  });
}

/**
 * @brief Before `forget` takes the live bytes of a free away: has untold blocks keep all of them.
 *
 * But for one free of all of a block, with a fence: nothing lives in it after that.
 */
void residency_manager::keep_untold(ledger_view& view, memory_range allocation, bool fenced)
{
  view.each(allocation, [&](block_record& block, memory_range whole) {
    if (!block.untold) { return; }
    auto const bytes = static_cast<std::uint32_t>(bytes_in_common(allocation, whole));
    if (fenced && bytes == whole.bytes) {
      block.untold = false;
      --untold_;
      return;
    }
    block.live_bytes += bytes;  // which is taken away next
    live_bytes_ += bytes;
  });
}

/** @brief Has the thread, or the next request, look whether more is resident than fits. */
void residency_manager::leave_what_is_too_much() noexcept
{
  offer_idle();
  if (counts_.resident_bytes <= settings_.budget_bytes) { return; }
  short_of_room_ = true;
  woken_         = woken_ || settings_.background;
}

void residency_manager::retire(std::function<void()> const& publish) noexcept
{
  {
    ledger_view view{ledger_};
    stopping_ = true;
    untold_   = ~std::size_t{0} / 2;  // blocks may be the next manager's: looked for always
    wanted_.notify_all();
    changed_.notify_all();  // who waits for the thread need not any more
    changed_.wait(view.lock(), [&view] {
      bool idle = true;
      view.each([&idle](block_record const& block, memory_range) {
        idle = idle && !block.busy && block.holds == 0;
      });
      return idle;
    });
    view.each([](block_record& block, memory_range) { block.pins = 0; });
    counts_.pinned_bytes = 0;
    view.doubt_all();
    publish();
  }
  // In a forked child there is no thread to wait for.
  if (settings_.background && thread_.joinable()) { thread_.join(); }
  leave_neighbors();
  stop_lending();
}

/** @brief Has all that lies on neighbours go to the host, and what was advised about it end. */
void residency_manager::leave_neighbors() noexcept
try {
  ledger_view view{ledger_};
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    victims there;
    view.each([&](block_record& block, memory_range whole) {
      bool const lies = block.place == block_place::beside && block.neighbor == number;
      if (lies) { there.push_back({&block, whole}); }
    });
    if (there.empty()) { continue; }
    // What cannot be moved stays there, and comes by faults: nothing is lost.
    static_cast<void>(go_back(view, number, there, departure_kind::advised));
  }
  view.doubt_all();
} catch (...) {
  count_failure_of("retire");
}

/** @brief Nobody may hold memory of this device for it any more; nothing where it lends none. */
void residency_manager::stop_lending() noexcept
{
  bool busy = false;
  {
    ledger_view const view{ledger_};
    if (!std::exchange(settings_.lends, false)) { return; }
    busy = owner_.busy;
  }
  auto const device_id = driver_->info().device_id;
  if (busy) { static_cast<void>(settings_.lender->set_busy(device_id, false)); }
  settings_.lender->withdraw(device_id);
}

}  // namespace rmm_uvm
