// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/live_ranges.hpp>

#include <iterator>

namespace rmm_uvm::monitor {

void live_ranges::follow(std::span<trace_event> events)
{
  for (auto& event : events) {
    event.id = -1;
    switch (event.kind) {
      case trace_event_kind::allocate: allocate(event); break;
      case trace_event_kind::free: free(event); break;
      case trace_event_kind::read:
      case trace_event_kind::write:
      case trace_event_kind::cpu_read:
      case trace_event_kind::cpu_write:
        if (auto const it = live_.find({event.device_id, event.address}); it != live_.end()) {
          event.id = it->second.id;
        }
        break;
      case trace_event_kind::allocate_failed: break;
    }
  }
}

void live_ranges::allocate(trace_event& event)
{
  event.id = next_id_++;
  if (event.bytes == 0) { return; }
  auto const next = live_.lower_bound({event.device_id, event.address});
  if (overlaps(next, event)) { event.flags |= trace_event_overlaps; }
  live_.insert_or_assign(next, {event.device_id, event.address}, range{event.bytes, event.id});
}

void live_ranges::free(trace_event& event)
{
  auto const it = live_.find({event.device_id, event.address});
  if (it == live_.end() || event.bytes == 0) { return; }
  if (event.bytes != it->second.bytes) { event.flags |= trace_event_other_size; }
  event.id = it->second.id;
  live_.erase(it);
}

bool live_ranges::overlaps(ordered::const_iterator next, trace_event const& event) const
{
  // Differences, since the end of a made-up range may run over.
  if (next != live_.end() && next->first.first == event.device_id &&
      next->first.second - event.address < event.bytes) {
    return true;
  }
  if (next == live_.begin()) { return false; }
  auto const before = std::prev(next);
  return before->first.first == event.device_id &&
         event.address - before->first.second < before->second.bytes;
}

}  // namespace rmm_uvm::monitor
