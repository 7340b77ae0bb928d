// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/background_work.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

/** @brief How often the thread looks whether a neighbour's owner needs its memory. */
constexpr std::chrono::milliseconds owners_period{5};
/** @brief How often the thread looks whether kernels are done that use what could leave. */
constexpr std::chrono::microseconds marks_period{200};
/** @brief How often the thread looks whether something came unseen: 9 MB by faults. */
constexpr std::chrono::microseconds arrivals_period{1000};
constexpr std::size_t early_pieces = 4;  // that leave together where no request waits for them
/** So many pieces come ahead together, by two threads, if they are a small part of it. */
constexpr std::size_t pieces_ahead    = 4;
constexpr std::size_t part_that_comes = 8;
/**
 * Of what is looked ahead, used or allocated between two looks for what to fetch. A look goes
 * through the uses of the repetition under the lock that allocations need.
 */
constexpr std::size_t part_between_looks = 16;

}  // namespace

work_outcome background_work::work_once()
{
  auto rest = work_outcome::nothing;
  {
    ledger_view view{with_.ledger.blocks()};
    if (with_.ledger.ended()) { return work_outcome::nothing; }
    with_.marks.look();
    with_.follower.look_if_due(view);
    if (with_.ledger.ended()) { return work_outcome::nothing; }
    with_.offer.tell_if_busy(view);
    // An owner's own need comes first.
    if (with_.neighbors.holds_any() && with_.back.give_back(view) == work_outcome::again) {
      return work_outcome::again;
    }
    if (with_.waiting.count_written(view)) { with_.room.set_short(true); }
    if (with_.unseen.due()) {
      rest = with_.unseen.look(view);
      if (rest == work_outcome::again) { return rest; }
    }
    // Only where somebody was short of room lately: what fits is not evicted for a watermark.
    if (with_.room.is_short()) {
      if (auto const done = make_room_behind(view)) { return *done; }
      with_.room.set_short(false);
    }
  }
  if (with_.settings.ahead && with_.settings.fetch) {
    if (auto const fetched = fetch_ahead(); fetched != work_outcome::nothing) { return fetched; }
  }
  ledger_view view{with_.ledger.blocks()};
  if (with_.ledger.ended()) { return work_outcome::nothing; }
  if (with_.early.pay()) {
    auto const copied = with_.early.copy(view, leaving_bytes(view, with_.uses.growth()));
    if (copied != work_outcome::nothing) { return copied; }
  }
  if (!with_.settings.copy_beside) { return rest; }
  if (!with_.neighbors.holds_any()) { return rest; }
  auto const copied = with_.in_place.copy_beside(view);
  return copied == work_outcome::nothing ? rest : copied;
}

std::optional<std::chrono::microseconds> background_work::look_again_in(
  work_outcome before) const noexcept
{
  auto const work    = work_again_in(before);
  auto const follows = with_.follower.look_again_in();
  if (!work || !follows) { return work ? work : follows; }
  return std::min(*work, *follows);
}

/** @brief The same for all but what others take of the device. */
std::optional<std::chrono::microseconds> background_work::work_again_in(
  work_outcome before) const noexcept
{
  // What could leave is in use, and nobody tells when it is not any more.
  if (before == work_outcome::later) { return marks_period; }
  // Nor when kernels fault something in.
  if (with_.unseen.possible()) { return arrivals_period; }
  // Nor does anybody when an owner needs its memory back, or when this device's links are idle.
  if (with_.neighbors.holds_any()) { return owners_period; }
  return with_.offer.look_again_in();
}

/** @brief Has a piece leave towards the low watermark. @return none: there is room for now */
std::optional<work_outcome> background_work::make_room_behind(ledger_view& view)
{
  auto& ledger              = with_.ledger;
  auto const resident_bytes = ledger.staying_bytes();
  auto const excess_bytes   = resident_bytes - std::min(resident_bytes, ledger.low_bytes());
  // A piece at a time: a request that comes meanwhile finds what it needs not chosen yet.
  auto const most_bytes = std::min(excess_bytes, with_.settings.piece_bytes);
  auto leaving          = with_.room.choose(view, excess_bytes, most_bytes, candidates::unused_now);
  if (ledger.beyond_budget_bytes() > 0 && leaving.dead.empty() && leaving.live.empty()) {
    // What came unseen is used by work of which nobody knows when it is done.
    leaving = with_.room.choose(view, excess_bytes, most_bytes, candidates::all);
  }
  // While all that lives is to stay, none leaves before it must.
  bool const has_room =
    excess_bytes == 0 || resident_bytes + with_.room.lead_bytes() <= ledger.budget_bytes();
  if ((leaving.dead.empty() || with_.settings.ranks_dead()) && has_room) {
    // Live blocks may be needed again: no more leave than is foreseen, before requests need it.
    bool const left = make_room_early(view) == work_outcome::again;
    return left ? std::optional{work_outcome::again} : std::nullopt;
  }
  if (leaving.dead.empty() && leaving.live.empty()) {
    // Still short: what is in use, or about to be, may leave once more is announced.
    return with_.marks.any_outstanding() ? work_outcome::later : work_outcome::nothing;
  }
  return with_.room.let_go(view, leaving) ? work_outcome::again : work_outcome::nothing;
}

