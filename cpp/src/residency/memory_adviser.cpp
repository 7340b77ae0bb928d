// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/memory_adviser.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr status no_memory{status_code::out_of_memory, 0, "memory_adviser"};

/** @brief The blocks that lie wholly in a range; slabs' ends do not count as those of a block. */
[[nodiscard]] memory_range whole_blocks(memory_range range) noexcept
{
  auto const begin = va_block_ceil(range.address);
  auto const end   = va_block_floor(range.end());
  return {begin, end > begin ? end - begin : 0};
}

/** @brief Adds a block to ascending runs, joined with the last one where they meet. */
void append(std::vector<memory_range>& runs, memory_range block)
{
  if (!runs.empty() && runs.back().end() == block.address) {
    runs.back().bytes += block.bytes;
  } else {
    runs.push_back(block);
  }
}

/** @brief The later of two answers that matters. */
void keep_failure(status& kept, status result) noexcept
{
  if (!result.ok()) { kept = result; }
}

}  // namespace

memory_adviser::memory_adviser(std::shared_ptr<uvm_driver> driver, residency_ledger& ledger)
  : driver_{std::move(driver)}, ledger_{ledger}
{
}

/** @brief Enters advice in the ledger, and counts the blocks that have any. */
void memory_adviser::note(memory_range blocks, advice_change change) noexcept
{
  ledger_view view{ledger_};
  view.each(blocks, [&](block_record& block, memory_range) {
    bool const before = block.advised();
    if (change.read_mostly) { block.read_mostly = *change.read_mostly; }
    if (change.preferred) { block.preferred = *change.preferred; }
    if (!before && block.advised()) { ++advised_blocks_; }
    if (before && !block.advised()) { --advised_blocks_; }
  });
}

/** @brief Tells the driver about whole blocks of one slab. */
status memory_adviser::tell(memory_range blocks, advice_change change) noexcept
{
  // Entered before it is in effect, and deleted after: what is in effect is always entered.
  if (change.read_mostly) {
    advice_change const only{change.read_mostly, std::nullopt};
    auto const what = memory_advice::read_mostly;
    if (*change.read_mostly) { note(blocks, only); }
    auto const result = driver_->advise(
      blocks, *change.read_mostly ? what : memory_advice::unset_read_mostly, location::host());
    if (!result.ok()) { return result; }
    if (!*change.read_mostly) {
      note(blocks, only);
      ledger_.doubt(blocks);  // one copy stayed, and that may be the host's
    }
  }
  if (change.preferred) {
    advice_change const only{std::nullopt, change.preferred};
    if (*change.preferred == preferred_place::none) {
      auto const result =
        driver_->advise(blocks, memory_advice::unset_preferred_location, location::host());
      if (!result.ok()) { return result; }
      note(blocks, only);
    } else {
      note(blocks, only);
      auto const where = *change.preferred == preferred_place::host
                           ? location::host()
                           : location::device(driver_->info().device_id);
      return driver_->advise(blocks, memory_advice::preferred_location, where);
    }
  }
  return {};
}

advice_outcome memory_adviser::advise(memory_range range, advice_change change) noexcept
try {
  std::lock_guard const lock{telling_};
  advice_outcome outcome;
  while (range.bytes > 0) {
    auto const slab = ledger_.slab_of(range.address);
    if (!slab) { break; }
    memory_range const part{range.address, std::min(range.end(), slab->end()) - range.address};
    range             = {part.end(), range.end() - part.end()};
    auto const blocks = whole_blocks(part);
    if (blocks.bytes == 0) { continue; }
    outcome.whole_bytes += blocks.bytes;
    bool const takes_any = driver_->info().concurrent_managed_access.available;
    auto const told =
      takes_any ? tell(blocks, change) : status{status_code::not_supported, 0, "advise"};
    if (told.ok()) {
      outcome.advised_bytes += blocks.bytes;
    } else {
      outcome.failure = told;
      // What cannot be taken back now stays entered, and is tried again when it is freed.
      static_cast<void>(take_back_blocks(blocks));
    }
  }
  return outcome;
} catch (...) {  // no list of blocks could be made
  return {0, 0, no_memory};
}

