// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/leaving_search.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace rmm_uvm {

leaving_blocks room_maker::choose(ledger_view& view,
                                  std::size_t dead_bytes,
                                  std::size_t live_bytes,
                                  candidates who,
                                  use_tick not_before) const
{
  leaving_search search{view, with_.clock.now()};
  renew(search);
  leaving_blocks found;
  if (drops() && with_.settings.ranks_dead()) {
    if (live_bytes > 0) { choose_live(search, live_bytes, who, not_before, found.live); }
    auto const droppable = [](viewed_block const& each) {
      return each.record->dead() && !each.record->unfenced;
    };
    std::copy_if(found.live.begin(), found.live.end(), std::back_inserter(found.dead), droppable);
    std::erase_if(found.live, droppable);
    return found;
  }
  auto together = drops() && dead_bytes > 0 ? choose_dead(search, dead_bytes, who, found.dead) : 0;
  if (together < live_bytes) {
    choose_live(search, live_bytes - together, who, not_before, found.live);
  }
  return found;
}

/**
 * @brief The longest dead first: a pool soon hands out again what was freed last.
 *
 * Of one free by its uses. Those come first whose work is done; to wait for others is cheaper than
 * to copy, and who need not wait lets them be.
 * @return bytes of what was chosen
 */
std::size_t room_maker::choose_dead(leaving_search& search,
                                    std::size_t bytes,
                                    candidates who,
                                    block_list& chosen) const
{
  auto const now    = with_.clock.now();
  auto const key_of = [](std::uint64_t frees, use_tick unused) { return (frees << 32U) | unused; };
  std::size_t together = 0;
  search.highest_first(
    [&](leaving_bounds const& bounds) -> std::optional<std::uint64_t> {
      if (!bounds.has(leaving_bounds::droppable)) { return std::nullopt; }
      return key_of(with_.marks.frees_since(bounds.oldest_free), now - bounds.oldest_dead);
    },
    [&](block_record const& block, memory_range) -> std::optional<std::uint64_t> {
      if (!block.movable() || !block.dead() || block.unfenced) { return std::nullopt; }
      use_tick const unused = now - std::max(block.allocated, block.touched);
      return key_of(with_.marks.frees_since(block.freed), unused);
    },
    [&](viewed_block const& next) {
      bool const done       = with_.marks.free_is_done(*next.record);
      bool const after_done = !chosen.empty() && with_.marks.free_is_done(*chosen.back().record);
      if (!done && (after_done || who != candidates::all)) { return false; }
      chosen.push_back(next);
      together += next.range.bytes;
      return together < bytes;
    });
  return together;
}

/** @brief Whether a block that may be dropped leaves among those that may not. */
bool room_maker::has_turn(block_record const& block, candidates who) const noexcept
{
  // Its discard would wait for work: whoever need not wait lets it be.
  return with_.settings.ranks_dead() && (who == candidates::all || with_.marks.free_is_done(block));
}

/** @brief Live blocks and what else is among them, as `leaving_order` has them leave. */
void room_maker::choose_live(leaving_search& search,
                             std::size_t bytes,
                             candidates who,
                             use_tick not_before,
                             block_list& chosen) const
{
  auto const order     = leaving_now(who, not_before);
  std::size_t together = 0;
  search.highest_first(
    [&](leaving_bounds const& bounds) { return order.of(bounds); },
    [&](block_record const& block, memory_range) -> std::optional<std::uint64_t> {
      if (!block.movable() || (order.is_droppable(block) && !has_turn(block, who))) {
        return std::nullopt;
      }
      return order.of(block, with_.copies.leaves_uncopied(block));
    },
    [&](viewed_block const& next) {
      chosen.push_back(next);
      together += next.range.bytes;
      return together < bytes;
    });
}

std::optional<block_list> room_maker::choose_to_copy(ledger_view& view, std::size_t bytes) const
{
  leaving_search search{view, with_.clock.now()};
  if (!search.any(leaving_bounds::to_copy)) { return std::nullopt; }
  renew(search);
  auto const as_of     = with_.moved.last_epoch();
  auto const order     = leaving_now(candidates::unused_now, never_used);
  bool any_in_use      = false;
  std::size_t together = 0;
  block_list chosen;
  search.highest_first(
    [&](leaving_bounds const& bounds) -> std::optional<std::uint64_t> {
      if (!bounds.has(leaving_bounds::to_copy)) { return std::nullopt; }
      auto const key = order.of(bounds);
      any_in_use     = any_in_use || !key;
      return key;
    },
    [&](block_record const& block, memory_range) -> std::optional<std::uint64_t> {
      bool const may = block.movable() && block.present(as_of) && with_.copies.may_copy(block);
      auto const key = may ? order.of(block, true) : std::nullopt;
      any_in_use     = any_in_use || (may && !key);
      return key;
    },
    [&](viewed_block const& next) {
      chosen.push_back(next);
      together += next.range.bytes;
      return together < bytes;
    });
  return chosen.empty() && !any_in_use ? std::nullopt : std::optional{std::move(chosen)};
}

