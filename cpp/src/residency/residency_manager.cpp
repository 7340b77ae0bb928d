// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a program does reaches the budget here: allocations, frees, announced uses, hints.
#include <rmm_uvm/residency/fault_driven/fault_driven.hpp>
#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

/** @brief Settings with everything that was left open. */
[[nodiscard]] residency_settings complete(residency_settings settings, uvm_driver& driver)
{
  // The largest that hold up nobody, by libcuda and past it (measured, see the settings).
  bool const direct = settings.direct && driver.migrates_to(location::host());
  if (settings.piece_bytes == 0) { settings.piece_bytes = (direct ? 4 : 2) * va_block_bytes; }
  if (settings.fetch_bytes == 0) { settings.fetch_bytes = (direct ? 16 : 2) * va_block_bytes; }
  if (settings.lender == nullptr) { settings.lender = std::make_shared<free_memory_lender>(); }
  return settings;
}

/** @brief Whether it is the default stream that all threads share; it is there for ever. */
[[nodiscard]] bool is_default(stream_handle stream) noexcept
{
  constexpr std::uintptr_t legacy = 1;  // CU_STREAM_LEGACY
  auto const handle               = reinterpret_cast<std::uintptr_t>(stream);
  return handle == 0 || handle == legacy;
}

[[nodiscard]] look_ahead look_ahead_of(residency_settings const& settings) noexcept
{
  if (!settings.ahead_adapts) { return look_ahead{settings.ahead_bytes}; }
  return {settings.ahead_bytes, settings.piece_bytes, settings.budget_bytes / 2};
}

[[nodiscard]] std::unique_ptr<use_learner> make_learner(residency_settings const& settings,
                                                        use_clock& clock,
                                                        presence& present,
                                                        stream_marks& marks,
                                                        live_block_watch& watch,
                                                        last_announced& announced,
                                                        residency_ledger& blocks)
{
  if (is_fault_driven(settings)) {
    return std::make_unique<fault_driven_learner>(
      settings.policy, clock, present, marks, watch, announced, blocks);
  }
  return std::make_unique<use_learner>(settings.policy, clock, present, marks, watch, announced);
}

[[nodiscard]] std::unique_ptr<arrivals> make_arrivals(arrivals::parts const& all)
{
  if (is_fault_driven(all.settings)) { return std::make_unique<fault_driven_arrivals>(all); }
  return std::make_unique<arrivals>(all);
}

}  // namespace

residency_manager::residency_manager(std::shared_ptr<uvm_driver> driver,
                                     residency_ledger& ledger,
                                     residency_settings settings,
                                     memory_adviser* adviser)
  : driver_{std::move(driver)},
    settings_{complete(std::move(settings), *driver_)},
    asked_ahead_bytes_{settings_.ahead_bytes},
    asked_low_fraction_{static_cast<double>(settings_.low_bytes) /
                        static_cast<double>(settings_.budget_bytes)},
    signal_{settings_.background},
    ledger_{ledger, settings_.budget_bytes, settings_.low_bytes},
    clock_{settings_.clock_end},
    moved_{driver_->counters(), settings_.fetch},
    present_{driver_->counters(), ledger_, clock_, moved_},
    marks_{*driver_, ledger_, clock_, present_, moved_},
    uses_{make_learner(settings_, clock_, present_, marks_, watch_, announced_, ledger)},
    ahead_{look_ahead_of(settings_)},
    mover_{*driver_, settings_, ledger_, adviser},
    offer_{*driver_, settings_, ledger_, signal_},
    neighbors_{*driver_, settings_, ledger_, signal_},
    advice_{*driver_, ledger_, neighbors_, adviser},
    copies_{{*driver_, settings_, ledger_, advice_}},
    room_{{*driver_,
           settings_,
           ledger_,
           clock_,
           moved_,
           present_,
           marks_,
           announced_,
           *uses_,
           ahead_,
           mover_,
           offer_,
           neighbors_,
           copies_}},
    follower_{{*driver_,
               settings_,
               ledger_,
               std::move(settings_.sharing),
               [this](std::size_t bytes) { resize(bytes, low_at(bytes)); }}},
    waiting_{{*driver_, settings_, ledger_, clock_, moved_, present_, follower_}},
    coming_{make_arrivals({*driver_,
                           settings_,
                           ledger_,
                           clock_,
                           moved_,
                           present_,
                           marks_,
                           mover_,
                           offer_,
                           neighbors_,
                           advice_,
                           copies_,
                           room_,
                           waiting_,
                           signal_})},
    back_{{*driver_,
           settings_,
           ledger_,
           clock_,
           moved_,
           present_,
           marks_,
           *uses_,
           mover_,
           neighbors_,
           advice_,
           *coming_}},
    early_{{*driver_,
            settings_,
            ledger_,
            clock_,
            moved_,
            marks_,
            *uses_,
            mover_,
            neighbors_,
            copies_,
            room_}},
    in_place_{{*driver_, settings_, ledger_, clock_, *uses_, mover_, neighbors_, advice_, room_}},
    mappings_{{settings_, ledger_, marks_, advice_}},
    unseen_{{*driver_, ledger_, clock_, moved_, room_}},
    work_{{*driver_,
           settings_,
           ledger_,
           clock_,
           marks_,
           *uses_,
           ahead_,
           offer_,
           neighbors_,
           room_,
           *coming_,
           back_,
           early_,
           in_place_,
           unseen_,
           waiting_,
           follower_}},
    thread_{ledger_, work_, signal_, [this] { do_without_thread(); }}
{
  offer_.offer_idle();
  if (settings_.background) { thread_.start(); }
}