status memory_adviser::take_back_blocks(memory_range range)
{
  std::vector<memory_range> copied;
  std::vector<memory_range> placed;
  {
    ledger_view view{ledger_};
    view.each(range, [&](block_record const& block, memory_range whole) {
      if (block.read_mostly) { append(copied, whole); }
      if (block.preferred != preferred_place::none) { append(placed, whole); }
    });
  }
  status failure;
  for (auto const& run : placed) {
    keep_failure(failure, tell(run, {std::nullopt, preferred_place::none}));
  }
  for (auto const& run : copied) {
    keep_failure(failure, tell(run, {false, std::nullopt}));
  }
  return failure;
}

status memory_adviser::take_back(memory_range range) noexcept
try {
  if (advised_bytes() == 0 || range.bytes == 0) { return {}; }
  bool any = false;
  {
    // Whoever frees other memory does not wait for calls about what is advised.
    ledger_view view{ledger_};
    view.each(range, [&](block_record const& block, memory_range) { any |= block.advised(); });
  }
  if (!any) { return {}; }
  std::lock_guard const lock{telling_};
  return take_back_blocks(range);
} catch (...) {
  return no_memory;
}

status memory_adviser::tell_again(memory_range range) noexcept
try {
  if (advised_bytes() == 0) { return {}; }
  std::lock_guard const lock{telling_};
  std::vector<std::pair<memory_range, advice_change>> advised;
  {
    ledger_view view{ledger_};
    view.each(range, [&](block_record const& block, memory_range whole) {
      if (!block.advised()) { return; }
      advice_change change;
      if (block.read_mostly) { change.read_mostly = true; }
      if (block.preferred != preferred_place::none) { change.preferred = block.preferred; }
      advised.emplace_back(whole, change);
    });
  }
  status failure;
  for (auto const& [block, change] : advised) {
    keep_failure(failure, tell(block, change));
  }
  return failure;
} catch (...) {  // no list of blocks could be made
  return no_memory;
}

void memory_adviser::forget(memory_range slab) noexcept
{
  if (advised_bytes() == 0) { return; }
  std::lock_guard const lock{telling_};
  note(slab, {false, preferred_place::none});
}

std::vector<memory_range> memory_adviser::read_mostly_runs(memory_range range)
{
  std::vector<memory_range> runs;
  ledger_view view{ledger_};
  view.each(range, [&](block_record const& block, memory_range whole) {
    if (block.read_mostly) { append(runs, whole); }
  });
  return runs;
}

departure memory_adviser::to_host(std::span<memory_range const> ranges,
                                  stream_handle stream,
                                  bool directly) noexcept
{
  departure done;
  std::unique_lock lock{telling_, std::defer_lock};
  std::vector<memory_range> copied;
  if (advised_bytes() > 0) {
    lock.lock();
    try {
      for (auto const& range : ranges) {
        for (auto const& run : read_mostly_runs(range)) {
          copied.push_back(run);
        }
      }
    } catch (...) {
      return {no_memory, {}, {}};
    }
    for (auto const& run : copied) {
      // Stays entered: whoever frees it meanwhile must find it, and waits for its turn.
      done.moved = driver_->advise(run, memory_advice::unset_read_mostly, location::host());
      if (!done.moved.ok()) { break; }
    }
    if (copied.empty()) { lock.unlock(); }
  }
  for (auto const& range : ranges) {
    if (!done.moved.ok()) { break; }
    if (directly) {
      auto const result = driver_->migrate(range, location::host());
      if (result.ok()) { continue; }
      done.direct = result;
    }
    done.moved = driver_->prefetch(range, location::host(), stream);
  }
  if (copied.empty()) { return done; }
  // Advised while the prefetch is on its way, the blocks would be copied by it and stay.
  if (done.moved.ok()) { done.moved = driver_->synchronize(stream); }
  for (auto const& run : copied) {
    if (auto const told = tell(run, {true, std::nullopt}); !told.ok()) {
      done.advised = told;
      static_cast<void>(tell(run, {false, std::nullopt}));
    }
  }
  return done;
}

std::vector<memory_range> memory_adviser::without_used_on_host(memory_range range)
{
  std::vector<memory_range> runs;
  ledger_view view{ledger_};
  view.each(range, [&](block_record const& block, memory_range whole) {
    if (!block.used_on_host()) { append(runs, whole); }
  });
  return runs;
}

}  // namespace rmm_uvm