leaving_order room_maker::leaving_now(candidates who, use_tick not_before) const noexcept
{
  auto const policy   = with_.settings.policy;
  bool const in_order = policy == eviction_policy::fifo;  // as the kernel driver
  unsigned taking     = 0;
  auto const beside   = in_order || with_.mover.any_advised()
                          ? std::uint64_t{1}
                          : with_.neighbors.weight_of_kept_now(taking);
  bool const unused   = who == candidates::unused_now;
  return {.policy           = policy,
          .now              = with_.clock.now(),
          .used_last        = unused ? with_.marks.idle_until() : ~use_tick{0},
          .not_before       = not_before,
          .foresees         = with_.uses.foresees(),
          .drops            = drops(),
          .ranks_dead       = with_.settings.ranks_dead(),
          .keeps_copies     = with_.copies.keeps() && !in_order,
          .spares_announced = unused,
          .weight_beside    = beside,
          .taking           = taking,
          .announced_from   = in_order ? no_use : with_.announced.earliest(),
          .announced        = with_.announced};
}

bool room_maker::drops() const noexcept
{
  return with_.settings.drops() && with_.driver.info().discard.available;
}

/** @brief Computes those bounds anew that do not hold any more. */
void room_maker::renew(leaving_search& search) const
{
  search.renew([this](block_record& block, memory_range range) {
    if (block.movable()) { with_.uses.look_again(block, range); }
  });
}

std::size_t room_maker::dead_bytes(ledger_view& view, std::size_t most_bytes) const
{
  bool const dropping = drops();
  std::size_t bytes   = 0;
  leaving_search search{view, with_.clock.now()};
  renew(search);
  search.highest_first(
    [dropping](leaving_bounds const& bounds) -> std::optional<std::uint64_t> {
      bool const any = bounds.has(leaving_bounds::droppable) ||
                       (!dropping && bounds.has(leaving_bounds::undroppable));
      return any ? std::optional<std::uint64_t>{0} : std::nullopt;
    },
    [dropping](block_record const& block, memory_range) -> std::optional<std::uint64_t> {
      bool const counts = block.movable() && block.dead() && !(dropping && block.unfenced);
      return counts ? std::optional<std::uint64_t>{0} : std::nullopt;
    },
    [&](viewed_block const& next) {
      bytes += next.range.bytes;
      return bytes < most_bytes;
    });
  return std::min(bytes, most_bytes);
}

void room_maker::make_room(ledger_view& view,
                           std::size_t target_bytes,
                           std::optional<stream_handle> stream)
{
  // The program runs ahead of the device: what its last kernels use must not leave under them, or
  // they fault it back. What is needed last may be what was used last: then they are waited for.
  // Where pages come by faults, others leave instead while there are any: the kernel driver does
  // not wait for kernels.
  bool waits   = stream.has_value();
  auto& ledger = with_.ledger;
  while (ledger.resident_bytes() > target_bytes) {
    if (ledger.staying_bytes() <= target_bytes) {
      waited_time::scope const waited{waited_, stream.has_value()};
      ledger.wait_for_change(view);  // others are at it
      continue;
    }
    if (waits) { with_.marks.look(); }
    auto const who = waits && !with_.settings.fetch ? candidates::unused_now : candidates::all;
    auto const excess_bytes = ledger.staying_bytes() - target_bytes;
    auto const leaving      = choose(view, excess_bytes, excess_bytes, who);
    bool const none_dead    = leaving.dead.empty();
    bool const none_live    = leaving.live.empty();
    // What was chosen is as it was only until the lock is let go: one kind, then anew.
    if (none_dead && !none_live && with_.present.passes_over()) {
      with_.present.end(view);  // which changes what leaves first
    } else if (!none_dead) {
      shorten_lead();
      if (!drop(view, leaving.dead)) { return; }
    } else if (waits && (none_live || with_.marks.in_use(leaving.live))) {
      waited_time::scope const waited{waited_, true};
      view.unlock();
      static_cast<void>(with_.driver.synchronize(*stream));
      view.relock();
      waits = false;
    } else if (!none_live) {
      waited_time::scope const waited{waited_, stream.has_value()};
      lengthen_lead();
      if (leave(view, leaving.live) == 0) { return; }
    } else if (ledger.leaving_bytes() > 0 || with_.copies.any_are_made()) {
      waited_time::scope const waited{waited_, stream.has_value()};
      ledger.wait_for_change(view);
    } else {
      ledger.count_over_budget();
      return;
    }
  }
}