residency_manager::~residency_manager() = default;

/** @brief The low watermark of a budget that followed others: as far below it as was asked. */
std::size_t residency_manager::low_at(std::size_t budget_bytes) const noexcept
{
  return static_cast<std::size_t>(asked_low_fraction_ * static_cast<double>(budget_bytes));
}

/** @brief In a forked child: requests make room by themselves, and the rest is `run_pending`'s. */
void residency_manager::do_without_thread() noexcept
{
  settings_.background = false;
  follower_.is_alone();
  signal_.is_not_heard();
  mover_.work_alone();
}

/**
 * @brief Before a request, where no thread does it: has the budget follow, finds what came unseen,
 * and has others leave for it.
 */
void residency_manager::look_without_thread(ledger_view& view)
{
  if (signal_.heard()) { return; }
  bool const followed = follower_.look_if_due(view);
  bool const written  = waiting_.count_written(view);
  if (!followed && !written && !unseen_.due()) { return; }
  while (unseen_.due() && unseen_.look(view) == work_outcome::again) {}
  while (auto const excess_bytes = ledger_.beyond_budget_bytes()) {
    auto const most_bytes = std::min(excess_bytes, settings_.piece_bytes);
    if (!room_.let_go(view, room_.choose(view, excess_bytes, most_bytes, candidates::all))) {
      return;
    }
  }
}

void residency_manager::wake() noexcept
{
  if (!signal_.heard()) { return; }
  bool const ahead = settings_.ahead && settings_.fetch && ledger_.under_pressure();
  if (!room_.is_short() && !ahead) { return; }
  bool first = false;
  {
    ledger_view const view{ledger_.blocks()};
    first = (room_.is_short() || work_.is_to_look_ahead()) && signal_.ask();
  }
  if (first) { signal_.look(); }  // it would find the lock taken, and sleep again
}

void residency_manager::on_allocate(memory_range allocation, stream_handle stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  use_event const use{use_kind::allocate, allocation, allocation.address};
  auto first   = never_used;
  bool present = false;
  {
    ledger_view view{ledger_.blocks()};
    look_without_thread(view);
    ledger_.wait_until_free(view, {&allocation, 1});
    first = clock_.now() + 1;
    uses_->hand_out(view, allocation);
    uses_->learn(view, use);
    follower_.allocated(view, allocation.bytes);
    present = present_.is_present(view, allocation);
  }
  bool const pressed = ledger_.under_pressure();
  if (present && pressed && present_.confirmed()) { return; }  // one lock, no call
  if (present && !pressed) {                                   // likewise
    uses_->room_was_made({&use, 1});
    wake();
    return;
  }
  if (driver_->capturing(stream) != capture_state::none) {
    coming_->leave_to_faults(allocation);
    uses_->room_was_made({&use, 1});
    wake();
    return;
  }
  if (pressed) { marks_.mark(first, allocation.bytes, stream); }
  coming_->bring({{&allocation, 1}, allocation, stream, arrival_reason::allocation});
  uses_->room_was_made({&use, 1});
  wake();
} catch (...) {
  ledger_.count_no_memory("on_allocate");
}

