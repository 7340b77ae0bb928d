// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/repeat_predictor.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t soon_freed = 32;  // uses; without a bound a 3D network fetched a third more

[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept
{
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6U) + (hash >> 2U);
  hash *= 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 29U);
}

}  // namespace

repeat_predictor::repeat_predictor(std::size_t most_events)
  : most_events_{std::max(most_events, 2 * context_events)}
{
}

std::uint64_t repeat_predictor::context() const noexcept
{
  std::uint64_t hash = 0;
  auto const first   = history_.size() - std::min(history_.size(), context_events);
  for (auto position = first; position < history_.size(); ++position) {
    hash = mixed(hash, history_[position].identity);
  }
  return hash;
}

// These are inline: every use passes here.
/** @brief Notes that the allocation used at a position is used next at another one. */
inline void repeat_predictor::note_next(std::size_t position, std::size_t next) noexcept
{
  auto& last = history_[position];
  last.after = static_cast<std::uint32_t>(next);
  if (last.place != no_place) { gaps_[last.place] = static_cast<use_tick>(next - position); }
}

/**
 * @brief Notes at which place of the repetition a use is.
 * @return uses from there until the allocation's next, as they were known last; 0: not known yet
 */
inline use_tick repeat_predictor::last_gap(std::size_t here)
{
  // Turns of an inner loop look alike until something follows that tells them apart.
  if (cursor_ == none || cursor_ < found_again_) { return 0; }
  auto& before = history_[cursor_];
  if (before.place == no_place) {
    gaps_.push_back(before.after == none ? 0 : static_cast<use_tick>(before.after - cursor_));
    before.place = static_cast<std::uint32_t>(gaps_.size() - 1);
  }
  history_[here].place = before.place;
  return gaps_[before.place];
}

/**
 * @brief The use at the same place of the next repetition; none: not known.
 * @param period uses in a repetition, about: what is not so far away was found by another
 * comparison
 */
inline std::size_t repeat_predictor::counterpart_of(std::size_t position,
                                                    std::size_t period) const noexcept
{
  std::size_t const again = history_[position].again;
  if (again == none) { return none; }
  auto const more = std::max(again - position, period);
  auto const less = std::min(again - position, period);
  return more - less <= more / 4 ? again : none;
}

/**
 * @brief Whether two uses may be of the same place in two repetitions.
 *
 * Then the second is of the allocation that has the first one's part now. Where nobody knows which
 * that is, both are about as long after the use before: uses in between may be left out or added.
 */
inline bool repeat_predictor::alike(std::size_t before, std::size_t here) const noexcept
{
  auto const& then = history_[before];
  auto const& now  = history_[here];
  if (then.identity == now.identity) { return true; }
  auto const offset = [](use_event const& use) { return use.range.address - use.owner; };
  if (then.event.kind != now.event.kind || then.event.range.bytes != now.event.range.bytes ||
      offset(then.event) != offset(now.event)) {
    return false;
  }
  if (then.before != none && now.before != none) {
    auto const counterpart = counterpart_of(then.before, here - before);
    if (counterpart != none) { return history_[counterpart].allocation == now.allocation; }
  }
  auto const more = std::max(then.ago, now.ago);
  auto const less = std::min(then.ago, now.ago);
  return (less == 0) == (more == 0) && more - less <= more / 8;
}

/** @brief How many uses in turn, up to two positions, were alike and as long after the last. */
std::size_t repeat_predictor::agreement(std::size_t then, std::size_t now) const noexcept
{
  auto const most      = std::min(then + 1, most_agreement);
  std::size_t together = 0;
  while (together < most &&
         history_[then - together].identity == history_[now - together].identity) {
    ++together;
  }
  return together;
}

/**
 * @brief Where, before, the same allocation was used after the same uses, the more of them the
 * better.
 * @param turns uses of it to look at
 * @return none: nowhere near
 */
std::size_t repeat_predictor::own_place(std::size_t here, std::size_t turns) const noexcept
{
  auto found           = none;
  auto most            = context_events - 1;
  std::size_t position = history_[here].before;
  for (; turns > 0 && position != none; --turns, position = history_[position].before) {
    auto const together = agreement(position, here);
    if (together > most) {
      found = position;
      most  = together;
    }
  }
  return found;
}

/**
 * @brief A longer iteration than the one that is followed, in which the same allocation was used.
 *
 * An iteration in which it was not used at all is only a part of one: of pieces that look alike,
 * one. Where the longer one did not hold once around, the next is tried later, and later each time.
 * @return its place; none: there is none, or the one that is followed will do
 */
std::size_t repeat_predictor::longer_place(std::size_t here) const noexcept
{
  bool const used_since = history_[here].before > cursor_;
  return used_since || here < realigns_from_ ? none : own_place(here, most_turns);
}