/** @brief A request waited for live blocks to leave: the thread has the next ones leave earlier. */
void room_maker::lengthen_lead() noexcept
{
  auto const most_bytes = with_.ledger.budget_bytes() - with_.ledger.low_bytes();
  lead_bytes_ = std::min(std::max(4 * lead_bytes_, with_.settings.piece_bytes), most_bytes);
}

/** @brief The dead made room: as long as they do, no live block has to leave before it must. */
void room_maker::shorten_lead() noexcept
{
  lead_bytes_ /= 2;
  if (lead_bytes_ < with_.settings.piece_bytes) { lead_bytes_ = 0; }
}

bool room_maker::drop(ledger_view& view, block_list const& blocks)
{
  if (blocks.empty()) { return true; }
  if (with_.ledger.ended()) { return false; }  // others are told by now what lives
  auto const ranges = joined(view, blocks, any_length);
  bool const done   = with_.marks.frees_are_done(blocks);
  set_busy(blocks, true);
  for (auto const& each : blocks) {
    each.record->discarded = true;  // also where the call fails: some may have been by then
  }
  with_.ledger.begins_to_leave(bytes_of(blocks));
  view.unlock();
  auto const result = with_.mover.discard(ranges, done);
  view.relock();
  settle(blocks, result, block_place::nowhere);
  if (result.ok()) { dropped_bytes_ += bytes_of(blocks); }
  return result.ok();
}

bool room_maker::let_go(ledger_view& view, leaving_blocks const& leaving)
{
  return leaving.dead.empty() ? leave(view, leaving.live) > 0 : drop(view, leaving.dead);
}

std::size_t room_maker::leave(ledger_view& view, block_list blocks)
{
  if (!with_.copies.any()) { return leave_copied(view, std::move(blocks)); }
  block_list uncopied;
  std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(uncopied), [](auto const& each) {
    return each.record->copied;
  });
  std::erase_if(blocks, [](auto const& each) { return each.record->copied; });
  set_busy(blocks, true);  // they leave next
  auto const left = leave_uncopied(view, uncopied);
  set_busy(blocks, false);
  return left + leave_copied(view, std::move(blocks));
}

/** @brief Has blocks leave of which the host has a copy: what was written since is copied. */
std::size_t room_maker::leave_uncopied(ledger_view& view, block_list const& blocks)
{
  if (blocks.empty() || with_.ledger.ended()) { return 0; }
  std::vector<memory_range> ranges;
  try {
    ranges = joined(view, blocks, with_.settings.fetch_bytes);
  } catch (...) {  // no list of pieces: nothing leaves
    with_.ledger.count_failure({status_code::out_of_memory, 0, "leave"});
    return 0;
  }
  auto const bytes = bytes_of(blocks);
  set_busy(blocks, true);
  with_.ledger.begins_to_leave(bytes);
  with_.present.send_away(view);
  with_.offer.moving_begins();
  view.unlock();
  stream_handle evictions  = nullptr;
  auto result              = with_.driver.own_stream(own_stream_use::evictions, evictions);
  auto const written       = with_.copies.written(ranges);
  auto const written_bytes = bytes_of(written);
  if (!written.empty()) {  // by somebody who does not say so, and may do so again
    view.relock();
    for (auto const& part : written) {
      view.each(part, [](block_record& block, memory_range) { block.note_use(false, false); });
    }
    with_.moved.ask_to_host(written_bytes);
    view.unlock();
  }
  if (result.ok()) { result = with_.copies.leave_to_host(ranges); }
  bool const one_copy = result.ok();
  if (one_copy) { result = with_.mover.send(ranges, location::host(), evictions, false); }
  view.relock();
  with_.offer.moving_ends();
  for (auto const& each : blocks) {
    if (!one_copy) { continue; }
    if (each.record->only_read) {
      with_.copies.note_left(*each.record, each.range);
    } else {  // it was written since
      with_.copies.note_ended(*each.record, each.range);
    }
  }
  if (!result.ok()) {  // some are on the host by now
    with_.moved.was_not_asked(written_bytes);
    with_.moved.put_in_doubt();
  }
  settle(blocks, result, block_place::host);
  eviction_calls_ += ranges.size();
  if (!result.ok()) { return 0; }
  evicted_bytes_ += bytes;
  uncopied_bytes_ += bytes - written_bytes;
  return bytes;
}

