// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the manager does on its own: evict from the high watermark to the low one, fetch ahead.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace rmm_uvm {
namespace {

/** @brief How often the thread looks whether a neighbour's owner needs its memory. */
constexpr std::chrono::milliseconds owners_period{5};
/** @brief How often it looks at this device's own load while nothing moves. */
constexpr std::chrono::milliseconds own_load_period{100};
/** @brief How often the thread looks whether kernels are done that use what could leave. */
constexpr std::chrono::microseconds marks_period{200};
constexpr std::size_t early_pieces = 4;  // that leave together where no request waits for them
constexpr use_tick small_uses_between_marks = 8;
// Numbers of marks: of uses first, of frees behind them.
constexpr std::size_t use_mark_count           = 64;
constexpr std::size_t free_mark_count          = mark_count - use_mark_count;
constexpr std::size_t bytes_between_free_marks = 8 * va_block_bytes;

}  // namespace

void residency_manager::wake() noexcept
{
  if (!settings_.background || (!short_of_room_ && !settings_.ahead)) { return; }
  {
    ledger_view const view{ledger_};
    woken_ = true;
  }
  wanted_.notify_one();
}

/** @brief Waits until there may be something to do. @return false when the thread is to end */
bool residency_manager::await_work(outcome before)
{
  ledger_view view{ledger_};
  working_ = false;
  woken_   = woken_ || before == outcome::again;  // the gate closed in the middle of it
  changed_.notify_all();
  auto const called = [this] { return woken_ || stopping_ || gate_.closed(); };
  for (;;) {
    if (before == outcome::later) {
      // What could leave is in use: nobody tells when it is not any more.
      wanted_.wait_for(view.lock(), marks_period, called);
    } else if (holds_beside()) {  // nor when an owner needs its memory back
      wanted_.wait_for(view.lock(), owners_period, called);
    } else if (owner_.busy || owner_.stirred) {  // nor when this device's links are idle again
      wanted_.wait_for(view.lock(), loads_period, called);
    } else if (settings_.lends && owner_.told) {
      wanted_.wait_for(view.lock(), own_load_period, called);
    } else {
      wanted_.wait(view.lock(), called);
    }
    if (!gate_.closed()) { break; }
    view.lock().unlock();
    gate_.leave();
    gate_.enter();
    view.lock().lock();
  }
  if (stopping_) { return false; }
  woken_   = false;
  working_ = true;
  return true;
}

void residency_manager::run()
{
  auto before = outcome::nothing;
  gate_.enter();
  while (await_work(before)) {
    try {
      before = work_once();
      while (before == outcome::again && !gate_.closed()) {
        before = work_once();
      }
    } catch (...) {  // no list of blocks could be made: the next request makes room by itself
      before = outcome::nothing;
      ledger_view const view{ledger_};
      count_failure({status_code::out_of_memory, 0, "migration thread"});
    }
  }
  gate_.leave();
}

/** @brief Has the thread look at its gate. */
void residency_manager::call_thread() noexcept { wanted_.notify_one(); }

/** @brief In a forked child: requests make room by themselves, and the rest is `run_pending`'s. */
void residency_manager::do_without_thread() noexcept
{
  settings_.background = false;
  woken_               = false;
  working_             = false;  // it was, if the fork waited in vain
  movers_.work_alone();
}

void residency_manager::run_pending() noexcept
try {
  while (work_once() == outcome::again) {}
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "run_pending"});
}

bool residency_manager::run_pending_piece() noexcept
try {
  return work_once() == outcome::again;
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "run_pending_piece"});
  return false;
}

/**
 * @brief Notes how far a stream has got, unless little was used since: a mark takes time.
 *
 * A mark lies before the work of the uses that are under way, and so tells of those before `first`,
 * the first of them.
 */
void residency_manager::mark(use_tick first, std::size_t used_bytes, stream_handle stream) noexcept
try {
  placed_mark placed{};
  {
    ledger_view const view{ledger_};
    // One mark behind uses that were passed over tells when they are done.
    bool const settles = confirmed_.passed_over > done_ && marked_ <= confirmed_.passed_over;
    bool const small   = used_bytes < va_block_bytes && now_ - marked_ < small_uses_between_marks;
    if (small && !settles) { return; }
    placed  = {first, marks_++ % use_mark_count};
    marked_ = now_;
  }
  // Without a mark, what was used last looks in use until a later one is passed.
  auto const result = driver_->mark(placed.number, stream);
  ledger_view const view{ledger_};
  if (!result.ok()) {
    count_failure(result);
    return;
  }
  if (outstanding_.size() == use_mark_count) {
    outstanding_.pop_front();
  }  // its number is used anew
  placed.tick = std::min(placed.tick, now_ + 1);  // the clock may have been turned back meanwhile
  outstanding_.push_back(placed);
} catch (...) {
  count_failure_of("mark");
}