/**
 * @brief Has a piece of what is used last leave, where the program is going to need its room.
 *
 * By the order that is known: what is live at its highest level from now on, less what fits. Only
 * blocks leave that are used after that, or likely unused until then: hardly any for nothing.
 * What could be dropped is room already.
 */
work_outcome background_work::make_room_early(ledger_view& view)
{
  if (!with_.settings.fetch) { return work_outcome::nothing; }
  auto const growth = with_.uses.growth();
  auto const beyond = leaving_bytes(view, growth);
  if (beyond == 0) { return work_outcome::nothing; }
  auto const excess_bytes = std::min(beyond, early_pieces * with_.settings.piece_bytes);
  auto const until        = with_.clock.now() + growth.ahead;
  auto const leaving      = with_.room.choose(view, 0, excess_bytes, candidates::unused_now, until);
  if (leaving.live.empty()) { return work_outcome::nothing; }
  return with_.room.leave(view, leaving.live) > 0 ? work_outcome::again : work_outcome::nothing;
}

/** @brief So much that lives has to leave until so much more is there, by the order that is known.
 */
std::size_t background_work::leaving_bytes(ledger_view& view, expected_growth growth) const
{
  auto const there = with_.ledger.staying_bytes();
  auto const most  = with_.ledger.budget_bytes();
  if (growth.bytes == 0 || there + growth.bytes <= most) { return 0; }
  auto const beyond    = there + growth.bytes - most;
  auto const droppable = with_.room.drops() ? with_.room.dead_bytes(view, beyond) : 0;
  return beyond - droppable;
}

void background_work::adapt_look_ahead(ledger_view& view, std::span<use_event const> uses) noexcept
{
  if (!with_.settings.ahead || !with_.ledger.looks_ahead() || !with_.uses.foresees()) { return; }
  std::size_t used_bytes = 0;
  std::size_t late_bytes = 0;
  auto const now         = with_.clock.now();
  for (auto const& use : uses) {
    view.each(use.range, [&](block_record const& block, memory_range whole) {
      used_bytes += whole.bytes;
      // What nobody expected could not have come earlier, however far ahead is looked.
      bool const expected = block.expected_use() <= now + uses.size();
      bool const coming   = block.fetched_ahead && block.busy;
      if (coming || (expected && block.place == block_place::host)) { late_bytes += whole.bytes; }
    });
  }
  with_.ahead.used(used_bytes, late_bytes);
}

/** @brief Whether what was expected at the last look has to be asked for again. */
bool background_work::is_look_over() const noexcept
{
  bool const turned = with_.clock.now() < looked_at_;  // the clock, back
  return turned || with_.uses.learnt_bytes() >= looks_anew_at_ ||
         with_.ahead.bytes() < looked_bytes_;
}

void background_work::look_ahead()
{
  looked_bytes_  = with_.ahead.bytes();
  expected_      = with_.uses.upcoming(looked_bytes_);
  passed_        = 0;
  looked_at_     = with_.clock.now();
  looks_anew_at_ = with_.uses.learnt_bytes() + looked_bytes_ / part_between_looks;
}

/**
 * @brief The next blocks that are expected and away, so many bytes at most; no bytes: none.
 *
 * A look goes over all that is ahead, and holds for a part of it. With one for each piece, a round
 * would cost as much as it has uses for each of them.
 */
expected_use background_work::expected_next(ledger_view& view, std::size_t most_bytes)
{
  if (!is_look_over()) {
    if (auto const next = next_of_look(view, most_bytes); next.range.bytes > 0) { return next; }
    if (looked_at_ == with_.clock.now()) { return {}; }
  }
  look_ahead();
  return next_of_look(view, most_bytes);
}

