// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How blocks leave neighbours: their owners need the memory, or users advised about the blocks.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <array>
#include <atomic>

namespace rmm_uvm {
namespace {

constexpr std::size_t pieces_given_back = 4;  // that leave together: nobody's launch waits for them

}  // namespace

/** @brief How much a neighbour's owner wants back; gives up the lock to ask. */
std::size_t residency_manager::wanted_back(ledger_view& view, std::size_t number)
{
  auto& state = neighbors_[number];
  if (state.held_bytes == 0) {
    state.owed_bytes = 0;
    return 0;
  }
  auto const device_id = state.which.device_id;
  // Owners that lend say how much; of others the driver tells what they have left.
  if (auto const there = ask_neighbor(view, number)) {
    auto const missing = missing_reserve(state, there->free_bytes, reserve_of(*there));
    // Of several who hold memory there each owes its share, as far as they know of one another.
    if (missing > 0) { state.owed_bytes += settings_.lender->excess(device_id, missing); }
  }
  state.owed_bytes = std::min(state.owed_bytes, state.held_bytes);
  return std::min(std::max(state.owed_bytes, settings_.lender->excess(device_id)),
                  state.held_bytes);
}

/** @brief Has some of what a neighbour's owner wants back leave it. */
residency_manager::outcome residency_manager::give_back(ledger_view& view)
{
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const wanted = wanted_back(view, number);
    if (wanted > 0 && leave_neighbor(view, number, wanted, departure_kind::dropped)) {
      return outcome::again;
    }
  }
  return outcome::nothing;
}

/**
 * @brief Has blocks leave a neighbour: dead ones, then copied ones, which need no copy, then
 * others.
 *
 * They go to the host, in long pieces. What is used last goes first, and what is pinned last of its
 * kind: to the device, while all that is pinned fits there, unless it is dead.
 * @param first the kind to begin with: those before it do not leave
 * @return whether any left
 */
bool residency_manager::leave_neighbor(ledger_view& view,
                                       std::size_t number,
                                       std::size_t bytes,
                                       departure_kind first)
{
  if (stopping_) { return false; }
  struct candidate {
    std::uint64_t key;
    viewed_block block;
  };
  std::array<std::vector<candidate>, 6> found;  // by `departure_kind`, and whether it is pinned
  bool const foreseen = foresees();
  view.each([&](block_record& block, memory_range range) {
    if (block.place != block_place::beside || block.neighbor != number) { return; }
    if (block.busy || block.holds > 0) { return; }
    auto kind        = block.copied ? departure_kind::has_copy : departure_kind::copied_now;
    bool const tries = first == departure_kind::dropped;
    if (tries && block.dead() && !block.unfenced && settings_.drops() &&
        driver_->info().discard.available) {
      kind = departure_kind::dropped;
    }
    kind             = std::max(kind, first);  // what could not go the cheaper way
    auto const key   = leaving_key(settings_.policy, block, now_, foreseen);
    auto const index = 2 * static_cast<std::size_t>(kind) + (block.pins > 0 ? 1 : 0);
    found.at(index).push_back({key, {&block, range}});
  });
  auto index = 2 * static_cast<std::size_t>(first);
  while (index < found.size() && found.at(index).empty()) {
    ++index;
  }
  if (index == found.size()) { return false; }
  auto const kind  = static_cast<departure_kind>(index / 2);
  auto& these      = found.at(index);
  auto const most  = std::min(bytes, pieces_given_back * settings_.piece_bytes);
  auto const count = std::min(these.size(), (most + va_block_bytes - 1) / va_block_bytes);
  std::partial_sort(these.begin(),
                    these.begin() + static_cast<std::ptrdiff_t>(count),
                    these.end(),
                    [](candidate const& a, candidate const& b) {
                      // What was not let go of before must not keep the rest there.
                      bool const a_copied = a.block.record->copied;
                      return a_copied != b.block.record->copied ? !a_copied : a.key > b.key;
                    });
  victims going;
  for (std::size_t each = 0; each < count; ++each) {
    if (these[each].block.record->copied != these[0].block.record->copied) { break; }
    going.push_back(these[each].block);
  }
  bool const pinned = index % 2 == 1 && kind != departure_kind::dropped;
  if (pinned && settings_.fetch && counts_.pinned_bytes <= settings_.budget_bytes) {
    if (come_home(view, number, joined(view, going, settings_.piece_bytes))) { return true; }
  } else if (go_back(view, number, going, kind)) {
    return true;
  }
  // What cannot be dropped, or let go of, must not keep the rest there.
  if (kind == departure_kind::copied_now) { return false; }
  return leave_neighbor(
    view, number, bytes, static_cast<departure_kind>(static_cast<std::size_t>(kind) + 1));
}

