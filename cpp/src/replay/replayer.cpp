// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/replay/replayer.hpp>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace rmm_uvm::replay {
namespace {

/** @brief Everything is ordered already: the events of a recording follow one another. */
constexpr stream_handle stream = nullptr;

/**
 * @brief Free device memory below which the device is nearly full.
 *
 * Twice what the prefetch of a slab leaves free (128 MiB, a sixteenth of a small device), so that
 * dead blocks are dropped before the kernel driver has to look for a victim.
 */
[[nodiscard]] std::size_t low_free_bytes(std::size_t device_bytes) noexcept
{
  return std::min(std::size_t{256} << 20U, device_bytes / 8);
}

[[nodiscard]] slab_map addresses_for(uvm_driver& driver, std::span<memory_range const> recorded)
{
  slab_map slabs;
  for (auto const& slab : recorded) {
    slabs.check(slab);
    std::uintptr_t address = 0;
    if (!driver.allocate_managed(slab.bytes, address).ok()) { throw std::bad_alloc{}; }
    slabs.add(slab, address);
  }
  return slabs;
}

}  // namespace

replayer::replayer(std::shared_ptr<sim::simulated_device> device,
                   std::span<memory_range const> slabs,
                   replay_settings const& settings)
  : device_{std::move(device)},
    residency_{device_, make_epoch_source(*device_)},
    settings_{settings},
    slabs_{addresses_for(*device_, slabs)},
    taken_(slabs_.size(), false),
    live_{slabs_.block_count()},
    timeline_{settings.last_time_ns},
    stages_(settings.stage_count)
{
  if (stages_.empty()) { throw std::invalid_argument{"a recording has at least one stage"}; }
  add_point(0);
}

void replayer::feed(std::span<replay_event const> events)
{
  for (auto const& event : events) {
    if (out_of_memory_) { return; }
    replay(event);
    if (!out_of_memory_) { ++replayed_; }
  }
}

void replayer::replay(replay_event const& event)
{
  if (event.stage >= stages_.size()) { refuse(event, "names a stage that there is not"); }
  if (event.bytes == 0) { return; }
  auto const where = slabs_.locate({event.address, event.bytes});
  if (!where) { refuse(event, "lies in no slab"); }
  // A clock that was set back must not change the order of events.
  time_ns_ = std::max(time_ns_, event.time_ns);
  if (timeline_.due(time_ns_)) { add_point(time_ns_); }
  if (event.stage != stage_) { enter_stage(event.stage); }
  // The pool had the slab by then, and as far as the recording says, no sooner.
  take(where->slab);
  switch (event.kind) {
    case event_kind::allocate:
      if (!live_.allocate(where->first_block, where->range)) {
        refuse(event, "allocates bytes that are allocated");
      }
      allocate(*where);
      break;
    case event_kind::free:
      if (!live_.free(where->first_block, where->range)) {
        refuse(event, "frees bytes that are not allocated");
      }
      free(*where);
      break;
    case event_kind::touch: touch(event, *where); break;
    default: refuse(event, "is of an unknown kind");
  }
  timeline_.note(time_ns_, live_.live_bytes());
}

void replayer::allocate(located_range const& where)
{
  auto& peak        = stages_[stage_].peak_live_bytes;
  peak              = std::max<std::uint64_t>(peak, live_.live_bytes());
  bool const issued = residency_.on_allocate(where.range, stream, settings_.mode);
  if (!settings_.discard_dead) { return; }
  // Who discards sees to it that nobody meets discarded pages, which fault one by one: the
  // allocation's own prefetch did that, unless there was none.
  auto const blocks = live_.reuse(where.first_block, where.range);
  if (issued || blocks.empty()) { return; }
  for (auto const& run : runs_of(blocks)) {
    static_cast<void>(device_->prefetch(run, location::device(device_->info().device_id), stream));
  }
}

void replayer::free(located_range const& /*where*/)
{
  if (!settings_.discard_dead || !nearly_full()) { return; }
  auto const dead = runs_of(live_.take_dead());
  static_cast<void>(residency_.on_dead(dead));
}

void replayer::touch(replay_event const& event, located_range const& where)
{
  bool const write  = (event.flags & writes) != 0;
  auto const result = (event.flags & by_the_cpu) != 0
                        ? device_->program().cpu_touch(where.range, write)
                        : device_->program().touch(where.range, write);
  if (!result.ok()) { out_of_memory_ = {replayed_, event.stage, event.bytes}; }
}

std::vector<memory_range> replayer::runs_of(std::vector<std::size_t> const& blocks) const
{
  std::vector<memory_range> runs;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    bool const joined = i > 0 && blocks[i] == blocks[i - 1] + 1 && !slabs_.begins_slab(blocks[i]);
    if (joined) {
      runs.back().bytes += va_block_bytes;
    } else {
      runs.push_back({slabs_.address_of(blocks[i]), va_block_bytes});
    }
  }
  return runs;
}

bool replayer::nearly_full() const noexcept
{
  device_memory memory;
  return device_->memory(memory).ok() && memory.free_bytes < low_free_bytes(memory.total_bytes);
}

void replayer::enter_stage(std::size_t stage)
{
  close_stage();
  stage_     = stage;
  auto& peak = stages_[stage].peak_live_bytes;
  peak       = std::max<std::uint64_t>(peak, live_.live_bytes());
}

void replayer::close_stage()
{
  auto const now = device_->view().statistics();
  auto& totals   = stages_[stage_];
  totals.migration_ns += static_cast<double>(now.modelled_ns - at_stage_begin_.modelled_ns);
  totals.to_device_bytes += now.host_to_device_bytes - at_stage_begin_.host_to_device_bytes;
  totals.to_host_bytes += now.device_to_host_bytes - at_stage_begin_.device_to_host_bytes;
  totals.evicted_bytes += now.evicted_bytes - at_stage_begin_.evicted_bytes;
  at_stage_begin_ = now;
}

void replayer::add_point(std::uint64_t next_time_ns)
{
  auto const now = device_->view().statistics();
  timeline_.add({0, 0, now.resident_bytes, now.host_to_device_bytes, now.device_to_host_bytes},
                live_.live_bytes(),
                next_time_ns);
}

void replayer::take(std::size_t slab)
{
  if (taken_[slab]) { return; }
  taken_[slab] = true;
  residency_.on_slab(slabs_.slab_range(slab), stream, settings_.mode);
}

void replayer::finish()
{
  for (std::size_t slab = 0; slab < taken_.size(); ++slab) {
    take(slab);  // one that nothing ever lay in
  }
  close_stage();
  add_point(time_ns_);
}

void replayer::refuse(replay_event const& event, char const* why) const
{
  throw std::invalid_argument{"event " + std::to_string(replayed_) + " (" +
                              std::to_string(event.bytes) + " bytes at " +
                              std::to_string(event.address) + ") " + why};
}

}  // namespace rmm_uvm::replay
