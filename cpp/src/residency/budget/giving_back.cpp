// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/giving_back.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>

#include <algorithm>
#include <array>
#include <atomic>

namespace rmm_uvm {
namespace {

constexpr std::size_t pieces_given_back = 4;  // that leave together: nobody's launch waits for them

/** @brief A block that may leave its neighbour. */
struct candidate {
  std::uint64_t key;
  viewed_block block;
};

}  // namespace

work_outcome giving_back::give_back(ledger_view& view)
{
  for (std::size_t number = 0; number < with_.neighbors.size(); ++number) {
    auto const wanted = with_.neighbors.wanted_back(view, number);
    if (with_.ledger.ended()) { return work_outcome::nothing; }  // it gave up the lock
    if (wanted > 0 && leave_neighbor(view, number, wanted, departure::dropped)) {
      return work_outcome::again;
    }
  }
  return work_outcome::nothing;
}

void giving_back::give_all_back(ledger_view& view)
{
  for (std::size_t number = 0; number < with_.neighbors.size(); ++number) {
    while (with_.neighbors.holds(number) &&
           leave_neighbor(view, number, any_length, departure::has_copy)) {}
  }
  // What could not be moved comes by faults. Its claim ends now: nobody would end it later.
  view.each([this](block_record& block, memory_range) {
    if (block.place != block_place::beside) { return; }
    with_.neighbors.forget(block);
    block.place = block_place::host;
  });
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
bool giving_back::leave_neighbor(ledger_view& view,
                                 std::size_t number,
                                 std::size_t bytes,
                                 departure first)
{
  std::array<std::vector<candidate>, 6> found;  // by `departure`, and whether it is pinned
  auto const& settings = with_.settings;
  bool const foreseen  = with_.uses.foresees();
  bool const drops =
    first == departure::dropped && settings.drops() && with_.driver.info().discard.available;
  view.each([&](block_record& block, memory_range range) {
    if (block.place != block_place::beside || block.neighbor != number) { return; }
    if (block.busy || block.holds > 0) { return; }
    auto kind = block.copied ? departure::has_copy : departure::copied_now;
    if (drops && block.dead() && !block.unfenced) { kind = departure::dropped; }
    kind             = std::max(kind, first);  // what could not go the cheaper way
    auto const key   = leaving_key(settings.policy, block, with_.clock.now(), foreseen);
    auto const index = 2 * static_cast<std::size_t>(kind) + (block.pins > 0 ? 1 : 0);
    found.at(index).push_back({key, {&block, range}});
  });
  auto index = 2 * static_cast<std::size_t>(first);
  while (index < found.size() && found.at(index).empty()) {
    ++index;
  }
  if (index == found.size()) { return false; }
  auto const kind  = static_cast<departure>(index / 2);
  auto& these      = found.at(index);
  auto const most  = std::min(bytes, pieces_given_back * settings.piece_bytes);
  auto const count = std::min(these.size(), (most + va_block_bytes - 1) / va_block_bytes);
  std::partial_sort(these.begin(),
                    these.begin() + static_cast<std::ptrdiff_t>(count),
                    these.end(),
                    [](candidate const& a, candidate const& b) {
                      // What was not let go of before must not keep the rest there.
                      bool const a_copied = a.block.record->copied;
                      return a_copied != b.block.record->copied ? !a_copied : a.key > b.key;
                    });
  block_list going;
  for (std::size_t each = 0; each < count; ++each) {
    if (these[each].block.record->copied != these[0].block.record->copied) { break; }
    going.push_back(these[each].block);
  }
  bool const pinned = index % 2 == 1 && kind != departure::dropped;
  if (pinned && settings.fetch && with_.ledger.pinned_bytes() <= with_.ledger.budget_bytes()) {
    if (come_home(view, number, joined(view, going, settings.piece_bytes))) { return true; }
  } else if (go(view, number, going, kind)) {
    return true;
  }
  // What cannot be dropped, or let go of, must not keep the rest there.
  if (kind == departure::copied_now) { return false; }
  auto const dearer = kind == departure::dropped ? departure::has_copy : departure::copied_now;
  return leave_neighbor(view, number, bytes, dearer);
}

/** @brief Brings pinned blocks of a neighbour to the device. @return whether any came */
bool giving_back::come_home(ledger_view& view,
                            std::size_t number,
                            std::vector<memory_range> const& ranges)
{
  stream_handle stream = nullptr;
  view.unlock();
  auto const asked = with_.driver.own_stream(own_stream_use::arrivals, stream);
  if (asked.ok()) {
    with_.coming.bring({ranges, {}, stream, arrival_reason::asked});
    static_cast<void>(with_.driver.synchronize(stream));
  }
  view.relock();
  with_.ledger.count_if_failed(asked);
  block_list came;
  for (auto const& range : ranges) {  // records may be others' by now: what is not there counts not
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.place == block_place::device) { came.push_back({&block, whole}); }
    });
  }
  with_.neighbors.came_home(number, came);
  return !came.empty();
}