/** @brief Has blocks leave that are copied to where they go. */
std::size_t room_maker::leave_copied(ledger_view& view, block_list blocks)
{
  if (blocks.empty() || with_.ledger.ended()) { return 0; }
  set_busy(blocks, true);
  with_.ledger.begins_to_leave(bytes_of(blocks));
  bool const advised = with_.mover.any_advised();
  refuge to{location::host(), 0, blocks.size()};
  std::vector<memory_range> ranges;
  try {
    if (!advised && with_.neighbors.size() > 0) { to = with_.neighbors.refuge_for(view, blocks); }
    while (blocks.size() > to.blocks) {
      blocks.back().record->busy = false;
      with_.ledger.ends_to_leave(blocks.back().range.bytes);
      blocks.pop_back();
    }
    ranges = joined(view, blocks, with_.settings.piece_bytes);
  } catch (...) {  // no list of pieces: nothing leaves, and nobody waits for it
    status const no_memory{status_code::out_of_memory, 0, "leave"};
    settle(blocks, no_memory, block_place::host);
    if (!to.where.is_host()) { with_.neighbors.arrived(to.number, blocks, no_memory); }
    return 0;
  }
  auto const where   = to.where;
  auto const bytes   = bytes_of(blocks);
  auto const counted = where.is_host() ? bytes : 0;  // no counter has what goes beside
  with_.moved.ask_to_host(counted);                  // before the call: counters rise while it runs
  with_.present.send_away(view);
  with_.offer.moving_begins();
  view.unlock();
  stream_handle evictions = nullptr;
  auto result             = with_.driver.own_stream(own_stream_use::evictions, evictions);
  bool const asked        = result.ok();
  if (asked) { result = with_.mover.send(ranges, where, evictions, advised); }
  view.relock();
  with_.offer.moving_ends();
  if (!result.ok()) {
    // Some may have left: as bytes that nobody asked for, they put everything in doubt. What went
    // beside does so without bytes.
    with_.moved.was_not_asked(counted);
    if (!where.is_host()) { with_.moved.put_in_doubt(); }
  }
  settle(blocks, result, where.is_host() ? block_place::host : block_place::beside);
  // A neighbour that was not even asked has not failed.
  auto const told = asked ? result : status{status_code::out_of_memory, 0, "leave"};
  if (!where.is_host()) { with_.neighbors.arrived(to.number, blocks, told); }
  eviction_calls_ += ranges.size();
  // A neighbour that takes nothing is passed over now: the next one, or the host, takes them.
  if (!result.ok()) { return where.is_host() ? 0 : leave_copied(view, std::move(blocks)); }
  evicted_bytes_ += bytes;
  if (!where.is_host()) { neighbor_bytes_ += bytes; }
  return bytes;
}

/** @brief Writes down where blocks are that were to leave, and lets others have them. */
void room_maker::settle(block_list const& blocks, status result, block_place place)
{
  set_busy(blocks, false);
  for (auto const& each : blocks) {
    if (!result.ok()) { break; }
    auto& block = *each.record;
    block.place = block.discarded ? block_place::nowhere : place;
    block.waits = false;
    if (block.place == block_place::host) { with_.moved.to_host(each.range.bytes); }
    with_.ledger.left(each.range.bytes);
    if (block.fetched_ahead && !block.discarded) { with_.ahead.left_early(each.range.bytes); }
    block.fetched_ahead = false;
  }
  with_.ledger.ends_to_leave(bytes_of(blocks));
  with_.ledger.count_if_failed(result);
  with_.offer.offer_idle();
  with_.ledger.tell_change();
}

void room_maker::tell(residency_statistics& told) const noexcept
{
  told.evicted_bytes      = evicted_bytes_;
  told.uncopied_bytes     = uncopied_bytes_;
  told.dropped_bytes      = dropped_bytes_;
  told.neighbor_bytes     = neighbor_bytes_;
  told.eviction_calls     = eviction_calls_;
  told.waited_for_room_ns = waited_.ns();
}

}  // namespace rmm_uvm
