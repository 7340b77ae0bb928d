// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/unseen_arrivals.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

// Of a budget: so little unexplained is not looked for. What came while that is found, and others
// leave for it, stays below a hundredth.
constexpr std::size_t unlooked_part = 256;
// As many times that, after looks in vain: others' memory comes, too.
constexpr std::size_t most_times = 8;
// In one hold of the lock: 1.4 to 2.8 us each (measured on an H100).
constexpr std::size_t blocks_at_once = 32;

}  // namespace

unseen_arrivals::unseen_arrivals(parts const& all)
  : with_{all},
    can_look_{all.driver.info().host_pages.available && all.driver.counters().available().available}
{
}

bool unseen_arrivals::due() noexcept
{
  if (!possible()) { return false; }
  if (!to_look_at_.empty()) { return true; }
  auto const least = std::max(with_.ledger.budget_bytes() / unlooked_part, std::size_t{1});
  return with_.moved.look_for_beside() >= times_ * least;
}

work_outcome unseen_arrivals::look(ledger_view& view)
{
  stream_handle evictions = nullptr;
  auto const made         = with_.driver.own_stream(own_stream_use::evictions, evictions);
  if (!made.ok()) {
    cannot_look(made);
    return work_outcome::nothing;
  }
  if (!with_.driver.idle(evictions)) { return work_outcome::later; }
  if (to_look_at_.empty()) { begin(view); }
  if (to_look_at_.empty()) { return work_outcome::nothing; }
  auto const run = to_look_at_.front();
  to_look_at_.pop_front();
  // As it was when the look began, but for those that moved since.
  std::vector<memory_range> away;
  view.each(run, [&](block_record const& block, memory_range whole) {
    if (block.place != block_place::host || block.busy) { return; }
    if (!away.empty() && away.back().end() == whole.address) {
      away.back().bytes += whole.bytes;
    } else {
      away.push_back(whole);
    }
  });
  std::vector<memory_range> came;
  for (auto const& range : away) {
    if (auto const told = with_.driver.not_on_host(range, came); !told.ok()) {
      cannot_look(told);
      return work_outcome::nothing;
    }
  }
  std::size_t whole_bytes = 0;
  std::size_t came_bytes  = 0;
  for (auto const& part : came) {
    whole_bytes += adopt(view, part);
    came_bytes += part.bytes;
    with_.driver.note_faulted(part);
  }
  if (whole_bytes > 0) { with_.moved.found(whole_bytes, came_bytes); }
  came_bytes_ += came_bytes;
  if (to_look_at_.empty() || came_bytes_ >= looked_for_bytes_) { end(); }
  return work_outcome::again;
}

/** @brief Lists what is believed away, from where something was found last. */
void unseen_arrivals::begin(ledger_view& view)
{
  std::vector<memory_range> runs;
  view.each([&](block_record const& block, memory_range whole) {
    if (block.place != block_place::host) { return; }
    bool const joins = !runs.empty() && runs.back().end() == whole.address &&
                       !view.slab_begins(whole.address) &&
                       runs.back().bytes + whole.bytes <= blocks_at_once * va_block_bytes;
    if (joins) {
      runs.back().bytes += whole.bytes;
    } else {
      runs.push_back(whole);
    }
  });
  auto const first = std::find_if(
    runs.begin(), runs.end(), [this](auto const& run) { return run.end() > last_found_; });
  std::rotate(runs.begin(), first, runs.end());
  to_look_at_.assign(runs.begin(), runs.end());
  looked_for_bytes_ = with_.moved.look_for_beside();
  came_bytes_       = 0;
  ++looks_;
}

void unseen_arrivals::end() noexcept
{
  to_look_at_.clear();
  if (came_bytes_ < looked_for_bytes_) {
    // All was looked at. The rest is of blocks that were found earlier, or of other memory.
    with_.moved.not_found(looked_for_bytes_ - came_bytes_);
  }
  times_ = came_bytes_ > 0 ? 1 : std::min(2 * times_, most_times);
}

/**
 * @brief Blocks of which some pages came count as there, and as used now.
 * @return bytes of these blocks
 */
std::size_t unseen_arrivals::adopt(ledger_view& view, memory_range part)
{
  auto const now          = with_.clock.now();
  std::size_t whole_bytes = 0;
  view.change(part, now, [&](block_record& block, memory_range whole) {
    if (block.place != block_place::host || block.busy) { return; }
    block.place           = block_place::device;
    block.on_device_as_of = 0;  // some of it may be away
    block.arrived         = now;
    block.touched         = now;
    block.fetched_ahead   = false;
    with_.ledger.has_chunk(block, whole.bytes);
    with_.ledger.comes(whole.bytes);
    with_.ledger.has_room(whole.bytes);
    whole_bytes += whole.bytes;
    last_found_ = whole.address;
  });
  found_bytes_ += whole_bytes;
  if (with_.ledger.beyond_budget_bytes() > 0) { with_.room.set_short(true); }
  return whole_bytes;
}

void unseen_arrivals::cannot_look(status why) noexcept
{
  with_.ledger.count_failure(why);
  can_look_ = false;
  to_look_at_.clear();
}

void unseen_arrivals::tell(residency_statistics& told) const noexcept
{
  told.found_bytes = found_bytes_;
  told.looks       = looks_;
}

}  // namespace rmm_uvm
