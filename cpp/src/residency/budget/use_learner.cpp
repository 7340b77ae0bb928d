// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/use_learner.hpp>

#include <algorithm>

namespace rmm_uvm {
use_learner::use_learner(eviction_policy policy,
                         use_clock& clock,
                         presence& present,
                         stream_marks& marks,
                         live_block_watch& watch,
                         last_announced& announced)
  : clock_{clock},
    present_{present},
    marks_{marks},
    watch_{watch},
    announced_{announced},
    predictor_{make_predictor(policy)}
{
}

void use_learner::hand_out(ledger_view& view, memory_range range)
{
  live_bytes_ += range.bytes;
  if (untold_ != 0) {
    hand_out_untold(view, range);
    return;
  }
  view.each(range, [range](block_record& block, memory_range whole) {
    block.live_bytes += static_cast<std::uint32_t>(bytes_in_common(range, whole));
  });
}

void use_learner::adopt(std::size_t blocks, std::size_t bytes) noexcept
{
  untold_ += blocks;
  live_bytes_ += bytes;
}

/**
 * @brief As `hand_out`, where blocks may be untold: those count as live already.
 *
 * One allocation of all of a block is all that lives in it.
 */
void use_learner::hand_out_untold(ledger_view& view, memory_range range)
{
  view.each(range, [this, range](block_record& block, memory_range whole) {
    auto const bytes = static_cast<std::uint32_t>(bytes_in_common(range, whole));
    if (!block.untold) {
      block.live_bytes += bytes;
      return;
    }
    forget_live(bytes);
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
void use_learner::keep_untold(ledger_view& view, memory_range allocation, bool fenced)
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

void use_learner::forget(ledger_view& view, memory_range allocation, free_fence fence)
{
  bool const fenced = fence.fenced && !ended_;  // the next budget's fences are others
  auto const number = fenced ? marks_.count_free() : 0;
  if (!fenced) {
    ++unfenced_frees_;
    unfenced_there_ = unfenced_there_ || fence.in_default;
  } else if (unfenced_there_ && fence.in_default && fence.unfenced == unfenced_frees_) {
    fence_earlier(view, number);
  }
  forget_live(allocation.bytes);
  if (untold_ != 0) { keep_untold(view, allocation, fenced); }
  view.change(allocation, clock_.now(), [&](block_record& block, memory_range whole) {
    auto const bytes = static_cast<std::uint32_t>(bytes_in_common(allocation, whole));
    block.live_bytes -= std::min(block.live_bytes, bytes);
    if (fenced) { block.freed = number; }
    if (!fenced) {
      block.unfenced  = true;
      block.elsewhere = block.elsewhere || !fence.in_default || ended_;
    } else if (allocation.covers(whole)) {
      // The pool had this allocation's stream wait for earlier frees of the same bytes.
      block.unfenced  = false;
      block.elsewhere = false;
    }
    if (block.dead()) { block.expect(unknown_use); }
  });
  if (!ended_ && shared_.size() > 0) { forget_shared(view, allocation); }  // else the next budget's
  // Last, since it takes memory.
  if (predictor_ == nullptr) { return; }
  if (present_.asks_nothing()) {
    postponed_.free(allocation.address);
    return;
  }
  postponed_.tell(*predictor_);
  predictor_->forget(allocation.address);
}

/** @brief A fence in the default stream is one for all that was freed there before. */
void use_learner::fence_earlier(ledger_view& view, std::uint64_t number) noexcept
{
  unfenced_there_ = false;
  view.each([number](block_record& block, memory_range) {
    if (!block.unfenced || block.elsewhere) { return; }
    block.unfenced = false;
    block.freed    = number;
  });
  view.forget_bounds();
}

/** @brief An allocation left shared blocks: they are needed when the others are. */
void use_learner::forget_shared(ledger_view& view, memory_range allocation) noexcept
{
  auto const of_edge = [&](block_record& block, memory_range whole) {
    if (!block.shared) { return; }
    if (block.dead()) {
      shared_.end(whole.address);
      block.shared = false;
    } else {
      block.expect(shared_.forget(whole.address, allocation.address, at(block, whole)));
    }
  };
  // What lies between was all of this allocation.
  auto const now = clock_.now();
  view.change({allocation.address, 1}, now, of_edge);
  auto const last = allocation.end() - 1;
  if (va_block_floor(last) != va_block_floor(allocation.address)) {
    view.change({last, 1}, now, of_edge);
  }
}

void use_learner::forget_block(block_record const& block, memory_range whole) noexcept
{
  if (block.shared) { shared_.end(whole.address); }
  if (block.untold) { --untold_; }
  forget_live(block.live_bytes);
}

void use_learner::forget_live(std::size_t bytes) noexcept
{
  live_bytes_ -= std::min(live_bytes_, bytes);
}

void use_learner::learn(ledger_view& view, use_event const& event)
{
  if (ended_) { return; }  // the next budget has a clock of its own
  present_.end_if_over(view);
  if (clock_.is_at_its_end()) { turn_back_clock(view); }
  clock_.tick();
  learnt_bytes_ += event.range.bytes;
  auto next_use    = unknown_use;
  bool no_more     = false;
  auto shown       = event;
  shown.live_bytes = live_bytes_;
  if (predictor_ != nullptr && present_.asks_nothing()) {
    postponed_.use(shown);
  } else if (predictor_ != nullptr) {
    postponed_.tell(*predictor_);
    auto const ahead = predictor_->observe(shown);
    auto const freed = predictor_->freed_after();
    no_more          = ahead == unknown_use && freed != unknown_use;
    auto const then  = no_more ? freed : ahead;
    next_use         = then < unknown_use ? clock_.now() + then : then;
    static_cast<void>(prediction_.update(predictor_->score()));
  }
  note_learnt(view, event, next_use, no_more);
}

void use_learner::note_learnt(ledger_view& view,
                              use_event const& event,
                              use_tick next,
                              bool no_more)
{
  note(view, event, next, no_more);
}

void use_learner::room_was_made(std::span<use_event const> /*uses*/) {}

void use_learner::note(ledger_view& view, use_event const& event, use_tick next, bool no_more)
{
  if (ended_) { return; }
  bool const is_new = event.kind == use_kind::allocate;
  auto const now    = clock_.now();
  if (is_new) { ++owners_; }
  bool shared = false;
  view.change(event.range, now, [&](block_record& block, memory_range whole) {
    if (block.live_bytes > bytes_in_common(event.range, whole)) {  // of others, too
      shared = true;
    } else {
      block.expect(next, no_more);
    }
    block.fetched_ahead = false;
    if (!is_new) {
      block.touched = now;
      block.note_use(event.only_read, event.range.covers(whole));
      return;
    }
    block.allocated = now;
    block.only_read = false;
    block.written   = false;
    block.owner     = owners_;
  });
  if (shared) { note_shared(view, event, {next, no_more}); }  // last, since it takes memory
}

/** @brief Notes what is expected of those blocks of a use in which others live, too. */
void use_learner::note_shared(ledger_view& view,
                              use_event const& event,
                              shared_blocks::expectation next)
{
  bool const nothing = predictor_ == nullptr || present_.asks_nothing();  // is foreseen
  view.change(event.range, clock_.now(), [&](block_record& block, memory_range whole) {
    bool const in_company = block.live_bytes > bytes_in_common(event.range, whole);
    if (!in_company) { return; }
    if (!block.shared && nothing) {
      block.expect(unknown_use);
      return;
    }
    if (!block.shared) { shared_.begin(whole.address, block.expected_use(), never_used); }
    block.shared = true;
    block.expect(shared_.use(whole.address, event.owner, next, at(block, whole)));
  });
}

/** @brief All that is longer ago than half of the clock's range is as long ago from then on. */
void use_learner::turn_back_clock(ledger_view& view) noexcept
{
  auto const shift = clock_.turn_back();
  view.each([&shift](block_record& block, memory_range) {
    for (auto* const tick :
         {&block.arrived, &block.allocated, &block.touched, &block.prefetched, &block.next_use}) {
      shift(*tick);
    }
  });
  view.forget_bounds();
  shared_.turn_back(shift);
  marks_.turn_back(shift);
  present_.turn_back(shift);
  watch_.turn_back(shift);
  announced_.turn_back(shift);
}

expected_growth use_learner::growth() const
{
  return predictor_ != nullptr && foresees() ? predictor_->growth() : expected_growth{};
}

void use_learner::tell(residency_statistics& told) const noexcept
{
  if (predictor_ != nullptr) { told.prediction = predictor_->score(); }
  told.foresees       = prediction_.on();
  told.switched_off   = prediction_.switched_off();
  told.unfenced_frees = unfenced_frees_;
}

}  // namespace rmm_uvm
