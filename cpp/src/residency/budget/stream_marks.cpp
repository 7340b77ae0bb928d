// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/stream_marks.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

constexpr use_tick small_uses_between_marks = 8;
// Numbers of marks: of uses first, of frees behind them.
constexpr std::size_t use_mark_count           = 64;
constexpr std::size_t free_mark_count          = mark_count - use_mark_count;
constexpr std::size_t bytes_between_free_marks = 8 * va_block_bytes;

}  // namespace

stream_marks::stream_marks(uvm_driver& driver,
                           budget_ledger& ledger,
                           use_clock const& clock,
                           presence const& present,
                           moved_account& moved) noexcept
  : driver_{driver}, ledger_{ledger}, clock_{clock}, present_{present}, moved_{moved}
{
}

void stream_marks::mark(use_tick first, std::size_t used_bytes, stream_handle stream) noexcept
try {
  placed_mark placed{};
  {
    ledger_view const view{ledger_.blocks()};
    auto const now = clock_.now();
    // One mark behind uses that were passed over tells when they are done.
    bool const settles = present_.passed_over() > done_ && marked_ <= present_.passed_over();
    bool const small   = used_bytes < va_block_bytes && now - marked_ < small_uses_between_marks;
    if (small && !settles) { return; }
    placed  = {first, marks_++ % use_mark_count};
    marked_ = now;
  }
  // Without a mark, what was used last looks in use until a later one is passed.
  auto const result = driver_.mark(placed.number, stream);
  ledger_view const view{ledger_.blocks()};
  if (!result.ok()) {
    ledger_.count_failure(result);
    return;
  }
  // The number of the first one is used anew.
  if (outstanding_.size() == use_mark_count) { outstanding_.pop_front(); }
  // The clock may have been turned back meanwhile.
  placed.tick = std::min(placed.tick, clock_.now() + 1);
  outstanding_.push_back(placed);
} catch (...) {
  ledger_.count_no_memory("mark");
}

void stream_marks::mark_frees(std::size_t freed_bytes, stream_handle frees) noexcept
try {
  fenced_frees placed{};
  {
    ledger_view const view{ledger_.blocks()};
    unmarked_bytes_ += freed_bytes;
    if (unmarked_bytes_ < bytes_between_free_marks) { return; }
    unmarked_bytes_ = 0;
    placed          = {frees_, use_mark_count + free_marks_++ % free_mark_count};
  }
  // Without a mark, discards of what was freed wait until the stream is idle.
  if (!driver_.mark(placed.number, frees).ok()) { return; }
  ledger_view const view{ledger_.blocks()};
  if (frees_marked_.size() == free_mark_count) { frees_marked_.pop_front(); }
  frees_marked_.push_back(placed);
} catch (...) {
  ledger_.count_no_memory("mark_frees");
}

void stream_marks::look() noexcept
{
  while (!outstanding_.empty() && driver_.passed(outstanding_.front().number)) {
    done_ = std::max(done_, outstanding_.front().tick - 1);
    outstanding_.pop_front();
  }
  while (!frees_marked_.empty() && driver_.passed(frees_marked_.front().number)) {
    frees_done_ = std::max(frees_done_, frees_marked_.front().frees);
    frees_marked_.pop_front();
  }
  if (asked_by_ <= done_) {
    moved_.earlier_came();
    asked_by_ = clock_.now();
  }
}

bool stream_marks::in_use(block_list const& blocks) const noexcept
{
  if (present_.passed_over() > done_) { return true; }
  return std::any_of(blocks.begin(), blocks.end(), [this](viewed_block const& each) {
    auto const& block = *each.record;  // a prefetch may be queued behind kernels
    return std::max({block.allocated, block.touched, block.prefetched}) > done_;
  });
}

bool stream_marks::frees_are_done(block_list const& blocks) const noexcept
{
  return std::all_of(blocks.begin(), blocks.end(), [this](viewed_block const& each) {
    return free_is_done(*each.record);
  });
}

void stream_marks::turn_back(tick_shift const& shift) noexcept
{
  for (auto& each : outstanding_) {
    shift(each.tick);
  }
  shift(done_);
  shift(marked_);
  shift(asked_by_);
}

}  // namespace rmm_uvm