void residency_manager::renew_arrival(memory_range allocation, stream_handle stream) noexcept
try {
  if (!is_fault_driven(settings_) || driver_->capturing(stream) != capture_state::none) { return; }
  if (ledger_.under_pressure()) {  // without a mark behind it, the last use looks under way
    auto const first = [&] {
      ledger_view const view{ledger_.blocks()};
      return clock_.now() + 1;
    }();
    marks_.mark(first, allocation.bytes, stream);
  }
  coming_->bring({{&allocation, 1}, allocation, stream, arrival_reason::allocation});
  ledger_view view{ledger_.blocks()};
  view.each(allocation, [&](block_record& block, memory_range) { block.arrived = clock_.now(); });
} catch (...) {
  ledger_.count_no_memory("renew_arrival");
}

void residency_manager::on_reuse(carved_range const& carved,
                                 stream_handle stream,
                                 bool by_stream) noexcept
try {
  auto const extent = carved.extent;
  if (extent.bytes == 0) { return; }
  memory_range const used{extent.address,
                          carved.likely_bytes == 0 ? extent.bytes : carved.likely_bytes};
  memory_range const rest{used.end(), extent.end() - used.end()};
  use_event const use{use_kind::allocate, used, used.address};
  auto first   = never_used;
  bool present = false;
  {
    ledger_view view{ledger_.blocks()};
    look_without_thread(view);
    ledger_.wait_until_free(view, {&extent, 1});
    first = clock_.now() + 1;
    uses_->hand_out(view, carved.newly_live);
    uses_->learn(view, use);
    follower_.allocated(view, used.bytes);
    present = present_.confirmed() && present_.is_present(view, used);
  }
  coming_->leave_discarded(rest);  // the allocation may be longer than its likes were
  if (present) {
    look_at_live_blocks(used.bytes);
    return;
  }
  if (driver_->capturing(stream) != capture_state::none) {
    coming_->leave_to_faults(used);
    wake();
    return;
  }
  if (ledger_.under_pressure()) { marks_.mark(first, used.bytes, stream); }
  auto const newly = by_stream ? used : memory_range{};
  coming_->bring({{&used, 1}, newly, stream, arrival_reason::allocation});
  uses_->room_was_made({&use, 1});
  look_at_live_blocks(used.bytes);
  wake();
} catch (...) {
  ledger_.count_no_memory("on_reuse");
}

void residency_manager::on_untold(memory_range range) noexcept
{
  {
    ledger_view view{ledger_.blocks()};
    ledger_.wait_until_free(view, {&range, 1});
    uses_->hand_out(view, range);
  }
  coming_->leave_to_faults(range);
  wake();
}

void residency_manager::on_free(memory_range allocation,
                                stream_handle stream,
                                bool by_stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  use_learner::free_fence fence{false, by_stream && is_default(stream), uses_->unfenced_frees()};
  stream_handle frees = nullptr;
  status ordered;
  // Also where nothing is dropped: what is handed out anew need not be copied then.
  bool const discards = settings_.fetch && driver_->info().discard.available;
  if (by_stream && discards && ledger_.under_pressure() &&
      driver_->capturing(stream) == capture_state::none) {
    ordered = driver_->own_stream(own_stream_use::frees, frees);
    if (ordered.ok()) { ordered = driver_->order(frees, stream); }
    fence.fenced = ordered.ok();
  }
  {
    ledger_view view{ledger_.blocks()};
    ledger_.count_if_failed(ordered);
    if (copies_.any()) {  // they end before the addresses are handed out again
      // Nothing more is copied of it from here on: ending what was gives up the lock.
      view.each(allocation, [](block_record& block, memory_range) { block.only_read = false; });
      copies_.end_here(view, {&allocation, 1});
    }
    uses_->forget(view, allocation, fence);
    waiting_.note_free(allocation);
  }
  if (fence.fenced) { marks_.mark_frees(allocation.bytes, frees); }
} catch (...) {
  ledger_.count_no_memory("on_free");
}

