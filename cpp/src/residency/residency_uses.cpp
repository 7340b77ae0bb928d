// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a use tells: when its blocks were used last, and when they are needed next; and the clock.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

/**
 * @brief When a block that several allocations share is needed next.
 *
 * Where one of them was not foreseen, it is taken to be needed soon: it was used in company.
 */
[[nodiscard]] use_tick soonest(use_tick others, use_tick next_use, use_tick now) noexcept
{
  constexpr use_tick soon = 16;  // of 4, 16 and 64 the one that moved least on a recorded ETL
  if (others >= unknown_use || others <= now) { others = now + soon; }
  return std::min(others, next_use);
}

}  // namespace

void residency_manager::learn(ledger_view& view, use_event const& event)
{
  if (stopping_) { return; }  // the next manager has a clock of its own
  if (confirmed_.passes_over() && !confirmed_present()) { end_confirmed(view); }
  if (now_ >= settings_.clock_end) { turn_back_clock(view); }
  ++now_;
  auto next_use    = unknown_use;
  bool no_more     = false;
  auto shown       = event;
  shown.live_bytes = live_bytes_;
  if (predictor_ != nullptr && postpones_learning()) {
    postponed_.use(shown);
  } else if (predictor_ != nullptr) {
    postponed_.tell(*predictor_);
    auto const ahead = predictor_->observe(shown);
    auto const freed = predictor_->freed_after();
    no_more          = ahead == unknown_use && freed != unknown_use;
    auto const then  = no_more ? freed : ahead;
    next_use         = then < unknown_use ? now_ + then : then;
    static_cast<void>(prediction_.update(predictor_->score()));
  }
  // There, what a request finds leaves for it like others, if its last use is over: see note_uses.
  if (!settings_.as_kernel_driver()) { note_use(view, event, next_use, no_more); }
}

/**
 * @brief Moves the clock of uses back before it wraps. The order of uses stays.
 *
 * All that is longer ago than half of its range is as long ago from then on.
 */
void residency_manager::turn_back_clock(ledger_view& view) noexcept
{
  auto const by   = now_ - settings_.clock_end / 2;
  auto const back = [by](use_tick& tick) {
    if (tick == never_used || tick >= unknown_use) { return; }
    tick = tick > by ? tick - by : never_used + 1;
  };
  view.each([&back](block_record& block, memory_range) {
    for (auto* const tick :
         {&block.arrived, &block.allocated, &block.touched, &block.prefetched, &block.next_use}) {
      back(*tick);
    }
  });
  for (auto& each : outstanding_) {
    back(each.tick);
  }
  for (auto* const tick : {&now_,
                           &done_,
                           &marked_,
                           &asked_by_,
                           &confirmed_.since,
                           &confirmed_.passed_over,
                           &live_blocks_.round,
                           &live_blocks_.before}) {
    back(*tick);
  }
}

void residency_manager::note_uses(std::span<use_event const> uses)
{
  if (!settings_.as_kernel_driver()) { return; }  // noted before room was made
  ledger_view view{ledger_};
  if (stopping_) { return; }
  for (auto const& use : uses) {
    if (use.range.bytes > 0 && view.holds(use.range.address)) {
      note_use(view, use, unknown_use, false);
    }
  }
}

void residency_manager::note_use(ledger_view& view,
                                 use_event const& event,
                                 use_tick next_use,
                                 bool no_more)
{
  bool const is_new = event.kind == use_kind::allocate;
  if (is_new) { ++owners_; }
  view.each(event.range, [&](block_record& block, memory_range whole) {
    if (block.live_bytes > bytes_in_common(event.range, whole)) {  // of others, too
      block.expect(soonest(block.expected_use(), no_more ? unknown_use : next_use, now_));
    } else {
      block.expect(next_use, no_more);
    }
    block.fetched_ahead = false;
    if (!is_new) {
      block.touched = now_;
      return;
    }
    block.allocated = now_;
    block.owner     = owners_;
  });
}

}  // namespace rmm_uvm
