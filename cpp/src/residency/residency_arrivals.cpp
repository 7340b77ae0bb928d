// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How blocks come: what is missing of a request is claimed, given room, and asked to the device.
#include <rmm_uvm/residency/discards.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm {
namespace {

template <typename Claims>
[[nodiscard]] std::size_t uncounted_bytes(Claims const& blocks) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    if (!each.counted) { bytes += each.range.bytes; }
  }
  return bytes;
}

/** @brief Bytes of blocks of a kind that are there already, as far as is known. */
template <typename Claims, typename Kind>
[[nodiscard]] std::size_t counted_bytes(Claims const& blocks, Kind const& is_of_kind) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    if (each.counted && is_of_kind(each)) { bytes += each.range.bytes; }
  }
  return bytes;
}

/** @brief Bytes of blocks that a request needs at once: the missing, and those that are there. */
[[nodiscard]] std::size_t needed_bytes(ledger_view& view,
                                       std::span<memory_range const> wanted,
                                       std::size_t missing_bytes,
                                       std::size_t budget_bytes)
{
  std::size_t most_bytes = 0;
  for (auto const& range : wanted) {
    most_bytes += bytes_of_blocks(range);
  }
  if (most_bytes <= budget_bytes) { return missing_bytes; }  // all of it fits
  std::vector<memory_range> there;
  for (auto const& range : wanted) {
    view.each(range, [&](block_record const& block, memory_range whole) {
      if (block.place == block_place::device) { there.push_back(whole); }
    });
  }
  std::sort(
    there.begin(), there.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
  auto const same = [](auto const& a, auto const& b) { return a.address == b.address; };
  there.erase(std::unique(there.begin(), there.end(), same), there.end());
  return missing_bytes + bytes_of(there);
}

/** @brief Adds a block to ranges, each as long as one call may be, and of one slab. */
void add_block(std::vector<memory_range>& ranges,
               memory_range block,
               bool first_of_slab,
               std::size_t most_bytes)
{
  bool const joins = !first_of_slab && !ranges.empty() && ranges.back().end() == block.address &&
                     ranges.back().bytes + block.bytes <= most_bytes;
  if (joins) {
    ranges.back().bytes += block.bytes;
  } else {
    ranges.push_back(block);
  }
}

}  // namespace

/** @brief Whether a call about a block of a range is under way. */
bool residency_manager::is_under_way(ledger_view& view, memory_range range)
{
  bool busy = false;
  view.each(range, [&](block_record const& block, memory_range) { busy = busy || block.busy; });
  return busy;
}

void residency_manager::wait_until_free(ledger_view& view, range_list wanted)
{
  for (bool waited = false;; waited = true) {
    bool busy = false;
    for (auto const& range : wanted) {
      busy = busy || is_under_way(view, range);
    }
    // After the end another manager may be at a block: that one drops nothing that is handed out.
    if (!busy || stopping_) { return; }
    if (!waited) { ++counts_.waits; }
    changed_.wait(view.lock());
  }
}

/** @return the blocks that are missing, ascending, each once */
residency_manager::claims residency_manager::claim(ledger_view& view,
                                                   range_list wanted,
                                                   memory_range allocation,
                                                   reason why)
{
  claims missing;
  wait_until_free(view, wanted);
  if (stopping_) { return missing; }
  auto const as_of = epoch();
  for (auto const& range : wanted) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.present(as_of)) { return; }
      bool const there = block.place == block_place::device;
      if (block.in_place && (why == reason::use || why == reason::ahead)) { return; }
      // Freed since it was expected, or looked at: nobody uses it, and its slab may go.
      bool const expected = why == reason::ahead || why == reason::doubt || why == reason::away;
      if (expected && block.dead()) { return; }
      if (why == reason::doubt && !there) { return; }  // it left since
      // What belongs to the host is read through a mapping: it comes only when asked for.
      bool const called = why == reason::asked || why == reason::allocation;
      if (block.used_on_host() && !called && !block.discarded) { return; }
      // Contents of a new allocation are dead by definition; beside it others may live.
      bool const keeps = !allocation.covers(whole);
      bool const away  = block.place == block_place::host;
      bool const never = !keeps && block.place == block_place::nowhere;
      bool const empty = block.discarded || (never && driver_->info().discard.available);
      bool const first = view.slab_begins(whole.address);
      int const from   = block.place == block_place::beside ? block.neighbor : no_neighbor;
      missing.push_back(
        {&block, whole, keeps, empty, there, away, first, from, block.in_place, block.copied});
    });
  }
  if (wanted.size() > 1) {  // neighbours share blocks
    std::sort(missing.begin(), missing.end(), [](auto const& a, auto const& b) {
      return a.range.address < b.range.address;
    });
    auto const same = [](auto const& a, auto const& b) { return a.record == b.record; };
    missing.erase(std::unique(missing.begin(), missing.end(), same), missing.end());
  }
  return missing;
}