bool residency_manager::drop_dead(std::span<memory_range const> blocks) noexcept
try {
  if (!room_.drops()) { return false; }
  ledger_view view{ledger_.blocks()};
  ledger_.wait_until_free(view, blocks);
  block_list here;
  for (auto const& range : blocks) {
    // As if it were handed out and freed once more: nothing in it is untold or unfenced after that.
    uses_->hand_out(view, range);
    uses_->forget(view, range, {true, false, uses_->unfenced_frees()});
    view.each(range, [&](block_record& block, memory_range whole) {
      bool const there = block.place == block_place::device && !block.discarded;
      if (there && block.dead() && block.movable()) { here.push_back({&block, whole}); }
    });
  }
  return room_.drop(view, here);
} catch (...) {
  ledger_.count_no_memory("drop_dead");
  return false;
}

std::size_t residency_manager::on_slab_free(memory_range slab) noexcept
{
  std::size_t kept_bytes = 0;
  ledger_view view{ledger_.blocks()};
  ledger_.wait_until_free(view, {&slab, 1});
  view.each(slab, [&](block_record& block, memory_range whole) {
    copies_.note_ended(block, whole);
    if (block.chunk) { kept_bytes += whole.bytes; }
    if (block.place == block_place::device) { ledger_.left(whole.bytes); }
    if (block.place == block_place::host) { moved_.forget(whole.bytes); }
    neighbors_.forget(block);
    if (block.pins > 0) { ledger_.forget_pinned(whole.bytes); }
    uses_->forget_block(block, whole);  // it may go as it is
  });
  view.remove_slab(slab.address);  // before somebody finds its blocks, missing
  ledger_.slab_goes(kept_bytes);
  offer_.offer_idle();
  return kept_bytes;
}

void residency_manager::on_slab_freed(std::size_t kept_bytes) noexcept
{
  ledger_view const view{ledger_.blocks()};
  ledger_.slab_went(kept_bytes);
}

void residency_manager::on_touch(std::span<use_event const> uses, stream_handle stream) noexcept
try {
  if (present_.all_present() || present_.is_confirmed(uses)) { return; }
  std::vector<memory_range> wanted;
  std::vector<memory_range> written;
  std::size_t used_bytes = 0;
  bool pays_to_confirm   = false;
  auto first             = never_used;
  {
    ledger_view view{ledger_.blocks()};
    look_without_thread(view);
    mappings_.end_of_done(view);
    for (auto const& use : uses) {
      if (use.range.bytes == 0 || !view.holds(use.range.address)) { continue; }
      wanted.push_back(use.range);
      if (!use.only_read) { written.push_back(use.range); }
    }
    work_.adapt_look_ahead(view, uses);
    ledger_.wait_until_free(view, wanted, written.empty());
    first = clock_.now() + 1;
    for (auto const& use : uses) {
      if (use.range.bytes == 0 || !view.holds(use.range.address)) { continue; }
      used_bytes += use.range.bytes;
      present_.count_use(view, use.range);
      uses_->learn(view, use);
    }
    if (used_bytes > 0) { announced_.note(stream, first, clock_.now()); }
    copies_.end_here(view, written);
    pays_to_confirm = present_.pays_to_confirm();
  }
  if (wanted.empty()) { return; }
  if (driver_->capturing(stream) != capture_state::none) {
    uses_->room_was_made(uses);
    return;
  }
  marks_.mark(first, used_bytes, stream);
  in_place_.choose(wanted);
  if (written.empty()) { mappings_.map_rest(wanted); }
  coming_->bring({wanted, {}, stream, arrival_reason::use});
  uses_->room_was_made(uses);
  if (pays_to_confirm) { static_cast<void>(coming_->confirm_present(stream)); }
  wake();
} catch (...) {
  ledger_.count_no_memory("on_touch");
}