/** @brief Notes how far the stream that waits for frees has got, now and then. */
void residency_manager::mark_frees(std::size_t freed_bytes, stream_handle frees) noexcept
try {
  fenced_frees placed{};
  {
    ledger_view const view{ledger_};
    unmarked_bytes_ += freed_bytes;
    if (unmarked_bytes_ < bytes_between_free_marks) { return; }
    unmarked_bytes_ = 0;
    placed          = {frees_, use_mark_count + free_marks_++ % free_mark_count};
  }
  // Without a mark, discards of what was freed wait until the stream is idle.
  if (!driver_->mark(placed.number, frees).ok()) { return; }
  ledger_view const view{ledger_};
  if (frees_marked_.size() == free_mark_count) { frees_marked_.pop_front(); }
  frees_marked_.push_back(placed);
} catch (...) {
  count_failure_of("mark_frees");
}

/**
 * @brief Looks how far the device has got.
 *
 * Of several streams the others' work may not be done: evicting that is slow, not wrong.
 */
void residency_manager::look_at_marks() noexcept
{
  while (!outstanding_.empty() && driver_->passed(outstanding_.front().number)) {
    done_ = std::max(done_, outstanding_.front().tick - 1);
    outstanding_.pop_front();
  }
  while (!frees_marked_.empty() && driver_->passed(frees_marked_.front().number)) {
    frees_done_ = std::max(frees_done_, frees_marked_.front().frees);
    frees_marked_.pop_front();
  }
  if (asked_by_ <= done_) {
    static_cast<void>(epoch());  // counts what came first
    faulted_in_.earlier_came();
    asked_by_ = now_;
  }
}

/** @brief Has a piece leave towards the low watermark. @return none: there is room for now */
std::optional<residency_manager::outcome> residency_manager::make_room_behind(ledger_view& view)
{
  auto const resident_bytes = counts_.resident_bytes - leaving_bytes_;
  auto const excess_bytes   = resident_bytes - std::min(resident_bytes, settings_.low_bytes);
  // A piece at a time: a request that comes meanwhile finds what it needs not chosen yet.
  auto const most_bytes = std::min(excess_bytes, settings_.piece_bytes);
  auto const leaving    = choose(view, excess_bytes, most_bytes, candidates::unused_now);
  // While all that lives is to stay, none leaves before it must.
  auto const lead_bytes = confirmed_.passes_over() ? 0 : lead_bytes_;
  bool const has_room = excess_bytes == 0 || resident_bytes + lead_bytes <= settings_.budget_bytes;
  if (leaving.dead.empty() && has_room) {
    // Live blocks may be needed again: no more leave than is foreseen, before requests need it.
    bool const left = make_room_early(view, leaving.dead_bytes) == outcome::again;
    return left ? std::optional{outcome::again} : std::nullopt;
  }
  if (leaving.dead.empty() && leaving.live.empty()) {
    short_of_room_ = !outstanding_.empty();
    return short_of_room_ ? outcome::later : outcome::nothing;
  }
  bool const left = leaving.dead.empty() ? leave(view, leaving.live) > 0 : drop(view, leaving.dead);
  return left ? outcome::again : outcome::nothing;
}

residency_manager::outcome residency_manager::work_once()
{
  {
    ledger_view view{ledger_};
    if (stopping_) { return outcome::nothing; }
    look_at_marks();
    tell_if_busy(view);
    // An owner's own need comes first.
    if (holds_beside() && give_back(view) == outcome::again) { return outcome::again; }
    // Only where somebody was short of room lately: what fits is not evicted for a watermark.
    if (short_of_room_) {
      if (auto const done = make_room_behind(view)) { return *done; }
      short_of_room_ = false;
    }
  }
  if (settings_.ahead && settings_.fetch) {
    if (auto const fetched = fetch_ahead(); fetched != outcome::nothing) { return fetched; }
  }
  if (!settings_.copy_beside || !holds_beside()) { return outcome::nothing; }
  ledger_view view{ledger_};
  return copy_beside(view);
}

/**
 * @brief Has a piece of what is used last leave, where the program is going to need its room.
 *
 * By the order that is known: what is live at its highest level from now on, less what fits. Only
 * blocks leave that are used after that, or likely unused until then: hardly any for nothing.
 * @param dead_bytes that are on the device and could be dropped: room already
 */