void residency_manager::bring(range_list wanted,
                              memory_range allocation,
                              stream_handle stream,
                              reason why)
{
  std::unique_lock room{room_, std::defer_lock};
  ledger_view view{ledger_};
  auto missing             = claim(view, wanted, allocation, why);
  auto const missing_bytes = uncounted_bytes(missing);
  if (missing.empty()) { return; }
  // What is there of a request does not leave for the rest of it: all of it has to fit.
  auto const asked_bytes = settings_.as_kernel_driver()
                             ? bytes_of(wanted)
                             : needed_bytes(view, wanted, missing_bytes, settings_.budget_bytes);
  if (asked_bytes > settings_.budget_bytes) {
    ++counts_.too_large;
    counts_.too_large_bytes = std::max(counts_.too_large_bytes, asked_bytes);
    view.lock().unlock();
    bring_in_parts(wanted, allocation, stream, why);
    return;
  }
  if (counts_.resident_bytes + missing_bytes > settings_.budget_bytes) {
    // Whoever makes room does so alone: two with half of the room each would wait for each other.
    view.lock().unlock();
    room.lock();
    view.lock().lock();
    if (why != reason::ahead) { short_of_room_ = true; }
    if (settings_.as_kernel_driver()) {
      expect_faults(view, wanted, allocation, stream, why);
      return;
    }
    missing = claim(view, wanted, allocation, why);
    if (stopping_) { return; }
  }
  if (settings_.fetch) { choose_renewed(missing, stream); }
  admit(view, missing, wanted, stream, why);
  if (why != reason::ahead && uncounted_bytes(missing) > 0) { await_others(view); }
  bool came = true;
  if (settings_.fetch) {
    count_traffic(missing);
    moving(true);
    view.lock().unlock();
    came = issue(missing, stream, why);
    view.lock().lock();
    moving(false);
  } else {
    end_advice(view, missing);
  }
  if (came) {
    left_beside(missing);
  } else {
    stayed_beside(missing);
  }
  for (auto const& each : missing) {
    each.record->busy = false;
  }
  hold(view, wanted, -1);
  changed_.notify_all();
  if (!settings_.background) { tell_if_busy(view); }  // else the thread does
}

/** @brief Counts what is missing as present, and has others leave for it; holds the request. */
void residency_manager::admit(
  ledger_view& view, claims const& missing, range_list wanted, stream_handle stream, reason why)
{
  count_coming(missing);
  for (auto const& each : missing) {
    each.record->busy            = true;
    each.record->discarded       = false;
    each.record->place           = block_place::device;
    each.record->on_device_as_of = epoch_;
    each.record->prefetched      = now_;
    each.record->in_place        = false;
    each.record->copied          = false;
    if (!each.counted) {
      each.record->arrived       = now_;
      each.record->fetched_ahead = why == reason::ahead;
    }
  }
  auto const coming_bytes = uncounted_bytes(missing);
  counts_.resident_bytes += coming_bytes;
  without_room_bytes_ += coming_bytes;
  offer_idle();
  // What is there already of the same request does not leave to make room for the rest of it.
  hold(view, wanted, 1);
  auto const waits = why == reason::ahead ? std::nullopt : std::optional{stream};
  try {
    make_room(view, settings_.budget_bytes, waits);
  } catch (...) {  // no list of victims: the budget is exceeded, and nobody waits for ever
    count_failure({status_code::out_of_memory, 0, "make_room"});
  }
  without_room_bytes_ -= coming_bytes;
  counts_.peak_resident_bytes = std::max(counts_.peak_resident_bytes, counts_.resident_bytes);
}

/**
 * @brief Makes room for a request piece by piece, in the order in which its pages fault.
 *
 * As on a card without room for all of it: what the request uses later may leave for what it uses
 * first, and comes back in its turn. What was passed stays, since the kernel has not run yet.
 */
void residency_manager::expect_faults(
  ledger_view& view, range_list wanted, memory_range allocation, stream_handle stream, reason why)
{
  std::vector<memory_range> pieces;
  for (auto const& range : wanted) {
    cut(pieces, range, settings_.piece_bytes);
  }
  std::size_t passed = 0;
  try {
    for (auto const& piece : pieces) {
      auto const missing = claim(view, {&piece, 1}, allocation, why);
      ++passed;
      admit(view, missing, {&piece, 1}, stream, why);
      end_advice(view, missing);
      left_beside(missing);
      for (auto const& each : missing) {
        each.record->busy = false;
      }
      changed_.notify_all();
    }
  } catch (...) {  // no list of what is missing: the rest comes beside the budget
    count_failure({status_code::out_of_memory, 0, "expect_faults"});
  }
  hold(view, range_list{pieces}.first(passed), -1);
  changed_.notify_all();
}