expected_use background_work::next_of_look(ledger_view& view, std::size_t most_bytes)
{
  expected_use next;
  auto const now = with_.clock.now();
  for (; passed_ < expected_.size(); ++passed_) {
    auto& expected         = expected_[passed_];
    auto const expected_at = looked_at_ + expected.ahead;
    if (expected_at <= now) { continue; }
    bool changed = false;
    view.each(expected.range, [&](block_record& block, memory_range whole) {
      // Of what was freed or used since the look something else is expected.
      if (block.dead() || std::max(block.allocated, block.touched) > looked_at_) { return; }
      // Whatever was foreseen when it was used last, it is expected now: it must not leave as if it
      // were needed late, or two blocks would change places for ever.
      auto const foreseen = block.expected_use();
      if (foreseen < now || foreseen > expected_at) {
        block.expect(expected_at);
        changed = true;
      }
      if (block.place == block_place::device || block.busy) { return; }
      if (block.used_on_host() || block.in_place) { return; }
      if (next.range.bytes == 0) {
        next = {whole, expected_at - now};
      } else if (next.range.end() == whole.address &&
                 next.range.bytes + whole.bytes <= most_bytes) {
        next.range.bytes += whole.bytes;
      }
    });
    if (changed) {
      view.change(expected.range, now, [](block_record&, memory_range) {});
    }
    if (next.range.bytes > 0) {  // the next call goes on there: more of it may be away
      auto const first = std::max(next.range.address, expected.range.address);
      expected.range   = {first, expected.range.end() - first};
      break;
    }
  }
  return next;
}

/** @brief Whether a piece would take room that is needed before the piece is. */
bool background_work::is_in_the_way(ledger_view& view, expected_use const& next) const
{
  auto const growth = with_.uses.growth();
  if (growth.bytes == 0 || next.ahead < growth.ahead) { return false; }
  auto const most_bytes = with_.ledger.staying_bytes() + next.range.bytes + growth.bytes;
  auto const fits_bytes = with_.ledger.budget_bytes();
  if (most_bytes <= fits_bytes) { return false; }
  auto const beyond_bytes = most_bytes - fits_bytes;
  return with_.room.dead_bytes(view, beyond_bytes) < beyond_bytes;
}

/** @brief Nothing is to be fetched now; nor is anything before a part of what is looked ahead. */
work_outcome background_work::nothing_ahead() noexcept
{
  looks_ahead_at_ = with_.uses.learnt_bytes() + with_.ahead.bytes() / part_between_looks;
  return work_outcome::nothing;
}

/** @brief What leaves for what is expected next, if anything has to; none: nothing may. */
std::optional<leaving_blocks> background_work::leaving_for(ledger_view& view,
                                                           expected_use const& next)
{
  auto const bytes = next.range.bytes;
  if (with_.ledger.resident_bytes() + bytes <= with_.ledger.budget_bytes()) {
    return leaving_blocks{};
  }
  auto leaving   = with_.room.choose(view, bytes, bytes, candidates::unused_now);
  auto const now = with_.clock.now();
  // Nothing leaves for it that is expected sooner.
  auto const stays = [&](viewed_block const& each) {
    auto const& block   = *each.record;
    auto const foreseen = block.expected_use();
    return !block.dead() && foreseen >= now && foreseen <= now + next.ahead;
  };
  bool const none = leaving.dead.empty() && leaving.live.empty();
  if (none || std::any_of(leaving.live.begin(), leaving.live.end(), stays)) { return std::nullopt; }
  return leaving;
}

/** @brief Brings what is expected next, or has others leave for it: several pieces, or one. */
work_outcome background_work::fetch_ahead()
{
  auto const piece_bytes = with_.settings.piece_bytes;
  expected_use next;
  {
    ledger_view view{with_.ledger.blocks()};
    if (!is_to_look_ahead()) { return work_outcome::nothing; }
    auto const most_bytes =
      std::clamp(with_.ahead.bytes() / part_that_comes, piece_bytes, pieces_ahead * piece_bytes);
    next = expected_next(view, most_bytes);
    if (next.range.bytes == 0) { return nothing_ahead(); }
    auto const takes_less = [&] {  // a piece, for which there may be room
      if (next.range.bytes <= piece_bytes) { return false; }
      next = expected_next(view, piece_bytes);
      return true;
    };
    if (is_in_the_way(view, next) && (!takes_less() || is_in_the_way(view, next))) {
      return nothing_ahead();
    }
    auto leaving = leaving_for(view, next);
    if (!leaving && takes_less()) { leaving = leaving_for(view, next); }
    if (!leaving) {  // what could leave may be in use
      return with_.marks.any_outstanding() ? work_outcome::later : nothing_ahead();
    }
    if (!leaving->dead.empty() || !leaving->live.empty()) {
      return with_.room.let_go(view, *leaving) ? work_outcome::again : nothing_ahead();
    }
  }
  stream_handle stream = nullptr;
  if (!with_.driver.own_stream(own_stream_use::arrivals, stream).ok()) {
    ledger_view const view{with_.ledger.blocks()};
    return nothing_ahead();
  }
  with_.coming.bring({{&next.range, 1}, {}, stream, arrival_reason::ahead});
  return work_outcome::again;
}

}  // namespace rmm_uvm