/** @brief What was expected did not come. */
void repeat_predictor::note_miss(std::size_t here) noexcept
{
  if (cursor_ == none) { return; }
  bool const held = here - realigned_ > here - 1 - cursor_;
  patience_       = held ? 0 : std::max(2 * patience_, most_agreement);
  realigns_from_  = here + patience_;
}

/**
 * @brief Finds where, before, what is seen now was seen.
 * @return whether it is what was expected
 */
inline bool repeat_predictor::find_place(std::size_t here)
{
  bool const known    = here + 1 >= context_events;
  auto const place    = context();
  bool const expected = cursor_ != none && alike(cursor_ + 1, here);
  if (!expected) { note_miss(here); }
  auto const own = expected ? longer_place(here) : own_place(here, 1);
  if (expected && own == none) {
    ++cursor_;
    if (known) { last_position_[place] = here; }
    return true;
  }
  auto const after = cursor_ == none ? lost_at_ : cursor_;
  cursor_          = own;
  if (expected) { realigned_ = here; }
  if (known) {
    auto const [last, is_new] = last_position_.try_emplace(place, here);
    auto const seen           = std::exchange(last->second, here);
    if (cursor_ == none && !is_new) { cursor_ = seen; }
    if (cursor_ != none) { found_again_ = here; }
  }
  if (cursor_ == none && after != none) { cursor_ = next_alike(after, here); }
  bool const stray = cursor_ == none && strays_ < most_stray;
  strays_          = stray ? strays_ + 1 : 0;
  lost_at_         = stray ? after : none;
  if (cursor_ == none && !stray) { found_again_ = here; }
  return expected;
}

/**
 * @brief The next place after one that is like what is seen now: those between were left out.
 * @return none: what is seen now was added
 */
std::size_t repeat_predictor::next_alike(std::size_t after, std::size_t here) const noexcept
{
  auto const end = std::min(after + 2 + most_stray, here);
  for (auto next = after + 1; next < end; ++next) {
    if (alike(next, here)) { return next; }
  }
  return none;
}

use_tick repeat_predictor::observe(use_event const& event)
{
  if (history_.size() >= 2 * most_events_) { drop_oldest(); }
  auto const here = history_.size();
  entry now;
  now.event = event;
  // A fresh allocation has no past, whatever lay at its address.
  auto const known = last_use_.find(event.owner);
  if (event.kind != use_kind::allocate && known != last_use_.end()) {
    now.before = static_cast<std::uint32_t>(known->second);
  }
  now.allocation = now.before == none ? ++allocations_ : history_[now.before].allocation;
  now.ago        = now.before == none ? 0 : static_cast<use_tick>(here - now.before);
  now.identity   = mixed(mixed(static_cast<std::uint64_t>(event.kind), event.range.bytes),
                       mixed(event.range.address - event.owner, now.ago));
  // First: where there is no memory for it, nothing points past the end.
  if (here % stretch_events == 0) { stretches_.resize(here / stretch_events + 1); }
  history_.push_back(now);
  note_live_bytes(here);
  if (now.before != none) { note_next(now.before, here); }
  last_use_[event.owner] = here;

  score_.enter(find_place(here));
  if (cursor_ != none) { history_[cursor_].again = static_cast<std::uint32_t>(here); }

  auto const gap = last_gap(here);
  freed_after_   = unknown_use;
  if (cursor_ != none) {
    auto const& then = history_[cursor_];
    // What is freed without another use may be used until then in ways that nobody announces.
    if (then.freed && then.lasted <= soon_freed) { return std::max<use_tick>(then.lasted, 1); }
    if (then.freed) { freed_after_ = then.lasted; }
    if (!then.freed && then.after != none) { return static_cast<use_tick>(then.after - cursor_); }
    // The last one at this place is still to be used again: of equal pieces, one after the other.
    if (!then.freed && now.before != none && gap != 0) { return gap; }
  }
  // Used in the same way as last time, so many uses ago: again after as many. So are programs that
  // go round equal pieces, of which each looks like the next.
  bool const goes_round = now.before != none && history_[now.before].identity == now.identity;
  // What is freed late, or was used at this place before and not since, may be used any time.
  if (goes_round) { freed_after_ = unknown_use; }
  return goes_round ? now.ago : unknown_use;
}

void repeat_predictor::forget(std::uintptr_t owner)
{
  auto const found = last_use_.find(owner);
  if (found == last_use_.end()) { return; }
  auto& last  = history_[found->second];
  last.freed  = true;
  last.lasted = static_cast<std::uint32_t>(history_.size() - 1 - found->second);
  last_use_.erase(found);
}

/**
 * @brief The allocation that has now the part of one in the repetition before.
 * @param then a use of that one, after the cursor
 * @param last the last use of it up to the cursor
 * @return its first byte; 0: nobody knows
 */
