// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How a budget starts, changes and ends beside a program that runs; `managed_residency` says why no
// byte is lost meanwhile.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>

namespace rmm_uvm {

void residency_manager::adopt(std::function<void()> const& publish) noexcept
{
  ledger_view view{ledger_.blocks()};
  follower_.begin(view);  // first: it gives up the lock
  view.doubt_all();
  std::size_t adopted_bytes = 0;
  std::size_t blocks        = 0;
  view.each([&](block_record& block, memory_range whole) {
    block.adopt(whole.bytes);
    ledger_.has_chunk(block, whole.bytes);
    adopted_bytes += whole.bytes;
    ++blocks;
  });
  view.forget_bounds();
  uses_->adopt(blocks, adopted_bytes);
  ledger_.adopt(adopted_bytes);
  if (adopted_bytes > 0) { present_.note_sent_away(); }  // some may be
  publish();
  offer_.renew();
  leave_what_is_too_much();
}

void residency_manager::change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept
{
  ledger_view const view{ledger_.blocks()};
  resize(budget_bytes, low_bytes);
}

/** @brief The same with the ledger's lock. */
void residency_manager::resize(std::size_t budget_bytes, std::size_t low_bytes) noexcept
{
  // While all fitted nobody marked how far the device is. To evict what is in use is slow, not
  // wrong, and else all that is there would look so until much more is used.
  if (!ledger_.under_pressure()) { marks_.take_all_as_done(); }
  ledger_.set_budget(budget_bytes, low_bytes);
  settings_.budget_bytes = budget_bytes;
  settings_.low_bytes    = low_bytes;
  settings_.ahead_bytes  = std::min(asked_ahead_bytes_, budget_bytes);
  ahead_                 = settings_.ahead_adapts
                             ? look_ahead{ahead_.bytes(), settings_.piece_bytes, budget_bytes / 2}
                             : look_ahead{settings_.ahead_bytes};
  leave_what_is_too_much();
}

/** @brief Has the thread, or the next request, look whether more is resident than fits. */
void residency_manager::leave_what_is_too_much() noexcept
{
  offer_.offer_idle();
  if (ledger_.resident_bytes() <= ledger_.budget_bytes()) { return; }
  room_.set_short(true);
  signal_.call();
}

void residency_manager::retire(std::function<void()> const& publish) noexcept
{
  {
    ledger_view view{ledger_.blocks()};
    ledger_.end();
    uses_->end();
    waiting_.note_use();  // no kernel is asked about any more
    signal_.look();
    ledger_.tell_change();  // who waits for the thread need not any more
    ledger_.wait_for_change(view, [&view] {
      bool idle = true;
      view.each([&idle](block_record const& block, memory_range) {
        idle = idle && !block.busy && block.holds == 0;
      });
      return idle;
    });
    ledger_.close();
    view.each([](block_record& block, memory_range) { block.pins = 0; });
    view.doubt_all();
    publish();
  }
  if (settings_.background) { thread_.stop(); }  // in a forked child there is none to wait for
  end_our_advice();
  offer_.withdraw();
  ledger_view const view{ledger_.blocks()};
  follower_.leave();
}

/** @brief Has what lies on neighbours go to the host; no mapping and no copy of ours stays. */
void residency_manager::end_our_advice() noexcept
try {
  ledger_view view{ledger_.blocks()};
  mappings_.end_all(view);
  copies_.end_all(view);
  back_.give_all_back(view);  // what cannot be moved stays, and comes by faults: nothing is lost
  view.doubt_all();
} catch (...) {
  ledger_.count_no_memory("retire");
}

}  // namespace rmm_uvm