/** @brief Brings pinned blocks of a neighbour to the device. @return whether any came */
bool residency_manager::come_home(ledger_view& view,
                                  std::size_t number,
                                  std::vector<memory_range> const& ranges)
{
  stream_handle arrivals = nullptr;
  view.lock().unlock();
  auto const asked = driver_->own_stream(own_stream_use::arrivals, arrivals);
  if (asked.ok()) {
    bring(ranges, {}, arrivals, reason::asked);
    static_cast<void>(driver_->synchronize(arrivals));
  }
  view.lock().lock();
  if (!asked.ok()) { count_failure(asked); }
  std::size_t came = 0;
  for (auto const& range : ranges) {  // records may be others' by now: what is not there counts not
    view.each(range, [&](block_record& block, memory_range whole_range) {
      if (block.place != block_place::device) { return; }
      counts_.given_back_bytes += whole_range.bytes;
      ++came;
      if (!block.has_chunk(number)) { return; }
      block.set_chunk(number, false);  // its owner has it
      neighbors_[number].kept_bytes -= va_block_bytes;
    });
  }
  gave_back(neighbors_[number], bytes_of_blocks(came));
  return came > 0;
}

/** @brief Has blocks of a neighbour go. @return whether they went */
bool residency_manager::go_back(ledger_view& view,
                                std::size_t number,
                                victims const& blocks,
                                departure_kind kind)
{
  auto const drops  = kind == departure_kind::dropped;
  auto const asked  = kind == departure_kind::advised;
  auto const ranges = joined(view, blocks, settings_.fetch_bytes);
  victims mapped;
  victims doubled;
  for (auto const& each : blocks) {
    if (each.record->in_place) { mapped.push_back(each); }
    if (each.record->copied) { doubled.push_back(each); }
  }
  auto const mapped_ranges  = joined(view, mapped, ~std::size_t{0});
  auto const doubled_ranges = joined(view, doubled, ~std::size_t{0});
  bool done                 = true;
  for (auto const& each : blocks) {  // from here on nothing takes memory
    each.record->busy      = true;
    each.record->discarded = each.record->discarded || drops;
    done                   = done && free_is_done(*each.record);
  }
  sent_away_.store(true, std::memory_order_release);
  view.lock().unlock();
  status result;
  if (drops) { result = discard_now(ranges, done); }
  // What has a copy on the host is there then; of what was dropped the advice ends.
  if (result.ok()) { result = leave_one_copy(doubled_ranges, location::host()); }
  if (result.ok() && (asked || kind == departure_kind::copied_now)) {
    result = to_host_now(ranges);
  }
  auto const unmapped = end_in_place(mapped_ranges);
  view.lock().lock();
  if (!unmapped.ok()) { count_failure(unmapped); }
  for (auto const& each : blocks) {
    each.record->busy     = false;
    each.record->in_place = each.record->in_place && !unmapped.ok();  // also of what stays
    if (!result.ok()) { continue; }
    each.record->place    = drops ? block_place::nowhere : block_place::host;
    each.record->in_place = false;
    each.record->copied   = false;
    if (!drops) { faulted_in_.to_host(each.range.bytes); }
    if (asked) { continue; }
    each.record->set_chunk(number, false);  // its owner has it
    counts_.given_back_bytes += each.range.bytes;
    if (kind != departure_kind::copied_now) {
      counts_.given_back_at_once_bytes += each.range.bytes;
    }
  }
  if (result.ok()) {
    left_beside(number, blocks.size());
    if (!asked) {
      neighbors_[number].kept_bytes -= bytes_of_blocks(blocks.size());
      gave_back(neighbors_[number], bytes_of_blocks(blocks.size()));
    }
  } else {
    count_failure(result);
  }
  changed_.notify_all();
  return result.ok();
}

/** @brief Moves ranges to the host, and returns when they have arrived. */
status residency_manager::to_host_now(range_list ranges) noexcept
{
  stream_handle evictions = nullptr;
  auto result             = driver_->own_stream(own_stream_use::evictions, evictions);
  if (!result.ok()) { return result; }
  if (adviser_ != nullptr && adviser_->advised_bytes() > 0) {
    result = adviser_->to_host(ranges, evictions, moves_directly(location::host())).moved;
  } else {
    std::atomic<std::size_t> moved_bytes{0};
    result = move_all(ranges, location::host(), evictions, moved_bytes);
  }
  // A prefetch returns before it is done, and only then the owner has its memory.
  return result.ok() ? driver_->synchronize(evictions) : result;
}

/**
 * @brief A user has advised about a range: what of it lies on neighbours leaves for the host.
 *
 * Advice of ours stands beside a user's there, for copies and mappings, and would end with it or
 * end it; and what belongs elsewhere must not lie there.
 */
void residency_manager::on_advised(memory_range range) noexcept
try {
  ledger_view view{ledger_};
  end_confirmed(view);  // what belonged to the host may be missing now
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    if (neighbors_[number].held_bytes == 0) { continue; }
    wait_until_free(view, {&range, 1});
    victims going;
    view.each(range, [&](block_record& block, memory_range whole_range) {
      bool const lies = block.place == block_place::beside && block.neighbor == number;
      if (lies && (block.advised() || block.copied)) { going.push_back({&block, whole_range}); }
    });
    if (!going.empty()) {
      static_cast<void>(go_back(view, number, going, departure_kind::advised));
    }
  }
} catch (...) {
  count_failure_of("on_advised");
}

}  // namespace rmm_uvm
