// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How room is made: dead blocks are dropped, then live ones leave in the order of the policy.
#include <rmm_uvm/residency/discards.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace rmm_uvm {
namespace {

/** @brief A live block that may leave. */
struct candidate {
  std::uint64_t key;
  viewed_block block;
};

/**
 * @brief Whether a live block may leave.
 * @param used_last kernels of later uses may be under way: they would fault it back
 * @param not_before see `choose`
 */
[[nodiscard]] bool may_leave(block_record const& block,
                             use_tick used_last,
                             use_tick now,
                             use_tick not_before)
{
  if (block.discarded && !block.dead()) { return false; }  // handed out anew, about to be brought
  if (std::max(block.allocated, block.touched) > used_last) { return false; }
  // Early nothing leaves that is dead, and stays a copy if it leaves: it is handed out again.
  return not_before == never_used || (!block.dead() && is_likely_unused(block, now, not_before));
}

/** @brief Moves candidates to `taken`, the highest key first, until `bytes` are together. */
void take(std::vector<candidate>& from,
          std::size_t bytes,
          std::vector<viewed_block>& taken,
          std::size_t& together)
{
  if (together >= bytes || from.empty()) { return; }
  auto const wanted =
    std::min(from.size(), (bytes - together + va_block_bytes - 1) / va_block_bytes + 1);
  std::partial_sort(from.begin(),
                    from.begin() + static_cast<std::ptrdiff_t>(wanted),
                    from.end(),
                    [](candidate const& a, candidate const& b) {
                      // By address where nobody cares: runs are cheaper than pieces.
                      return a.key != b.key ? a.key > b.key
                                            : a.block.range.address < b.block.range.address;
                    });
  for (auto const& each : from) {
    if (together >= bytes) { return; }
    taken.push_back(each.block);
    together += each.block.range.bytes;
  }
}

[[nodiscard]] std::size_t bytes_of(std::vector<viewed_block> const& blocks) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    bytes += each.range.bytes;
  }
  return bytes;
}

}  // namespace

/** @brief Adjacent blocks of a slab in pieces of at most `most_bytes`, ascending. */
std::vector<memory_range> residency_manager::joined(ledger_view const& view,
                                                    victims blocks,
                                                    std::size_t most_bytes)
{
  std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) {
    return a.range.address < b.range.address;
  });
  std::vector<memory_range> found;
  for (auto const& each : blocks) {
    if (!found.empty() && found.back().end() == each.range.address &&
        found.back().bytes + each.range.bytes <= most_bytes &&
        !view.slab_begins(each.range.address)) {
      found.back().bytes += each.range.bytes;
    } else {
      found.push_back(each.range);
    }
  }
  return found;
}

/**
 * @brief What the key counts of a block that a neighbour has memory for: as much as others' while
 * one takes any.
 * @param[out] taking neighbours that take such blocks, by bits
 */
std::uint64_t residency_manager::weight_of_kept_now(unsigned& taking) const noexcept
{
  taking = 0;
  if (settings_.policy == eviction_policy::fifo) { return 1; }  // as the kernel driver: in order
  if (adviser_ != nullptr && adviser_->advised_bytes() > 0) { return 1; }  // all leave to the host
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    if (neighbors_[number].takes_any()) { return 1; }
    if (neighbors_[number].takes_kept()) { taking |= 1U << number; }
  }
  return weight_of_kept(settings_.rates);
}

/** @param not_before live blocks only that are likely unused until then */
residency_manager::leaving_blocks residency_manager::choose(ledger_view& view,
                                                            std::size_t dead_bytes,
                                                            std::size_t live_bytes,
                                                            candidates who,
                                                            use_tick not_before) const
{
  leaving_blocks found;
  std::size_t chosen = 0;
  std::vector<candidate> live;
  std::vector<candidate> dead;
  std::vector<candidate> dying;  // freed, but what used them may be under way
  bool const drops    = settings_.drops() && driver_->info().discard.available;
  bool const foreseen = foresees();
  // Of uses that were not noted any block may have one under way.
  auto const idle_until = confirmed_.passed_over > done_ ? never_used : done_;
  auto const used_last  = who == candidates::unused_now ? idle_until : ~use_tick{0};
  unsigned taking       = 0;
  auto const weight     = weight_of_kept_now(taking);
  auto const most       = ~std::uint64_t{0} / weight;  // of a key: above it no product fits
  auto const note_dead  = [&](block_record& block, memory_range range) {
    found.dead_bytes += range.bytes;
    // Longest dead first: a pool soon hands out again what was freed last. Of one free by its uses.
    auto& these           = free_is_done(block) ? dead : dying;
    use_tick const unused = now_ - std::max(block.allocated, block.touched);
    these.push_back({((frees_ - block.freed) << 32U) | unused, {&block, range}});
  };
  auto const note_live = [&](block_record& block, memory_range range) {
    if (!may_leave(block, used_last, now_, not_before)) { return; }
    // Dead, but not to be dropped: nobody needs it, so it leaves before what somebody does.
    auto const key = drops && block.dead() ? ~std::uint64_t{0}
                                           : leaving_key(settings_.policy, block, now_, foreseen);
    // A way there and back that costs a sixth is worth to be taken more often.
    bool const cheap = (block.chunks & taking) != 0 && key < most;
    live.push_back({cheap ? key * weight : key, {&block, range}});
  };
  auto const look = [&](bool at_dead, bool at_live) {
    view.each([&](block_record& block, memory_range range) {
      if (block.place != block_place::device || !block.movable()) { return; }
      bool const droppable = drops && block.dead() && !block.unfenced;
      if (droppable && at_dead) { note_dead(block, range); }
      if (!droppable && at_live) { note_live(block, range); }
    });
  };
  // Where the dead were enough the last time, the live are looked at only if they are not now.
  bool const dead_first = dead_were_enough_;
  look(true, !dead_first);
  take(dead, dead_bytes, found.dead, chosen);
  // To wait for those is cheaper than to copy others; who need not wait lets them be.
  if (found.dead.empty() && who == candidates::all) { take(dying, dead_bytes, found.dead, chosen); }
  dead_were_enough_ = chosen >= std::max(live_bytes, std::size_t{1});
  if (dead_first && chosen < live_bytes) { look(false, true); }
  take(live, live_bytes, found.live, chosen);
  return found;
}

