// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {

timeline::timeline(machine_profile const& machine, std::vector<unsigned> links)
  : machine_{machine}, links_{std::move(links)}, from_peer_(links_.size())
{
  auto const count = links_.empty() ? 0 : *std::max_element(links_.begin(), links_.end()) + 1;
  to_device_.resize(count);
  to_host_.resize(count);
}

void timeline::begin(double ns) noexcept
{
  driver_ns_ = std::max(driver_ns_, ns);
  copied_ns_ = driver_ns_;
}

double timeline::run(engine& own, engine const* other, double begin_ns, double ns) const noexcept
{
  auto const begin = std::max(begin_ns, own.free_ns);
  if (begin > own.free_ns) { own.begun_ns = begin; }
  auto end = begin + ns;
  if (other != nullptr && machine_.duplex_fraction < 1.0) {
    // While the other direction is at work too, both are slower. It has begun before, so that only
    // this copy is stretched, by as much as both would be: what it loses is paid here.
    auto const shared = std::min(end, other->free_ns) - std::max(begin, other->begun_ns);
    if (shared > 0) { end += 2 * shared * (1 / machine_.duplex_fraction - 1); }
  }
  own.free_ns = end;
  return end;
}

void timeline::copy(direction way, unsigned gpu, std::size_t bytes, std::size_t runs) noexcept
{
  if (bytes == 0) { return; }
  auto const link    = links_[gpu];
  auto const outward = way == direction::to_host;
  auto const rate    = outward ? machine_.to_host_bytes_per_ns : machine_.to_device_bytes_per_ns;
  auto const ns = static_cast<double>(bytes) / rate + static_cast<double>(runs) * machine_.copy_ns;
  auto& own     = outward ? to_host_[link] : to_device_[link];
  auto& other   = outward ? to_device_[link] : to_host_[link];
  auto const begin = outward ? driver_ns_ : std::max(driver_ns_, std::exchange(held_ns_, 0));
  copied_ns_       = std::max(copied_ns_, run(own, &other, begin, ns));
}

void timeline::copy_between(
  unsigned from, unsigned to, std::size_t bytes, std::size_t runs, bool peers) noexcept
{
  if (bytes == 0) { return; }
  if (!peers || machine_.peer_bytes_per_ns <= 0) {  // by way of the host
    copy(direction::to_host, from, bytes, runs);
    hold_next_copy();
    copy(direction::to_device, to, bytes, runs);
    return;
  }
  auto const ns = static_cast<double>(bytes) / machine_.peer_bytes_per_ns +
                  static_cast<double>(runs) * machine_.copy_ns;
  auto const begin = std::max(driver_ns_, std::exchange(held_ns_, 0));
  copied_ns_       = std::max(copied_ns_, run(from_peer_[to], nullptr, begin, ns));
}

void timeline::wait_for_copies() noexcept { driver_ns_ = std::max(driver_ns_, copied_ns_); }

double timeline::finish() const noexcept { return std::max(driver_ns_, copied_ns_); }

}  // namespace rmm_uvm::sim
