// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {

timeline::timeline(machine_profile const& machine, std::vector<unsigned> links, unsigned programs)
  : machine_{machine},
    links_{std::move(links)},
    to_peers_(links_.size(), link_engine{programs}),
    from_peers_(links_.size(), link_engine{programs}),
    pairs_(links_.size() * links_.size()),
    lanes_(programs)
{
  auto const count = links_.empty() ? 0 : *std::max_element(links_.begin(), links_.end()) + 1;
  to_device_.resize(count, host_way{link_engine{programs}, {}});
  to_host_.resize(count, host_way{link_engine{programs}, {}});
}

void timeline::begin(double ns) noexcept
{
  own().driver_ns = std::max(own().driver_ns, ns);
  own().copied_ns = own().driver_ns;
}

void timeline::copy(direction way, unsigned gpu, std::size_t bytes, std::size_t runs)
{
  if (bytes == 0) { return; }
  auto const link    = links_[gpu];
  auto const outward = way == direction::to_host;
  auto const rate    = outward ? machine_.to_host_bytes_per_ns : machine_.to_device_bytes_per_ns;
  auto const ns = static_cast<double>(bytes) / rate + static_cast<double>(runs) * machine_.copy_ns;
  auto& [engine, traffic] = (outward ? to_host_ : to_device_)[link];
  auto const& other       = (outward ? to_device_ : to_host_)[link].engine;
  auto const earliest =
    outward ? own().driver_ns : std::max(own().driver_ns, std::exchange(own().held_ns, 0));
  auto const end_of = [&](double begin) {
    auto const end = begin + ns;
    if (machine_.duplex_fraction >= 1.0) { return end; }
    // While the other direction is at work too, both are slower. It has begun before, so that only
    // this copy is stretched, by as much as both would be: what it loses is paid here.
    return end + 2 * other.busy_ns(begin, end) * (1 / machine_.duplex_fraction - 1);
  };
  auto begin = engine.pause(program_, earliest, ns);
  while (true) {  // until what is stretched fits, too
    auto const next = engine.pause(program_, begin, end_of(begin) - begin);
    if (next == begin) { break; }
    begin = next;
  }
  auto const end = end_of(begin);
  engine.work(program_, begin, end);
  traffic.bytes += bytes;
  traffic.busy_ns += end - begin;
  own().copied_ns = std::max(own().copied_ns, end);
}

void timeline::copy_between(
  unsigned from, unsigned to, std::size_t bytes, std::size_t runs, bool without_host)
{
  if (bytes == 0) { return; }
  if (!without_host) {  // by way of the host
    copy(direction::to_host, from, bytes, runs);
    hold_next_copy();
    copy(direction::to_device, to, bytes, runs);
    return;
  }
  auto const ns = static_cast<double>(bytes) / machine_.peer_bytes_per_ns +
                  static_cast<double>(runs) * machine_.copy_ns;
  auto& sends    = to_peers_[from];
  auto& receives = from_peers_[to];
  auto begin =
    sends.pause(program_, std::max(own().driver_ns, std::exchange(own().held_ns, 0)), ns);
  while (true) {  // until both have time
    auto const next = sends.pause(program_, receives.pause(program_, begin, ns), ns);
    if (next == begin) { break; }
    begin = next;
  }
  sends.work(program_, begin, begin + ns);
  receives.work(program_, begin, begin + ns);
  auto& traffic = pairs_[std::size_t{from} * links_.size() + to];
  traffic.bytes += bytes;
  traffic.busy_ns += ns;
  own().copied_ns = std::max(own().copied_ns, begin + ns);
}

void timeline::wait_for_copies() noexcept
{
  own().driver_ns = std::max(own().driver_ns, own().copied_ns);
}

double timeline::finish() const noexcept
{
  return std::max(lanes_[program_].driver_ns, lanes_[program_].copied_ns);
}

}  // namespace rmm_uvm::sim
