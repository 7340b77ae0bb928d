// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/presence.hpp>

#include <algorithm>

namespace rmm_uvm {

presence::presence(migration_counters const& counters,
                   budget_ledger& ledger,
                   use_clock const& clock,
                   moved_account& moved) noexcept
  : counters_{counters},
    ledger_{ledger},
    clock_{clock},
    moved_{moved},
    quiet_bytes_{counters.read().device_to_host_bytes}
{
}

bool presence::confirmed() const noexcept
{
  return confirmed_.holds.load(std::memory_order_acquire) &&
         counters_.read().device_to_host_bytes ==
           confirmed_.left_bytes.load(std::memory_order_relaxed);
}

void presence::send_away(ledger_view& view) noexcept
{
  note_sent_away();
  end(view);
}

void presence::end(ledger_view& view) noexcept
{
  confirmed_.holds.store(false, std::memory_order_release);
  if (!passes_over()) { return; }
  auto const now = clock_.now();
  view.each([&](block_record& block, memory_range whole) {
    if (!confirmed_.make_up_for(block, now)) { return; }
    view.change({whole.address, 1}, now, [](block_record&, memory_range) {});
    if (!block.fetched_ahead) { return; }
    ahead_used_bytes_ += whole.bytes;
    block.fetched_ahead = false;
  });
  confirmed_.passed_over = clock_.now();
  confirmed_.since       = never_used;
}

bool presence::is_present(ledger_view& view, memory_range range)
{
  auto const as_of = moved_.epoch();
  bool present     = true;
  view.each(range, [&](block_record const& block, memory_range) {
    present = present && block.present(as_of);
  });
  return present;
}

/** @brief Whether a use that may write a range is the first one of any of its blocks. */
bool presence::was_only_read(ledger_view& view, memory_range range)
{
  bool any = false;
  view.each(range, [&](block_record const& block, memory_range) { any = any || block.only_read; });
  return any;
}

bool presence::is_confirmed(std::span<use_event const> uses) noexcept
{
  if (!confirmed()) { return false; }
  ledger_view view{ledger_.blocks()};
  // A block of a new allocation may be missing, or on its way in another stream.
  auto const is_there = [&](use_event const& use) {
    return is_present(view, use.range) && !is_under_way(view, use.range) &&
           (use.only_read || !was_only_read(view, use.range));
  };
  return confirmed() && std::all_of(uses.begin(), uses.end(), is_there);
}

bool presence::confirm(ledger_view& view, absent_blocks& absent)
{
  absent                = {};
  auto const left_bytes = counters_.read().device_to_host_bytes;  // first: see below
  auto const as_of      = moved_.epoch();
  auto const most_bytes = ledger_.budget_bytes();
  // Past the budget somebody has to leave; and before the first use there are none to pass over.
  bool missing = ledger_.resident_bytes() > most_bytes || clock_.now() == never_used;
  view.each([&](block_record const& block, memory_range whole) {
    if (block.dead() || block.used_on_host()) { return; }
    if (block.present(as_of) && !block.busy) { return; }
    bool const there = block.place == block_place::device;
    bool const away  = block.place == block_place::host || (block.waits && !there);
    missing          = missing || !(away || there) || block.discarded || block.busy;
    if (!missing) { (away ? absent.away : absent.doubtful).push_back(whole); }
  });
  // More may be what nobody uses, in the place of what is used.
  missing = missing || absent.away.size() * va_block_bytes > most_bytes / 64;
  if (missing) { absent = {}; }
  if (missing || !absent.empty()) {
    end(view);
    return false;
  }
  if (!passes_over()) { confirmed_.since = clock_.now(); }
  // What leaves by itself meanwhile raises the counter past what is remembered.
  confirmed_.left_bytes.store(left_bytes, std::memory_order_relaxed);
  confirmed_.holds.store(true, std::memory_order_release);
  if (!ledger_.under_pressure() && !sent_away_.load(std::memory_order_relaxed)) {
    quiet_bytes_.store(left_bytes, std::memory_order_relaxed);  // what left was not ours
  }
  return true;
}

bool presence::pays_to_confirm() noexcept
{
  bool const fits  = !ledger_.under_pressure() && !sent_away_.load(std::memory_order_relaxed);
  auto const after = ledger_.blocks().slab_bytes() / va_block_bytes / 2;
  if (!fits || uses_in_doubt_ < after) { return false; }
  uses_in_doubt_ = 0;
  return true;
}

void presence::count_use(ledger_view& view, memory_range range)
{
  ++uses_in_doubt_;
  view.each(range, [&](block_record const& block, memory_range whole) {
    wanted_bytes_ += whole.bytes;
    if (block.place != block_place::device) { return; }
    present_bytes_ += whole.bytes;
    if (block.fetched_ahead) { ahead_used_bytes_ += whole.bytes; }
  });
}

void presence::turn_back(tick_shift const& shift) noexcept
{
  shift(confirmed_.since);
  shift(confirmed_.passed_over);
}

void presence::tell(residency_statistics& told) const noexcept
{
  told.wanted_bytes     = wanted_bytes_;
  told.present_bytes    = present_bytes_;
  told.ahead_used_bytes = ahead_used_bytes_;
}

}  // namespace rmm_uvm
