// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is known to be on the device.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>

namespace rmm_uvm {

bool residency_manager::confirm_present(stream_handle stream) noexcept
try {
  if (settings_.as_kernel_driver()) { return false; }  // to that every use counts
  absent_blocks absent;
  {
    ledger_view view{ledger_};
    if (confirm(view, absent)) { return true; }
  }
  if (absent.empty() || driver_->capturing(stream) != capture_state::none) { return false; }
  // Some of them nobody announces, and they would be absent for ever. Not all at once: what is on
  // its way cannot leave for others.
  auto const most       = std::max(settings_.fetch_bytes / va_block_bytes, std::size_t{1});
  auto const bring_each = [&](range_list rest, reason why) {
    while (!rest.empty()) {
      auto const next = rest.first(std::min(most, rest.size()));
      bring(next, {}, stream, why);
      rest = rest.subspan(next.size());
    }
  };
  bring_each(absent.doubtful, reason::doubt);
  bring_each(absent.away, reason::away);
  ledger_view view{ledger_};
  return confirm(view, absent);
} catch (...) {
  count_failure_of("confirm_present");
  return false;
}

bool residency_manager::foresees() const noexcept
{
  return prediction_.on() && postponed_.size() == 0 && !confirmed_.passes_over();
}

/** @param[out] absent blocks to bring, where these are all that is missing */
bool residency_manager::confirm(ledger_view& view, absent_blocks& absent)
{
  absent                = {};
  auto const left_bytes = driver_->counters().read().device_to_host_bytes;  // first: see below
  auto const as_of      = epoch();
  // Past the budget somebody has to leave; and before the first use there are none to pass over.
  bool missing = counts_.resident_bytes > settings_.budget_bytes || now_ == never_used;
  view.each([&](block_record const& block, memory_range whole) {
    if (block.dead() || block.used_on_host()) { return; }
    if (block.present(as_of) && !block.busy) { return; }
    bool const away  = block.place == block_place::host;
    bool const there = block.place == block_place::device;
    missing          = missing || !(away || there) || block.discarded || block.busy;
    if (!missing) { (away ? absent.away : absent.doubtful).push_back(whole); }
  });
  // More may be what nobody uses, in the place of what is used.
  missing = missing || absent.away.size() * va_block_bytes > settings_.budget_bytes / 64;
  if (missing) { absent = {}; }
  if (missing || !absent.empty()) {
    end_confirmed(view);
    return false;
  }
  if (!confirmed_.passes_over()) { confirmed_.since = now_; }
  // What leaves by itself meanwhile raises the counter past what is remembered.
  confirmed_.left_bytes.store(left_bytes, std::memory_order_relaxed);
  confirmed_.holds.store(true, std::memory_order_release);
  return true;
}

/** @brief Has uses be noted again, and makes up for those that were not. */
void residency_manager::end_confirmed(ledger_view& view) noexcept
{
  confirmed_.holds.store(false, std::memory_order_release);
  if (!confirmed_.passes_over()) { return; }
  view.each([this](block_record& block, memory_range whole) {
    if (!confirmed_.make_up_for(block, now_) || !block.fetched_ahead) { return; }
    counts_.ahead_used_bytes += whole.bytes;
    block.fetched_ahead = false;
  });
  confirmed_.passed_over = now_;
  confirmed_.since       = never_used;
}

bool residency_manager::confirmed_present() const noexcept
{
  return confirmed_.holds.load(std::memory_order_acquire) &&
         driver_->counters().read().device_to_host_bytes ==
           confirmed_.left_bytes.load(std::memory_order_relaxed);
}

/** @brief Whether everything live was confirmed to be there, and what is used is among it. */
bool residency_manager::is_confirmed(std::span<use_event const> uses) noexcept
{
  if (!confirmed_present()) { return false; }
  ledger_view view{ledger_};
  // A block of a new allocation may be missing, or on its way in another stream.
  auto const is_there = [&](use_event const& use) {
    return is_present(view, use.range) && !is_under_way(view, use.range);
  };
  return confirmed_present() && std::all_of(uses.begin(), uses.end(), is_there);
}

/** @brief What was just handed out is not brought: not all that lives is there any more. */
void residency_manager::leave_to_faults(memory_range range) noexcept
{
  {
    ledger_view view{ledger_};
    end_confirmed(view);
  }
  leave_discarded(range);
}

/** @brief Whether all of a range is on the device for sure. */
bool residency_manager::is_present(ledger_view& view, memory_range range)
{
  auto const as_of = epoch();
  bool present     = true;
  view.each(range, [&](block_record const& block, memory_range) {
    present = present && block.present(as_of);
  });
  return present;
}

void residency_manager::count_presence(ledger_view& view, memory_range range)
{
  view.each(range, [&](block_record const& block, memory_range whole) {
    counts_.wanted_bytes += whole.bytes;
    if (block.place != block_place::device) { return; }
    counts_.present_bytes += whole.bytes;
    if (block.fetched_ahead) { counts_.ahead_used_bytes += whole.bytes; }
  });
}

}  // namespace rmm_uvm