void residency_manager::hold(ledger_view& view, range_list wanted, int by)
{
  for (auto const& range : wanted) {
    view.each(range, [by](block_record& block, memory_range) {
      // A slab that went meanwhile, under somebody who uses it, took the holds along.
      if (by > 0 || block.holds > 0) { block.holds = static_cast<std::uint16_t>(block.holds + by); }
    });
  }
}

/**
 * @brief Chooses the blocks that come without their contents: dead ones that no work uses any more.
 *
 * A request's stream waits for every free of what it is handed, so that all of them are done where
 * it is idle. The others come as they are: a discard must not wait in a stream.
 */
void residency_manager::choose_renewed(claims& blocks, stream_handle stream) noexcept
{
  if (!driver_->info().discard.available) { return; }
  std::optional<bool> idle;
  for (auto& each : blocks) {
    if (each.keeps || each.empty) { continue; }
    if (!idle) {
      look_at_marks();
      idle = driver_->idle(stream);
    }
    each.renewed = *idle || (!each.record->unfenced && free_is_done(*each.record));
    if (each.renewed) { continue; }
    counts_.undiscarded_bytes += each.range.bytes;
    if (!each.counted) { counts_.undiscarded_copied_bytes += each.range.bytes; }
  }
}

/**
 * @brief In which list a block comes: from the host, from each neighbour, or perhaps here already.
 *
 * The last must not go by way of a neighbour; where nothing does, it comes in one piece with the
 * first.
 */
std::size_t residency_manager::place_of(claimed_block const& block) const noexcept
{
  if (block.from != no_neighbor) { return static_cast<std::size_t>(block.from) + 1; }
  return block.away || !settings_.multipath ? 0 : neighbors_.size() + 1;
}

/** @return whether all of it was asked to come */
bool residency_manager::issue(claims const& blocks, stream_handle stream, reason why) noexcept
try {
  end_advice(blocks);  // first: it takes no memory, and what comes by fault must not be a copy
  auto const device      = location::device(driver_->info().device_id);
  auto const most        = why == reason::ahead ? settings_.piece_bytes : settings_.fetch_bytes;
  auto const comes_empty = [](auto const& each) { return each.empty || each.renewed; };
  std::size_t from_neighbor_bytes = 0;
  std::vector<memory_range> fresh;     // nothing in them is anybody's
  places kept{2 + neighbors_.size()};  // to come with their contents, by where they come from
  for (auto const& each : blocks) {
    if (comes_empty(each)) {
      add_block(fresh, each.range, each.first, ~std::size_t{0});
    } else {
      add_block(kept[place_of(each)], each.range, each.first, most);
      if (each.from != no_neighbor) { from_neighbor_bytes += each.range.bytes; }
    }
  }
  status failure;
  auto const noted = [&failure](status result) {
    if (!result.ok()) { failure = result; }
    return result.ok();
  };
  std::size_t renewed_bytes = 0;
  std::size_t fetched_bytes = 0;
  if (!fresh.empty() && noted(renew_at_once(*driver_, fresh))) {
    renewed_bytes = bytes_of(fresh) - counted_bytes(blocks, comes_empty);
    fresh.clear();
  }
  std::atomic<std::size_t> moved_bytes{0};
  static_cast<void>(noted(fetch_all(kept, stream, moved_bytes)));
  for (auto const& range : fresh) {  // after a failure: pages would fault one by one
    if (noted(driver_->prefetch(range, device, stream))) { fetched_bytes += range.bytes; }
  }
  fetched_bytes += moved_bytes;
  auto const is_there = [&](auto const& each) { return !fresh.empty() || !comes_empty(each); };
  fetched_bytes -= std::min(fetched_bytes, counted_bytes(blocks, is_there));
  ledger_view view{ledger_};
  counts_.renewed_bytes += renewed_bytes;
  (why == reason::ahead ? counts_.fetched_ahead_bytes : counts_.fetched_bytes) += fetched_bytes;
  if (failure.ok()) {
    counts_.from_neighbor_bytes += from_neighbor_bytes;
  } else {
    count_failure(failure);
    if (settings_.multipath) {  // some may be where it went by
      ++epoch_;
      end_confirmed(view);
    }
  }
  return failure.ok();
} catch (...) {  // a list could not be built: pages come by fault
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "residency_manager"});
  return false;
}

}  // namespace rmm_uvm
