// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/monitor/slot.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::monitor {

slot::slot(slot_settings settings) : settings_{std::move(settings)}
{
  if (!settings_.memory && settings_.driver) {
    settings_.memory = std::make_shared<driver_memory_reader>(settings_.driver);
  }
}

void slot::set_levels(std::shared_ptr<memory_level_source> source) noexcept
{
  auto const begin = source ? source->levels() : memory_levels{};
  std::lock_guard const lock{levels_mutex_};
  levels_changed_ = levels_changed_ || levels_ != source;
  std::swap(levels_, source);
  prefetched_bytes_.begin_at(begin.prefetched_bytes);
  discarded_bytes_.begin_at(begin.discarded_bytes);
  waited_ns_.begin_at(begin.waited_ns);
}

void slot::set_external(std::optional<std::uint64_t> footprint_bytes,
                        std::optional<std::uint64_t> managed_bytes) noexcept
{
  external_footprint_bytes_.store(footprint_bytes.value_or(unknown), std::memory_order_relaxed);
  external_managed_bytes_.store(managed_bytes.value_or(unknown), std::memory_order_relaxed);
}

availability slot::request_faults()
{
  if (!settings_.faults) { return availability::no("faults were not asked for"); }
  if (!settings_.driver) { return availability::no("no driver to count faults with"); }
  if (faults_granted_) { return availability::yes(); }
  auto granted    = settings_.driver->counters().request_faults();
  faults_granted_ = granted.available;
  return granted;
}

void slot::release_faults() noexcept
{
  if (faults_granted_.exchange(false)) { settings_.driver->counters().release_faults(); }
}

bool slot::counting() const noexcept
{
  try {
    return settings_.driver && settings_.driver->counters().available().available;
  } catch (...) {  // no memory for the reason
    return false;
  }
}

void slot::read_counters(sample& now, moved& interval) noexcept
{
  if (!settings_.driver) { return; }
  if (counting()) {
    auto const totals        = settings_.driver->counters().read();
    interval.to_device_bytes = to_device_bytes_.add(totals.host_to_device_bytes);
    interval.to_host_bytes   = to_host_bytes_.add(totals.device_to_host_bytes);
    now.host_to_device_bytes = to_device_bytes_.total();
    now.device_to_host_bytes = to_host_bytes_.total();
    now.known |= counters_known;
    if (faults_granted_) {
      cpu_faults_.add(totals.cpu_faults);
      gpu_faults_.add(totals.gpu_faults);
      now.cpu_faults = cpu_faults_.total();
      now.gpu_faults = gpu_faults_.total();
      now.known |= faults_known;
    }
  }
  // After the counters: bytes that were seen going shall have their request seen as well.
  auto const asked           = settings_.driver->commands();
  interval.own_to_host_bytes = own_to_host_bytes_.add(asked.prefetched_to_host_bytes);
  now.own_to_host_bytes      = own_to_host_bytes_.total();
}

void slot::read_levels(sample& now, moved& interval) noexcept
{
  std::lock_guard const lock{levels_mutex_};
  interval.levels_changed = std::exchange(levels_changed_, false);
  if (levels_) {
    auto const found = levels_->levels();
    waited_ns_.add(found.waited_ns);
    interval.prefetched_bytes = prefetched_bytes_.add(found.prefetched_bytes);
    interval.discarded_bytes  = discarded_bytes_.add(found.discarded_bytes);
    now.footprint_bytes       = found.footprint_bytes;
    now.managed_bytes         = found.managed_bytes;
    now.waited_ns             = waited_ns_.total();
    now.known |= footprint_known;
    managed_known_ = true;
    return;
  }
  auto const footprint_bytes = external_footprint_bytes_.load(std::memory_order_relaxed);
  auto const managed_bytes   = external_managed_bytes_.load(std::memory_order_relaxed);
  managed_known_             = managed_bytes != unknown;
  now.managed_bytes          = managed_known_ ? managed_bytes : 0;
  if (footprint_bytes != unknown) {
    now.footprint_bytes = footprint_bytes;
    now.known |= footprint_known;
  }
}

