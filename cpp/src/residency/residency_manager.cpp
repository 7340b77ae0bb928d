// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a program does reaches the manager here: allocations, frees, announced uses, hints.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
residency_manager::residency_manager(std::shared_ptr<uvm_driver> driver,
                                     residency_ledger& ledger,
                                     residency_settings settings,
                                     memory_adviser* adviser)
  : driver_{std::move(driver)},
    ledger_{ledger},
    settings_{std::move(settings)},
    adviser_{adviser},
    predictor_{make_predictor(settings_.policy)},
    look_ahead_{settings_.ahead_bytes},
    faulted_in_{driver_->counters().read().host_to_device_bytes,
                driver_->counters().read().device_to_host_bytes},
    gate_{[this] { call_thread(); }, [this] { do_without_thread(); }}
{
  // The largest that hold up nobody, by libcuda and past it (measured, see the settings).
  bool const direct = moves_directly(location::host());
  if (settings_.piece_bytes == 0) { settings_.piece_bytes = (direct ? 4 : 2) * va_block_bytes; }
  if (settings_.fetch_bytes == 0) { settings_.fetch_bytes = (direct ? 16 : 2) * va_block_bytes; }
  if (settings_.ahead_adapts) {
    look_ahead_ =
      look_ahead{settings_.ahead_bytes, settings_.piece_bytes, settings_.budget_bytes / 2};
  }
  begin_with_neighbors();
  counts_.policy       = settings_.policy;
  counts_.budget_bytes = settings_.budget_bytes;
  quiet_bytes_         = driver_->counters().read().device_to_host_bytes;
  foreign_bytes_       = quiet_bytes_;
  if (settings_.background) {
    thread_ = std::thread{[this] { run(); }};
  }
}

residency_manager::~residency_manager()
{
  {
    ledger_view const view{ledger_};
    stopping_ = true;
  }
  wanted_.notify_all();
  if (thread_.joinable()) { thread_.join(); }
  stop_lending();
}

void residency_manager::count_failure(status failure) noexcept
{
  ++counts_.failed_calls;
  counts_.last_failure = failure;
}

/** @brief Counts a load that could not be read; a driver that tells none has not failed. */
void residency_manager::count_unread(status answer) noexcept
{
  if (!answer.ok() && answer.code != status_code::not_supported) { count_failure(answer); }
}

void residency_manager::count_failure_of(char const* call) noexcept
{
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, call});
}

void residency_manager::hand_out(ledger_view& view, memory_range range)
{
  live_bytes_ += range.bytes;
  if (untold_ != 0) {
    hand_out_untold(view, range);
    return;
  }
  view.each(range, [range](block_record& block, memory_range whole) {
    block.live_bytes += static_cast<std::uint32_t>(bytes_in_common(range, whole));
  });
}

void residency_manager::on_allocate(memory_range allocation, stream_handle stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  use_event const use{use_kind::allocate, allocation, allocation.address};
  auto first   = never_used;
  bool present = false;
  {
    ledger_view view{ledger_};
    wait_until_free(view, {&allocation, 1});
    first = now_ + 1;
    hand_out(view, allocation);
    learn(view, use);
    present = is_present(view, allocation);
  }
  if (present && under_pressure() && confirmed_present()) { return; }  // one lock, no call
  if (present && !under_pressure()) {                                  // likewise
    note_uses({&use, 1});
    wake();
    return;
  }
  if (driver_->capturing(stream) != capture_state::none) {
    leave_to_faults(allocation);
    note_uses({&use, 1});
    return;
  }
  if (under_pressure()) { mark(first, allocation.bytes, stream); }
  bring({&allocation, 1}, allocation, stream, reason::allocation);
  note_uses({&use, 1});
  wake();
} catch (...) {
  count_failure_of("on_allocate");
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
  auto first   = never_used;
  bool present = false;
  {
    ledger_view view{ledger_};
    wait_until_free(view, {&extent, 1});
    first = now_ + 1;
    hand_out(view, carved.newly_live);
    learn(view, {use_kind::allocate, used, used.address});
    present = confirmed_present() && is_present(view, used);
  }
  leave_discarded(rest);  // the allocation may be longer than its likes were
  if (present) {
    look_at_live_blocks(used.bytes);
    return;
  }
  if (driver_->capturing(stream) != capture_state::none) {
    leave_to_faults(used);
    return;
  }
  if (under_pressure()) { mark(first, used.bytes, stream); }
  bring({&used, 1}, by_stream ? used : memory_range{}, stream, reason::allocation);
  use_event const use{use_kind::allocate, used, used.address};
  note_uses({&use, 1});
  look_at_live_blocks(used.bytes);
  wake();
} catch (...) {
  count_failure_of("on_reuse");
}

void residency_manager::on_untold(memory_range range) noexcept
{
  {
    ledger_view view{ledger_};
    wait_until_free(view, {&range, 1});
    hand_out(view, range);
  }
  leave_to_faults(range);
}

void residency_manager::on_free(memory_range allocation,
                                stream_handle stream,
                                bool by_stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  bool fenced         = false;
  stream_handle frees = nullptr;
  status ordered;
  // Also where nothing is dropped: what is handed out anew need not be copied then.
  bool const discards = settings_.fetch && driver_->info().discard.available;
  if (by_stream && discards && under_pressure() &&
      driver_->capturing(stream) == capture_state::none) {
    ordered = driver_->own_stream(own_stream_use::frees, frees);
    if (ordered.ok()) { ordered = driver_->order(frees, stream); }
    fenced = ordered.ok();
  }
  {
    ledger_view view{ledger_};
    if (!ordered.ok()) { count_failure(ordered); }
    forget(view, allocation, fenced);
  }
  if (fenced) { mark_frees(allocation.bytes, frees); }
} catch (...) {
  count_failure_of("on_free");
}