void residency_manager::on_made(std::span<memory_range const> ranges) noexcept
{
  if (present_.all_present()) { return; }
  ledger_view view{ledger_.blocks()};
  waiting_.note_use();
  auto const now = clock_.now();
  for (auto const& range : ranges) {
    if (range.bytes == 0 || !view.holds(range.address)) { continue; }
    view.change(range, now, [&](block_record& block, memory_range whole) {
      // That work is done when what is issued after the last use so far is.
      block.touched = std::max(block.touched, now);
      block.note_use(true, range.covers(whole));
    });
  }
}

void residency_manager::prefetch(memory_range range, stream_handle stream) noexcept
try {
  if (range.bytes == 0 || driver_->capturing(stream) != capture_state::none) { return; }
  coming_->bring({{&range, 1}, {}, stream, arrival_reason::asked});
} catch (...) {
  ledger_.count_no_memory("prefetch");
}

std::size_t residency_manager::evict(memory_range range) noexcept
try {
  ledger_view view{ledger_.blocks()};
  std::size_t evicted_bytes = 0;
  // A neighbour may take some of them only: the next one, or the host, takes the rest.
  for (std::size_t round = 0; round <= neighbors_.size(); ++round) {
    ledger_.wait_until_free(view, {&range, 1});
    block_list going;
    view.each(range, [&](block_record& block, memory_range whole) {
      bool const here = block.place == block_place::device && !block.discarded;
      if (!here || !block.movable() || !range.covers(whole)) { return; }
      going.push_back({&block, whole});
    });
    auto const left_bytes = room_.leave(view, std::move(going));
    if (left_bytes == 0) { break; }
    evicted_bytes += left_bytes;
  }
  signal_.call();  // what is away may come back unseen
  return evicted_bytes;
} catch (...) {
  ledger_.count_no_memory("evict");
  return 0;
}

/** @brief What is to leave for a sleep and may be told to go; of that the dead that are dropped. */
block_list residency_manager::blocks_to_sleep(ledger_view& view, bool dead)
{
  block_list found;
  view.each([&](block_record& block, memory_range whole) {
    if (block.place != block_place::device || block.discarded) { return; }
    if (block.busy || block.holds > 0) { return; }  // it is needed now; a pin does not keep it
    bool const drops = room_.drops() && block.dead() && !block.unfenced;
    if (drops == dead) { found.push_back({&block, whole}); }
  });
  return found;
}

std::size_t residency_manager::sleep() noexcept
try {
  auto const waited       = driver_->synchronize(nullptr);
  std::size_t slept_bytes = 0;
  {
    ledger_view const view{ledger_.blocks()};
    ledger_.count_if_failed(waited);
    ledger_.set_asleep(true);
  }
  flush();  // what the thread was about to bring is there
  {
    ledger_view view{ledger_.blocks()};
    static_cast<void>(room_.drop(view, blocks_to_sleep(view, true)));
    // A neighbour may take some of them only: the next one, or the host, takes the rest.
    for (std::size_t round = 0; round <= neighbors_.size(); ++round) {
      auto going = blocks_to_sleep(view, false);
      for (auto const& each : going) {
        each.record->slept = true;
      }
      auto const left_bytes = room_.leave(view, std::move(going));
      if (left_bytes == 0) { break; }
      slept_bytes += left_bytes;
    }
    follower_.sleep();
  }
  stream_handle evictions = nullptr;  // by libcuda they are on their way yet
  auto gone               = driver_->own_stream(own_stream_use::evictions, evictions);
  if (gone.ok()) { gone = driver_->synchronize(evictions); }
  ledger_view const view{ledger_.blocks()};
  ledger_.count_if_failed(gone);
  signal_.call();  // others are told that their share is larger
  return slept_bytes;
} catch (...) {
  ledger_.count_no_memory("sleep");
  return 0;
}

