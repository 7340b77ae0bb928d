// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the manager does on its own: evict from the high watermark to the low one, fetch ahead.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>

namespace rmm_uvm {

void residency_manager::wake() noexcept
{
  if (!settings_.background) { return; }
  {
    ledger_view const view{ledger_};
    woken_ = true;
  }
  wanted_.notify_one();
}

void residency_manager::run()
{
  for (;;) {
    {
      ledger_view view{ledger_};
      working_ = false;
      changed_.notify_all();
      wanted_.wait(view.lock(), [this] { return woken_ || stopping_; });
      if (stopping_) { return; }
      woken_   = false;
      working_ = true;
    }
    run_pending();
  }
}

void residency_manager::run_pending() noexcept
try {
  while (work_once()) {}
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "migration thread"});
}

bool residency_manager::work_once()
{
  {
    ledger_view view{ledger_};
    if (stopping_) { return false; }
    auto const resident_bytes = counts_.resident_bytes - leaving_bytes_;
    if (resident_bytes <= settings_.low_bytes) { short_of_room_ = false; }
    // Only where somebody was short of room lately: what fits is not evicted for a watermark.
    if (short_of_room_ && resident_bytes > settings_.low_bytes) {
      // A piece at a time: a request that comes meanwhile finds what it needs not chosen yet.
      auto const excess_bytes = resident_bytes - settings_.low_bytes;
      auto const leaving      = choose(view, std::min(excess_bytes, settings_.piece_bytes));
      short_of_room_          = !leaving[0].empty() || !leaving[1].empty();
      return short_of_room_ &&
             (leaving[0].empty() ? leave(view, leaving[1]) : drop(view, leaving[0]));
    }
  }
  return settings_.ahead && settings_.fetch && fetch_ahead();
}

/** @brief The next blocks that are expected and away, one piece; no bytes: none. */
expected_use residency_manager::expected_next(ledger_view& view) const
{
  expected_use next;
  for (auto const& expected : predictor_->upcoming(settings_.ahead_bytes)) {
    view.each(expected.range, [&](block_record const& block, memory_range whole) {
      if (block.place == block_place::device || block.busy || block.dead()) { return; }
      if (next.range.bytes == 0) {
        next = {whole, expected.ahead};
      } else if (next.range.end() == whole.address &&
                 next.range.bytes + whole.bytes <= settings_.piece_bytes) {
        next.range.bytes += whole.bytes;
      }
    });
    if (next.range.bytes > 0) { break; }
  }
  return next;
}

bool residency_manager::fetch_ahead()
{
  expected_use next;
  {
    ledger_view view{ledger_};
    if (!prediction_.on()) { return false; }
    next = expected_next(view);
    if (next.range.bytes == 0) { return false; }
    if (counts_.resident_bytes + next.range.bytes > settings_.budget_bytes) {
      auto const leaving = choose(view, next.range.bytes);
      // Nothing leaves for it that is expected sooner.
      auto const stays = [&](viewed_block const& each) {
        auto const& block = *each.record;
        return !block.dead() && block.next_use != no_use && block.next_use >= now_ &&
               block.next_use <= now_ + next.ahead;
      };
      if ((leaving[0].empty() && leaving[1].empty()) ||
          std::any_of(leaving[1].begin(), leaving[1].end(), stays)) {
        return false;
      }
      return leaving[0].empty() ? leave(view, leaving[1]) : drop(view, leaving[0]);  // then anew
    }
  }
  stream_handle arrivals = nullptr;
  if (!driver_->own_stream(own_stream_use::arrivals, arrivals).ok()) { return false; }
  bring(next.range, {}, arrivals, reason::ahead);
  return true;
}

void residency_manager::flush() noexcept
{
  ledger_view view{ledger_};
  changed_.wait(view.lock(), [this] { return !woken_ && !working_ && leaving_bytes_ == 0; });
}

}  // namespace rmm_uvm