/** @brief Takes live bytes away. */
void residency_manager::forget(ledger_view& view, memory_range allocation, bool fenced)
{
  fenced = fenced && !stopping_;  // the next manager's fences are others
  if (fenced) {
    ++frees_;
  } else {
    ++counts_.unfenced_frees;
  }
  live_bytes_ -= std::min(live_bytes_, allocation.bytes);
  if (untold_ != 0) { keep_untold(view, allocation, fenced); }
  view.each(allocation, [&](block_record& block, memory_range whole) {
    auto const bytes = static_cast<std::uint32_t>(bytes_in_common(allocation, whole));
    block.live_bytes -= std::min(block.live_bytes, bytes);
    if (fenced) { block.freed = frees_; }
    if (!fenced) {
      block.unfenced = true;
    } else if (allocation.covers(whole)) {
      // The pool had this allocation's stream wait for earlier frees of the same bytes.
      block.unfenced = false;
    }
    if (block.dead()) { block.expect(unknown_use); }
  });
  // Last, since it takes memory.
  if (predictor_ != nullptr && postpones_learning()) {
    postponed_.free(allocation.address);
  } else if (predictor_ != nullptr) {
    postponed_.tell(*predictor_);
    predictor_->forget(allocation.address);
  }
}

void residency_manager::on_slab_free(memory_range slab) noexcept
{
  ledger_view view{ledger_};
  wait_until_free(view, {&slab, 1});
  view.each(slab, [&](block_record& block, memory_range whole) {
    if (block.place == block_place::device) { counts_.resident_bytes -= whole.bytes; }
    if (block.place == block_place::host) { faulted_in_.forget(whole.bytes); }
    if (block.place == block_place::beside) { left_beside(block.neighbor, 1); }
    for (std::size_t number = 0; number < neighbors_.size(); ++number) {
      if (block.has_chunk(number)) { neighbors_[number].kept_bytes -= va_block_bytes; }
    }
    if (block.pins > 0) { counts_.pinned_bytes -= whole.bytes; }
    if (block.untold) { --untold_; }
    live_bytes_ -= std::min<std::size_t>(live_bytes_, block.live_bytes);  // it may go as it is
  });
  view.remove_slab(slab.address);  // before somebody finds its blocks, missing
  offer_idle();
}

void residency_manager::on_touch(std::span<use_event const> uses, stream_handle stream) noexcept
try {
  if (all_present() || is_confirmed(uses)) { return; }
  std::vector<memory_range> wanted;
  std::size_t used_bytes = 0;
  auto first             = never_used;
  {
    ledger_view view{ledger_};
    for (auto const& use : uses) {
      if (use.range.bytes > 0 && view.holds(use.range.address)) { wanted.push_back(use.range); }
    }
    if (settings_.ahead && foresees()) { adapt_look_ahead(view, uses); }
    wait_until_free(view, wanted);
    first = now_ + 1;
    for (auto const& use : uses) {
      if (use.range.bytes == 0 || !view.holds(use.range.address)) { continue; }
      used_bytes += use.range.bytes;
      count_presence(view, use.range);
      learn(view, use);
    }
  }
  if (wanted.empty()) { return; }
  if (driver_->capturing(stream) != capture_state::none) {
    note_uses(uses);
    return;
  }
  mark(first, used_bytes, stream);
  choose_in_place(wanted);
  bring(wanted, {}, stream, reason::use);
  note_uses(uses);
  wake();
} catch (...) {
  count_failure_of("on_touch");
}

void residency_manager::prefetch(memory_range range, stream_handle stream) noexcept
try {
  if (range.bytes == 0 || driver_->capturing(stream) != capture_state::none) { return; }
  bring({&range, 1}, {}, stream, reason::asked);
} catch (...) {
  count_failure_of("prefetch");
}

std::size_t residency_manager::evict(memory_range range) noexcept
try {
  ledger_view view{ledger_};
  std::size_t evicted_bytes = 0;
  // A neighbour may take some of them only: the next one, or the host, takes the rest.
  for (std::size_t round = 0; round <= neighbors_.size(); ++round) {
    wait_until_free(view, {&range, 1});
    victims going;
    view.each(range, [&](block_record& block, memory_range whole) {
      bool const here = block.place == block_place::device && !block.discarded;
      if (!here || !block.movable() || !range.covers(whole)) { return; }
      going.push_back({&block, whole});
    });
    auto const left_bytes = leave(view, std::move(going));
    if (left_bytes == 0) { break; }
    evicted_bytes += left_bytes;
  }
  return evicted_bytes;
} catch (...) {
  count_failure_of("evict");
  return 0;
}

void residency_manager::pin(memory_range range) noexcept
{
  ledger_view view{ledger_};
  wait_until_free(view, {&range, 1});  // what is leaving leaves before it is pinned, not after
  if (stopping_) { return; }
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.pins++ == 0) { counts_.pinned_bytes += whole.bytes; }
  });
}

void residency_manager::unpin(memory_range range) noexcept
{
  ledger_view view{ledger_};
  if (stopping_) { return; }
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.pins == 0) { return; }
    --block.pins;
    if (block.pins == 0) { counts_.pinned_bytes -= whole.bytes; }
  });
}

}  // namespace rmm_uvm
