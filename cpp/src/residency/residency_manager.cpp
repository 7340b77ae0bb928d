// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a program does reaches the manager here: allocations, frees, announced uses, hints.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

[[nodiscard]] memory_range common(memory_range a, memory_range b) noexcept
{
  auto const begin = std::max(a.address, b.address);
  auto const end   = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

template <typename Claims>
[[nodiscard]] std::size_t uncounted_bytes(Claims const& blocks) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    if (!each.counted) { bytes += each.range.bytes; }
  }
  return bytes;
}

/**
 * @brief When a block that several allocations share is needed next.
 *
 * Where one of them was not foreseen, it is taken to be needed soon: it was used in company.
 */
[[nodiscard]] use_tick soonest(use_tick others, use_tick next_use, use_tick now) noexcept
{
  constexpr use_tick soon = 16;  // of 4, 16 and 64 the one that moved least on a recorded ETL
  if (others == no_use || others <= now) { others = now + soon; }
  return std::min(others, next_use);
}

[[nodiscard]] bool covers(memory_range outer, memory_range inner) noexcept
{
  return outer.address <= inner.address && inner.end() <= outer.end();
}

}  // namespace

residency_manager::residency_manager(std::shared_ptr<uvm_driver> driver,
                                     residency_ledger& ledger,
                                     residency_settings settings)
  : driver_{std::move(driver)},
    ledger_{ledger},
    settings_{settings},
    predictor_{make_predictor(settings.policy)}
{
  counts_.budget_bytes = settings_.budget_bytes;
  foreign_bytes_       = driver_->counters().read().device_to_host_bytes;
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
}

void residency_manager::count_failure(status failure) noexcept
{
  ++counts_.failed_calls;
  counts_.last_failure = failure;
}

epoch_number residency_manager::epoch() noexcept
{
  // What was asked to the host may have been there: then foreign bytes hide behind it, for a while.
  auto const left = driver_->counters().read().device_to_host_bytes;
  if (left > asked_bytes_ + foreign_bytes_) {
    foreign_bytes_ = left - asked_bytes_;
    ++epoch_;
  }
  return epoch_;
}

use_tick residency_manager::learn(ledger_view& view, use_event const& event)
{
  ++now_;
  auto next_use = no_use;
  if (predictor_ != nullptr) {
    auto const ahead = predictor_->observe(event);
    if (ahead != no_use) { next_use = now_ + ahead; }
    static_cast<void>(prediction_.update(predictor_->score()));
  }
  bool const is_new = event.kind == use_kind::allocate;
  if (is_new) { ++owners_; }
  view.each(event.range, [&](block_record& block, memory_range whole) {
    auto const bytes  = static_cast<std::uint32_t>(common(event.range, whole).bytes);
    bool const shared = block.live_bytes > (is_new ? 0 : bytes);
    block.next_use    = shared ? soonest(block.next_use, next_use, now_) : next_use;
    if (!is_new) {
      block.touched = now_;
      return;
    }
    block.allocated = now_;
    block.owner     = owners_;
    block.live_bytes += bytes;
  });
  return now_;
}

void residency_manager::wait_until_free(ledger_view& view, memory_range range)
{
  for (bool waited = false;; waited = true) {
    bool busy = false;
    view.each(range, [&](block_record const& block, memory_range) { busy = busy || block.busy; });
    if (!busy) { return; }
    if (!waited) { ++counts_.waits; }
    changed_.wait(view.lock());
  }
}

residency_manager::claims residency_manager::claim(ledger_view& view,
                                                   memory_range range,
                                                   memory_range allocation,
                                                   reason why)
{
  claims missing;
  wait_until_free(view, range);
  auto const as_of = epoch();
  view.each(range, [&](block_record& block, memory_range whole) {
    bool const there = block.place == block_place::device;
    if (there && !block.discarded && block.on_device_as_of == as_of) { return; }
    if (why == reason::ahead && block.dead()) { return; }  // freed since it was expected
    // Contents of a new allocation are dead by definition; beside it others may live.
    bool const keeps = !covers(allocation, whole);
    missing.push_back({&block, whole, keeps, block.discarded, there});
  });
  return missing;
}