residency_manager::outcome residency_manager::make_room_early(ledger_view& view,
                                                              std::size_t dead_bytes)
{
  if (predictor_ == nullptr || !foresees() || !settings_.fetch) { return outcome::nothing; }
  auto const growth = predictor_->growth();
  auto const there  = counts_.resident_bytes - leaving_bytes_;
  auto const wanted = there - std::min(there, dead_bytes) + growth.bytes;
  if (growth.bytes == 0 || wanted <= settings_.budget_bytes) { return outcome::nothing; }
  auto const excess_bytes =
    std::min(wanted - settings_.budget_bytes, early_pieces * settings_.piece_bytes);
  auto const leaving = choose(view, 0, excess_bytes, candidates::unused_now, now_ + growth.ahead);
  if (leaving.live.empty()) { return outcome::nothing; }
  return leave(view, leaving.live) > 0 ? outcome::again : outcome::nothing;
}

/** @brief Counts what comes too late for the uses; called before anything is learnt of them. */
void residency_manager::adapt_look_ahead(ledger_view& view,
                                         std::span<use_event const> uses) noexcept
{
  std::size_t used_bytes = 0;
  std::size_t late_bytes = 0;
  for (auto const& use : uses) {
    view.each(use.range, [&](block_record const& block, memory_range whole) {
      used_bytes += whole.bytes;
      // What nobody expected could not have come earlier, however far ahead is looked.
      bool const expected = block.expected_use() <= now_ + uses.size();
      bool const coming   = block.fetched_ahead && block.busy;
      if (coming || (expected && block.place == block_place::host)) { late_bytes += whole.bytes; }
    });
  }
  look_ahead_.used(used_bytes, late_bytes);
}

/** @brief The next blocks that are expected and away, one piece; no bytes: none. */
expected_use residency_manager::expected_next(ledger_view& view) const
{
  expected_use next;
  for (auto const& expected : predictor_->upcoming(look_ahead_.bytes())) {
    view.each(expected.range, [&](block_record& block, memory_range whole) {
      // Whatever was foreseen when it was used last, it is expected now: it must not leave as if it
      // were needed late, or two blocks would change places for ever.
      auto const expected_at = now_ + expected.ahead;
      auto const foreseen    = block.expected_use();
      if (foreseen < now_ || foreseen > expected_at) { block.expect(expected_at); }
      if (block.place == block_place::device || block.busy || block.dead()) { return; }
      if (block.used_on_host() || block.in_place) { return; }
      if (next.range.bytes == 0) {
        next = {whole, expected.ahead};
      } else if (next.range.end() == whole.address &&
                 next.range.bytes + whole.bytes <= settings_.piece_bytes) {
        next.range.bytes += whole.bytes;
      }
    });
    if (next.range.bytes > 0) { break; }
  }
  return next;
}

/** @brief Whether a piece would take room that is needed before the piece is. */
bool residency_manager::is_in_the_way(ledger_view& view, expected_use const& next) const
{
  auto const growth = predictor_->growth();
  if (growth.bytes == 0 || next.ahead < growth.ahead) { return false; }
  std::size_t live_bytes = next.range.bytes + growth.bytes;
  view.each([&live_bytes](block_record const& block, memory_range whole) {
    if (block.place == block_place::device && !block.dead()) { live_bytes += whole.bytes; }
  });
  return live_bytes > settings_.budget_bytes;
}

residency_manager::outcome residency_manager::fetch_ahead()
{
  expected_use next;
  {
    ledger_view view{ledger_};
    if (!foresees()) { return outcome::nothing; }
    next = expected_next(view);
    if (next.range.bytes == 0) { return outcome::nothing; }
    if (is_in_the_way(view, next)) { return outcome::nothing; }
    if (counts_.resident_bytes + next.range.bytes > settings_.budget_bytes) {
      auto const leaving = choose(view, next.range.bytes, next.range.bytes, candidates::unused_now);
      // Nothing leaves for it that is expected sooner.
      auto const stays = [&](viewed_block const& each) {
        auto const& block   = *each.record;
        auto const foreseen = block.expected_use();
        return !block.dead() && foreseen >= now_ && foreseen <= now_ + next.ahead;
      };
      if ((leaving.dead.empty() && leaving.live.empty()) ||
          std::any_of(leaving.live.begin(), leaving.live.end(), stays)) {
        return !outstanding_.empty() ? outcome::later : outcome::nothing;
      }
      bool const left =
        leaving.dead.empty() ? leave(view, leaving.live) > 0 : drop(view, leaving.dead);
      return left ? outcome::again : outcome::nothing;
    }
  }
  stream_handle arrivals = nullptr;
  if (!driver_->own_stream(own_stream_use::arrivals, arrivals).ok()) { return outcome::nothing; }
  bring({&next.range, 1}, {}, arrivals, reason::ahead);
  return outcome::again;
}

void residency_manager::flush() noexcept
{
  ledger_view view{ledger_};
  changed_.wait(view.lock(),
                [this] { return stopping_ || (!woken_ && !working_ && leaving_bytes_ == 0); });
}

}  // namespace rmm_uvm