/** @brief Has blocks of a neighbour go. @return whether they went */
bool giving_back::go(ledger_view& view,
                     std::size_t number,
                     block_list const& blocks,
                     departure kind)
{
  auto const drops  = kind == departure::dropped;
  auto const asked  = kind == departure::advised;
  auto const ranges = joined(view, blocks, with_.settings.fetch_bytes);
  block_list mapped;
  block_list doubled;
  for (auto const& each : blocks) {
    if (each.record->in_place) { mapped.push_back(each); }
    if (each.record->copied) { doubled.push_back(each); }
  }
  auto const mapped_ranges  = joined(view, mapped, any_length);
  auto const doubled_ranges = joined(view, doubled, any_length);
  bool const done           = with_.marks.frees_are_done(blocks);
  set_busy(blocks, true);  // from here on nothing takes memory
  for (auto const& each : blocks) {
    each.record->discarded = each.record->discarded || drops;
  }
  with_.present.note_sent_away();
  view.unlock();
  status result;
  if (drops) { result = with_.mover.discard(ranges, done); }
  // What has a copy on the host is there then; of what was dropped the advice ends.
  if (result.ok()) { result = with_.advice.leave_one_copy(doubled_ranges, location::host()); }
  if (result.ok() && (asked || kind == departure::copied_now)) {
    result = with_.mover.to_host_now(ranges);
  }
  auto const unmapped = with_.advice.unmap(mapped_ranges);
  view.relock();
  with_.ledger.count_if_failed(unmapped);
  with_.ledger.count_if_failed(result);
  set_busy(blocks, false);
  for (auto const& each : blocks) {
    auto& block    = *each.record;
    block.in_place = block.in_place && !unmapped.ok();  // also of what stays
    if (!result.ok()) { continue; }
    block.place    = drops ? block_place::nowhere : block_place::host;
    block.in_place = false;
    block.copied   = false;
    if (!drops) { with_.moved.to_host(each.range.bytes); }
  }
  if (result.ok() && asked) {
    with_.neighbors.left_for_advice(number, blocks.size());
  } else if (result.ok()) {
    with_.neighbors.gave_back(number, blocks, kind != departure::copied_now);
  }
  with_.ledger.tell_change();
  return result.ok();
}

void giving_back::on_advised(memory_range range)
{
  ledger_view view{with_.ledger.blocks()};
  with_.present.end(view);  // what belonged to the host may be missing now
  for (std::size_t number = 0; number < with_.neighbors.size(); ++number) {
    if (!with_.neighbors.holds(number)) { continue; }
    with_.ledger.wait_until_free(view, {&range, 1});
    block_list going;
    view.each(range, [&](block_record& block, memory_range whole) {
      bool const lies = block.place == block_place::beside && block.neighbor == number;
      if (lies && (block.advised() || block.copied)) { going.push_back({&block, whole}); }
    });
    if (!going.empty()) { static_cast<void>(go(view, number, going, departure::advised)); }
  }
}

}  // namespace rmm_uvm