void residency_manager::bring(memory_range range,
                              memory_range allocation,
                              stream_handle stream,
                              reason why)
{
  std::unique_lock room{room_, std::defer_lock};
  ledger_view view{ledger_};
  auto missing       = claim(view, range, allocation, why);
  auto missing_bytes = uncounted_bytes(missing);
  if (missing.empty()) { return; }
  if (missing_bytes > settings_.budget_bytes) {
    ++counts_.too_large;
    view.lock().unlock();
    await_discards(range);
    return;
  }
  if (counts_.resident_bytes + missing_bytes > settings_.budget_bytes) {
    // Whoever makes room does so alone: two with half of the room each would wait for each other.
    view.lock().unlock();
    room.lock();
    view.lock().lock();
    missing       = claim(view, range, allocation, why);
    missing_bytes = uncounted_bytes(missing);
    if (why != reason::ahead) { short_of_room_ = true; }
  }
  for (auto const& each : missing) {
    each.record->busy            = true;
    each.record->discarded       = false;
    each.record->place           = block_place::device;
    each.record->on_device_as_of = epoch_;
    each.record->prefetched      = now_;
    if (!each.counted) { each.record->arrived = now_; }
  }
  counts_.resident_bytes += missing_bytes;
  // What is there already of the same range does not leave to make room for the rest of it.
  view.each(range, [](block_record& block, memory_range) { ++block.holds; });
  try {
    make_room(
      view, settings_.budget_bytes, why == reason::ahead ? std::nullopt : std::optional{stream});
  } catch (...) {  // no list of victims: the budget is exceeded, and nobody waits for ever
    count_failure({status_code::out_of_memory, 0, "make_room"});
  }
  counts_.peak_resident_bytes = std::max(counts_.peak_resident_bytes, counts_.resident_bytes);
  if (settings_.fetch) {
    view.lock().unlock();
    issue(missing, stream, why);
    view.lock().lock();
  }
  for (auto const& each : missing) {
    each.record->busy = false;
  }
  view.each(range, [](block_record& block, memory_range) { --block.holds; });
  changed_.notify_all();
}

void residency_manager::await_discards(memory_range range) noexcept
{
  bool pending = false;
  {
    ledger_view view{ledger_};
    view.each(range, [&](block_record& block, memory_range) {
      pending         = pending || block.discarded;
      block.discarded = false;
    });
  }
  stream_handle discards = nullptr;
  if (pending && driver_->own_stream(own_stream_use::discards, discards).ok()) {
    static_cast<void>(driver_->synchronize(discards));
  }
}

void residency_manager::issue(claims const& blocks, stream_handle stream, reason why) noexcept
try {
  auto const device = location::device(driver_->info().device_id);
  bool const drops  = driver_->info().discard.available;
  std::vector<memory_range> fresh;
  std::vector<memory_range> kept;
  auto const most = why == reason::ahead ? settings_.piece_bytes : settings_.fetch_bytes;
  bool ordered    = false;
  for (auto const& each : blocks) {
    ordered        = ordered || each.ordered;
    auto& ranges   = each.keeps || !drops ? kept : fresh;
    bool const one = !ranges.empty() && ranges.back().end() == each.range.address &&
                     (&ranges == &fresh || ranges.back().bytes + each.range.bytes <= most);
    if (one) {
      ranges.back().bytes += each.range.bytes;
    } else {
      ranges.push_back(each.range);
    }
  }
  std::size_t fetched_bytes = 0;
  std::size_t renewed_bytes = 0;
  status failure;
  auto const noted = [&failure](status result) {
    if (!result.ok()) { failure = result; }
    return result.ok();
  };
  if (ordered) {
    stream_handle discards = nullptr;
    if (!noted(driver_->own_stream(own_stream_use::discards, discards)) ||
        !noted(driver_->order(stream, discards))) {
      // Late is right, early is not: without an order between streams, the thread waits itself.
      static_cast<void>(driver_->synchronize(discards));
    }
  }
  if (!fresh.empty()) {
    if (noted(driver_->discard_and_prefetch(fresh, device, stream))) {
      for (auto const& range : fresh) {
        renewed_bytes += range.bytes;
      }
    } else {
      // Pages may be discarded and not prefetched, and would fault one by one.
      kept.insert(kept.end(), fresh.begin(), fresh.end());
    }
  }
  for (auto const& range : kept) {
    if (noted(driver_->prefetch(range, device, stream))) { fetched_bytes += range.bytes; }
  }
  ledger_view const view{ledger_};
  counts_.renewed_bytes += renewed_bytes;
  (why == reason::ahead ? counts_.fetched_ahead_bytes : counts_.fetched_bytes) += fetched_bytes;
  if (!failure.ok()) { count_failure(failure); }
} catch (...) {  // a list could not be built: pages come by fault
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "residency_manager"});
}