void residency_manager::make_room(ledger_view& view,
                                  std::size_t target_bytes,
                                  std::optional<stream_handle> stream)
{
  // The program runs ahead of the device: what its last kernels use must not leave under them, or
  // they fault it back. What is needed last may be what was used last: then they are waited for.
  // Where pages come by faults, others leave instead while there are any: the kernel driver does
  // not wait for kernels.
  bool waits = stream.has_value();
  while (counts_.resident_bytes > target_bytes) {
    if (counts_.resident_bytes - leaving_bytes_ <= target_bytes) {
      changed_.wait(view.lock());  // others are at it
      continue;
    }
    if (waits) { look_at_marks(); }
    auto const who          = waits && !settings_.fetch ? candidates::unused_now : candidates::all;
    auto const excess_bytes = counts_.resident_bytes - leaving_bytes_ - target_bytes;
    auto const leaving      = choose(view, excess_bytes, excess_bytes, who);
    // What was chosen is as it was only until the lock is let go: one kind, then anew.
    if (leaving.dead.empty() && !leaving.live.empty() && confirmed_.passes_over()) {
      end_confirmed(view);  // which changes what leaves first
    } else if (!leaving.dead.empty()) {
      shorten_lead();
      if (!drop(view, leaving.dead)) { return; }
    } else if (waits && (leaving.live.empty() || in_use(leaving.live))) {
      view.lock().unlock();
      static_cast<void>(driver_->synchronize(*stream));
      view.lock().lock();
      waits = false;
    } else if (!leaving.live.empty()) {
      lengthen_lead();
      if (leave(view, leaving.live) == 0) { return; }
    } else if (leaving_bytes_ > 0) {
      changed_.wait(view.lock());
    } else {
      ++counts_.over_budget;
      return;
    }
  }
}

/** @brief A request waited for live blocks to leave: the thread has the next ones leave earlier. */
void residency_manager::lengthen_lead() noexcept
{
  lead_bytes_ = std::min(std::max(4 * lead_bytes_, settings_.piece_bytes),
                         settings_.budget_bytes - settings_.low_bytes);
}

/** @brief The dead made room: as long as they do, no live block has to leave before it must. */
void residency_manager::shorten_lead() noexcept
{
  lead_bytes_ /= 2;
  if (lead_bytes_ < settings_.piece_bytes) { lead_bytes_ = 0; }
}

/** @brief Whether the work before the last free in a block is done, as far as marks tell. */
bool residency_manager::free_is_done(block_record const& block) const noexcept
{
  return block.freed <= frees_done_;
}

/** @brief Whether kernels or prefetches of one of the blocks may be under way. */
bool residency_manager::in_use(victims const& blocks) const noexcept
{
  if (confirmed_.passed_over > done_) { return true; }
  return std::any_of(blocks.begin(), blocks.end(), [this](viewed_block const& each) {
    auto const& block = *each.record;  // a prefetch may be queued behind kernels
    return std::max({block.allocated, block.touched, block.prefetched}) > done_;
  });
}

bool residency_manager::drop(ledger_view& view, victims const& blocks)
{
  if (blocks.empty()) { return true; }
  if (stopping_) { return false; }  // others are told by now what lives
  auto const ranges = joined(view, blocks, ~std::size_t{0});
  bool const done   = std::all_of(blocks.begin(), blocks.end(), [this](viewed_block const& each) {
    return free_is_done(*each.record);
  });
  for (auto const& each : blocks) {
    each.record->busy      = true;
    each.record->discarded = true;  // also where the call fails: some may have been by then
  }
  leaving_bytes_ += bytes_of(blocks);
  view.lock().unlock();
  auto const result = discard_now(ranges, done);
  view.lock().lock();
  settle(blocks, result, block_place::nowhere);
  if (result.ok()) { counts_.dropped_bytes += bytes_of(blocks); }
  return result.ok();
}