/** @brief What slept and fits the budget, the last used first, as ranges; the rest is forgotten. */
std::vector<memory_range> residency_manager::blocks_to_wake(ledger_view& view)
{
  std::vector<std::pair<use_tick, memory_range>> slept;
  view.each([&](block_record& block, memory_range whole) {
    if (!block.slept) { return; }
    block.slept     = false;
    bool const away = block.place == block_place::host || block.place == block_place::beside;
    if (!away || block.dead() || block.busy) { return; }
    slept.emplace_back(std::max(block.allocated, block.touched), whole);
  });
  std::sort(slept.begin(), slept.end(), [](auto const& a, auto const& b) {
    return a.first != b.first ? a.first > b.first : a.second.address < b.second.address;
  });
  auto left_bytes =
    ledger_.budget_bytes() - std::min(ledger_.budget_bytes(), ledger_.resident_bytes());
  auto const fits = std::find_if(slept.begin(), slept.end(), [&](auto const& each) {
    if (each.second.bytes > left_bytes) { return true; }
    left_bytes -= each.second.bytes;
    return false;
  });
  slept.erase(fits, slept.end());
  std::sort(slept.begin(), slept.end(), [](auto const& a, auto const& b) {
    return a.second.address < b.second.address;
  });
  std::vector<memory_range> coming;
  for (auto const& [used, whole] : slept) {
    bool const joins =
      !coming.empty() && coming.back().end() == whole.address && !view.slab_begins(whole.address);
    if (joins) {
      coming.back().bytes += whole.bytes;
    } else {
      coming.push_back(whole);
    }
  }
  return coming;
}

std::size_t residency_manager::wake(stream_handle stream) noexcept
try {
  std::vector<memory_range> coming;
  {
    ledger_view view{ledger_.blocks()};
    ledger_.set_asleep(false);
    follower_.wake();
    static_cast<void>(follower_.look_if_due(view));
    coming = blocks_to_wake(view);
  }
  if (coming.empty()) { return 0; }
  coming_->bring({coming, {}, stream, arrival_reason::asked});
  auto const there = driver_->synchronize(stream);
  ledger_view const view{ledger_.blocks()};
  ledger_.count_if_failed(there);
  return bytes_of(coming);
} catch (...) {
  ledger_.count_no_memory("wake");
  return 0;
}

void residency_manager::pin(memory_range range) noexcept
{
  ledger_view view{ledger_.blocks()};
  ledger_.pin(view, range);
}

void residency_manager::unpin(memory_range range) noexcept
{
  ledger_view view{ledger_.blocks()};
  ledger_.unpin(view, range, clock_.now());
}

void residency_manager::on_advised(memory_range range) noexcept
try {
  back_.on_advised(range);
  ledger_view view{ledger_.blocks()};
  copies_.end_here(view, {&range, 1});  // and with them what we advised: what users did, holds
} catch (...) {
  ledger_.count_no_memory("on_advised");
}

bool residency_manager::confirm_present(stream_handle stream) noexcept
try {
  return coming_->confirm_present(stream);
} catch (...) {
  ledger_.count_no_memory("confirm_present");
  return false;
}

void residency_manager::run_pending() noexcept
{
  while (thread_.work_here("run_pending")) {}
}

bool residency_manager::run_pending_piece() noexcept
{
  return thread_.work_here("run_pending_piece");
}

void residency_manager::flush() noexcept { thread_.flush(); }

/** @brief After an allocation: what was allocated since the last look may have made a peak. */
void residency_manager::look_at_live_blocks(std::size_t new_bytes) noexcept
{
  ledger_view view{ledger_.blocks()};
  watch_.allocated(view, new_bytes, ledger_.budget_bytes() / 64);
}

live_blocks residency_manager::take_live_blocks(bool begins) noexcept
{
  ledger_view view{ledger_.blocks()};
  return watch_.take(view, clock_.now(), begins);
}

residency_statistics residency_manager::statistics() const noexcept
{
  ledger_view const view{ledger_.blocks()};
  residency_statistics told;
  told.policy = settings_.policy;
  ledger_.tell(told);
  moved_.tell(told);
  present_.tell(told);
  uses_->tell(told);
  offer_.tell(told);
  neighbors_.tell(told);
  room_.tell(told);
  copies_.tell(told);
  coming_->tell(told);
  mappings_.tell(told);
  unseen_.tell(told);
  follower_.tell(told);
  early_.tell(told);
  in_place_.tell(told);
  told.ahead_bytes = ahead_.bytes();
  return told;
}

}  // namespace rmm_uvm