void residency_manager::on_allocate(memory_range allocation, stream_handle stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  use_tick tick = never_used;
  {
    ledger_view view{ledger_};
    wait_until_free(view, allocation);
    tick = learn(view, {use_kind::allocate, allocation, allocation.address});
  }
  if (driver_->capturing(stream) != capture_state::none) {
    await_discards(allocation);
    return;
  }
  mark(tick, stream);
  bring(allocation, allocation, stream, reason::allocation);
  wake();
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "on_allocate"});
}

void residency_manager::on_free(memory_range allocation, stream_handle stream) noexcept
try {
  if (allocation.bytes == 0) { return; }
  bool fenced = false;
  if (settings_.drops() && under_pressure() && driver_->capturing(stream) == capture_state::none) {
    stream_handle discards = nullptr;
    fenced                 = driver_->own_stream(own_stream_use::discards, discards).ok() &&
             driver_->order(discards, stream).ok();
  }
  ledger_view view{ledger_};
  if (!fenced) { ++counts_.unfenced_frees; }
  if (predictor_ != nullptr) { predictor_->forget(allocation.address); }
  view.each(allocation, [&](block_record& block, memory_range whole) {
    auto const bytes = static_cast<std::uint32_t>(common(allocation, whole).bytes);
    block.live_bytes -= std::min(block.live_bytes, bytes);
    if (!fenced) {
      block.unfenced = true;
    } else if (covers(allocation, whole)) {
      // The pool had this allocation's stream wait for earlier frees of the same bytes.
      block.unfenced = false;
    }
    if (block.dead()) { block.next_use = no_use; }
  });
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "on_free"});
}

void residency_manager::on_slab_free(memory_range slab) noexcept
{
  ledger_view view{ledger_};
  wait_until_free(view, slab);
  view.each(slab, [&](block_record& block, memory_range whole) {
    if (block.place == block_place::device) { counts_.resident_bytes -= whole.bytes; }
    if (block.pins > 0) { counts_.pinned_bytes -= whole.bytes; }
    block = {};
  });
}

void residency_manager::on_touch(memory_range range,
                                 std::uintptr_t owner,
                                 stream_handle stream) noexcept
try {
  if (range.bytes == 0) { return; }
  use_tick tick = never_used;
  {
    ledger_view view{ledger_};
    wait_until_free(view, range);
    view.each(range, [&](block_record& block, memory_range whole) {
      counts_.wanted_bytes += whole.bytes;
      if (block.place != block_place::device) { return; }
      counts_.present_bytes += whole.bytes;
      // Not used since it came, and nobody waited for it: it was fetched ahead.
      if (block.arrived > std::max(block.touched, block.allocated)) {
        counts_.ahead_used_bytes += whole.bytes;
      }
    });
    tick = learn(view, {use_kind::touch, range, owner});
  }
  if (driver_->capturing(stream) != capture_state::none) { return; }
  mark(tick, stream);
  bring(range, {}, stream, reason::use);
  wake();
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "on_touch"});
}

void residency_manager::prefetch(memory_range range, stream_handle stream) noexcept
try {
  if (range.bytes == 0) { return; }
  bring(range, {}, stream, reason::use);
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "prefetch"});
}

std::size_t residency_manager::evict(memory_range range) noexcept
try {
  ledger_view view{ledger_};
  wait_until_free(view, range);
  victims going;
  std::size_t bytes = 0;
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.place != block_place::device || !block.movable() || !covers(range, whole)) { return; }
    going.push_back({&block, whole});
    bytes += whole.bytes;
  });
  return leave(view, going) ? bytes : 0;
} catch (...) {
  ledger_view const view{ledger_};
  count_failure({status_code::out_of_memory, 0, "evict"});
  return 0;
}

void residency_manager::pin(memory_range range) noexcept
{
  ledger_view view{ledger_};
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.pins++ == 0) { counts_.pinned_bytes += whole.bytes; }
  });
}

void residency_manager::unpin(memory_range range) noexcept
{
  ledger_view view{ledger_};
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.pins == 0) { return; }
    --block.pins;
    if (block.pins == 0) { counts_.pinned_bytes -= whole.bytes; }
  });
}

residency_statistics residency_manager::statistics() const noexcept
{
  ledger_view const view{ledger_};
  auto counts = counts_;
  if (predictor_ != nullptr) { counts.prediction = predictor_->score(); }
  counts.foresees     = prediction_.on();
  counts.switched_off = prediction_.switched_off();
  return counts;
}

}  // namespace rmm_uvm