std::uintptr_t repeat_predictor::owner_now(entry const& then, std::size_t last) const
{
  auto const period = history_.size() - 1 - cursor_;
  if (auto const counterpart = counterpart_of(last, period); counterpart != none) {
    auto const& now = history_[counterpart];
    return now.freed ? 0 : now.event.owner;
  }
  auto const alive = last_use_.find(then.event.owner);
  bool const same =
    alive != last_use_.end() && history_[alive->second].allocation == then.allocation;
  return same ? then.event.owner : 0;
}

std::vector<expected_use> repeat_predictor::upcoming(std::size_t bytes) const
{
  std::vector<expected_use> found;
  if (cursor_ == none) { return found; }
  auto const period = history_.size() - 1 - cursor_;
  earlier_.clear();
  std::size_t together = 0;
  // Once around: after the end of what is known, the iteration begins again.
  for (std::size_t ahead = 1; ahead <= period && together < bytes; ++ahead) {
    auto const& then = history_[cursor_ + ahead];
    std::size_t last = then.before;
    bool repeated    = false;  // the same bytes as at the use before
    if (then.event.kind == use_kind::allocate) {
      last = none;  // to come
    } else if (last != none && last > cursor_) {
      repeated = history_[last].event.range == then.event.range;
      last     = earlier_[last - cursor_ - 1];
    }
    earlier_.push_back(static_cast<std::uint32_t>(last));
    auto const owner = last == none ? 0 : owner_now(then, last);
    if (owner == 0) { continue; }
    together += then.event.range.bytes;
    if (repeated) { continue; }
    auto const offset = then.event.range.address - then.event.owner;
    found.push_back({{owner + offset, then.event.range.bytes}, static_cast<use_tick>(ahead)});
  }
  return found;
}

expected_growth repeat_predictor::growth() const
{
  expected_growth highest;
  if (cursor_ == none) { return highest; }
  auto const now    = history_[cursor_].event.live_bytes;
  auto const period = history_.size() - 1 - cursor_;
  for (std::size_t ahead = 1; ahead <= period; ++ahead) {
    auto const position = cursor_ + ahead;
    auto const& stretch = stretches_[position / stretch_events];
    bool const whole    = position % stretch_events == 0 && ahead + stretch_events <= period + 1;
    if (whole && stretch.least_bytes >= now) {
      if (stretch.most_bytes > now + highest.bytes) {
        highest = {stretch.most_bytes - now, static_cast<use_tick>(ahead)};
      }
      ahead += stretch_events - 1;
      continue;
    }
    auto const then = history_[position].event.live_bytes;
    if (then < now) { break; }  // from there on, what is freed makes the room
    if (then > now + highest.bytes) { highest = {then - now, static_cast<use_tick>(ahead)}; }
  }
  // Of a stretch that was passed over, the first use at which so much was live.
  while (history_[cursor_ + highest.ahead].event.live_bytes < now + highest.bytes) {
    ++highest.ahead;
  }
  return highest;
}

/** @brief Has the stretch that a use is in know of it. */
void repeat_predictor::note_live_bytes(std::size_t position) noexcept
{
  auto const bytes    = history_[position].event.live_bytes;
  auto& stretch       = stretches_[position / stretch_events];
  stretch.least_bytes = std::min(stretch.least_bytes, bytes);
  stretch.most_bytes  = std::max(stretch.most_bytes, bytes);
}

/** @brief Numbers the places anew that are still remembered. */
void repeat_predictor::drop_unused_places()
{
  std::vector<std::uint32_t> number(gaps_.size(), no_place);
  std::vector<use_tick> gaps;
  for (auto& each : history_) {
    if (each.place == no_place) { continue; }
    auto& becomes = number[each.place];
    if (becomes == no_place) {
      becomes = static_cast<std::uint32_t>(gaps.size());
      gaps.push_back(gaps_[each.place]);
    }
    each.place = becomes;
  }
  gaps_ = std::move(gaps);
}

void repeat_predictor::drop_oldest()
{
  auto const dropped = history_.size() - most_events_;
  auto const moved   = [dropped](std::size_t position) {
    return position == none || position < dropped ? none : position - dropped;
  };
  history_.erase(history_.begin(), history_.begin() + static_cast<std::ptrdiff_t>(dropped));
  stretches_.assign(history_.size() / stretch_events + 1, {});
  for (std::size_t position = 0; position < history_.size(); ++position) {
    note_live_bytes(position);
  }
  for (auto& each : history_) {
    for (auto* const position : {&each.before, &each.after, &each.again}) {
      *position = static_cast<std::uint32_t>(moved(*position));
    }
  }
  cursor_  = moved(cursor_);
  lost_at_ = moved(lost_at_);
  for (auto* const position : {&found_again_, &realigned_, &realigns_from_}) {
    *position -= std::min(*position, dropped);
  }
  drop_unused_places();
  auto const shift = [&moved](auto& positions) {
    for (auto& [key, position] : positions) {
      position = moved(position);
    }
    std::erase_if(positions, [](auto const& one) { return one.second == none; });
  };
  shift(last_position_);
  shift(last_use_);
}

}  // namespace rmm_uvm