/**
 * @brief Discards what was freed, once the work before it is done.
 * @param frees_are_done that work is known to be done; else that before every free so far is
 * awaited
 */
status residency_manager::discard_now(range_list ranges, bool frees_are_done) noexcept
{
  if (!frees_are_done) {
    stream_handle frees = nullptr;
    auto result         = driver_->own_stream(own_stream_use::frees, frees);
    if (result.ok()) { result = driver_->synchronize(frees); }
    if (!result.ok()) { return result; }
  }
  return discard_at_once(*driver_, ranges);
}

/**
 * @brief Has live blocks leave, to a neighbour while one takes any, else to the host.
 *
 * A neighbour may take some of them only: then the others stay for now.
 * @return bytes that left; 0 when it failed
 */
std::size_t residency_manager::leave(ledger_view& view, victims blocks)
{
  if (blocks.empty() || stopping_) { return 0; }
  for (auto const& each : blocks) {
    each.record->busy = true;
  }
  leaving_bytes_ += bytes_of(blocks);
  bool const advised = adviser_ != nullptr && adviser_->advised_bytes() > 0;
  refuge to{location::host(), 0, blocks.size()};
  std::vector<memory_range> ranges;
  try {
    if (!advised && !neighbors_.empty()) { to = refuge_for(view, blocks); }
    while (blocks.size() > to.blocks) {
      blocks.back().record->busy = false;
      leaving_bytes_ -= blocks.back().range.bytes;
      blocks.pop_back();
    }
    ranges = joined(view, blocks, settings_.piece_bytes);
  } catch (...) {  // no list of pieces: nothing leaves, and nobody waits for it
    status const no_memory{status_code::out_of_memory, 0, "leave"};
    settle(blocks, no_memory, block_place::host);
    if (!to.where.is_host()) { arrived_beside(to.number, blocks, no_memory); }
    return 0;
  }
  auto const where   = to.where;
  auto const counted = where.is_host() ? bytes_of(blocks) : 0;  // no counter has what goes beside
  asked_bytes_ += counted;  // before the call: counters rise while it runs
  sent_away_.store(true, std::memory_order_release);
  end_confirmed(view);
  moving(true);
  view.lock().unlock();
  stream_handle evictions = nullptr;
  auto result             = driver_->own_stream(own_stream_use::evictions, evictions);
  bool const asked        = result.ok();
  std::array<status, 2> others;
  if (result.ok() && advised) {
    auto const left = adviser_->to_host(ranges, evictions, moves_directly(where));
    result          = left.moved;
    others          = {left.advised, left.direct};
  } else if (result.ok()) {
    std::atomic<std::size_t> moved_bytes{0};
    result = move_all(ranges, where, evictions, moved_bytes);
    // What goes there by libcuda must have gone before anything brings it back past libcuda.
    bool const both = !moves_directly(where) && moves_directly(location::host());
    if (result.ok() && both) { result = driver_->synchronize(evictions); }
  }
  view.lock().lock();
  moving(false);
  for (auto const& also : others) {
    if (!also.ok()) { count_failure(also); }
  }
  if (!result.ok()) {
    // Some may have left: as bytes that nobody asked for, they put everything in doubt. What went
    // beside does so without bytes.
    asked_bytes_ -= counted;
    if (!where.is_host()) { ++epoch_; }
  }
  settle(blocks, result, where.is_host() ? block_place::host : block_place::beside);
  // A neighbour that was not even asked has not failed.
  auto const told = asked ? result : status{status_code::out_of_memory, 0, "leave"};
  if (!where.is_host()) { arrived_beside(to.number, blocks, told); }
  counts_.eviction_calls += ranges.size();
  // A neighbour that takes nothing is passed over now: the next one, or the host, takes them.
  if (!result.ok()) { return where.is_host() ? 0 : leave(view, std::move(blocks)); }
  counts_.evicted_bytes += bytes_of(blocks);
  if (!where.is_host()) { counts_.neighbor_bytes += bytes_of(blocks); }
  return bytes_of(blocks);
}

void residency_manager::settle(victims const& blocks, status result, block_place place)
{
  for (auto const& each : blocks) {
    each.record->busy = false;
    if (result.ok()) {
      each.record->place = each.record->discarded ? block_place::nowhere : place;
      if (each.record->place == block_place::host) { faulted_in_.to_host(each.range.bytes); }
      counts_.resident_bytes -= each.range.bytes;
      if (each.record->fetched_ahead && !each.record->discarded) {
        look_ahead_.left_early(each.range.bytes);
      }
      each.record->fetched_ahead = false;
    }
  }
  leaving_bytes_ -= bytes_of(blocks);
  if (!result.ok()) { count_failure(result); }
  offer_idle();
  changed_.notify_all();
}

}  // namespace rmm_uvm