void slot::read_device(sample& now) noexcept
{
  device_memory memory;
  if (!settings_.memory || !settings_.memory->read(memory)) { return; }
  device_total_bytes_   = memory.total_bytes;
  now.device_used_bytes = memory.total_bytes - std::min(memory.free_bytes, memory.total_bytes);
  now.known |= device_known;
}

void slot::estimate_evicted(sample& now, moved const& interval) noexcept
{
  bool const full = (now.known & device_known) != 0 &&
                    static_cast<double>(device_total_bytes_ - now.device_used_bytes) <
                      settings_.full_fraction * static_cast<double>(device_total_bytes_);
  own_pending_bytes_ += interval.own_to_host_bytes;
  auto const own = std::min(own_pending_bytes_, interval.to_host_bytes);
  own_pending_bytes_ -= own;
  // Pages that were on the host already never go: nothing moving means nothing more to come. The
  // request itself may be younger than the counter's reading.
  if (interval.to_host_bytes == 0 && interval.own_to_host_bytes == 0) { own_pending_bytes_ = 0; }
  if (full || was_full_) { now.evicted_bytes_estimate += interval.to_host_bytes - own; }
  was_full_ = full;
}

void slot::bound_asked(sample& now, moved const& interval) noexcept
{
  // What left was the memory of the resource before, and went with it; so did, most likely, what
  // moved in the interval of the change.
  if (interval.levels_changed) { away_bytes_ = 0; }
  if ((now.known & counters_known) == 0) {
    now.prefetched_bytes += interval.prefetched_bytes;
    now.discarded_bytes += interval.discarded_bytes;
    return;
  }
  // A prefetch at the end of an interval may move in the next one.
  auto const asked = late_prefetched_bytes_ + interval.prefetched_bytes;
  auto const came  = std::min(asked, interval.to_device_bytes);
  now.prefetched_bytes += came;
  late_prefetched_bytes_ = std::min(interval.prefetched_bytes, asked - came);
  // What was discarded would have come from the host, where no more is than left before.
  if (!interval.levels_changed) { away_bytes_ += interval.to_host_bytes; }
  away_bytes_ -= std::min(away_bytes_, interval.to_device_bytes);
  auto const spared = std::min(away_bytes_, interval.discarded_bytes);
  now.discarded_bytes += spared;
  away_bytes_ -= spared;
  if (managed_known_) { away_bytes_ = std::min(away_bytes_, now.managed_bytes); }
}

void slot::find_resident(sample& now) noexcept
{
  auto const exact = settings_.driver ? settings_.driver->resident_managed_bytes() : std::nullopt;
  if (exact) {
    now.resident_bytes = *exact;
    now.known |= resident_known | resident_exact;
    return;
  }
  if ((now.known & counters_known) == 0 || !managed_known_) { return; }
  auto const capacity =
    settings_.capacity_bytes != 0 ? settings_.capacity_bytes : device_total_bytes_;
  now.resident_bytes = now.managed_bytes - away_bytes_;
  if (capacity != 0) { now.resident_bytes = std::min<std::uint64_t>(now.resident_bytes, capacity); }
  if ((now.known & device_known) != 0) {
    now.resident_bytes = std::min(now.resident_bytes, now.device_used_bytes);
  }
  now.known |= resident_known;
}

sample slot::take(std::uint64_t time_ns) noexcept
{
  sample now    = last_;
  now.time_ns   = time_ns;
  now.device_id = settings_.device_id;
  now.known     = 0;
  moved interval;
  read_counters(now, interval);
  read_levels(now, interval);
  read_device(now);
  estimate_evicted(now, interval);
  bound_asked(now, interval);
  find_resident(now);
  last_ = now;
  return now;
}

}  // namespace rmm_uvm::monitor
