// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/link_engine.hpp>

#include <algorithm>
#include <iterator>

namespace rmm_uvm::sim {

double link_engine::pause_between(double begin, double ns) const noexcept
{
  auto it = std::upper_bound(
    stretches_.begin(), stretches_.end(), begin, [](double at, stretch const& one) {
      return at < one.end_ns;
    });
  for (; it != stretches_.end() && it->begin_ns < begin + ns; ++it) {
    begin = std::max(begin, it->end_ns);
  }
  return begin;
}

double link_engine::busy_ns(double begin_ns, double end_ns) const noexcept
{
  double sum = 0;
  for (auto it = stretches_.rbegin(); it != stretches_.rend() && it->end_ns > begin_ns; ++it) {
    sum += std::max(0.0, std::min(end_ns, it->end_ns) - std::max(begin_ns, it->begin_ns));
  }
  return sum;
}

void link_engine::insert(double begin_ns, double end_ns)
{
  auto const after = std::lower_bound(
    stretches_.begin(), stretches_.end(), begin_ns, [](stretch const& one, double at) {
      return one.end_ns < at;
    });
  if (after == stretches_.end() || after->begin_ns > end_ns) {
    stretches_.insert(after, {begin_ns, end_ns});
  } else {  // touches one, and may fill the pause before the next
    after->begin_ns = std::min(after->begin_ns, begin_ns);
    after->end_ns   = std::max(after->end_ns, end_ns);
    auto const next = std::next(after);
    if (next != stretches_.end() && next->begin_ns <= after->end_ns) {
      after->end_ns = next->end_ns;
      stretches_.erase(next);
    }
  }
  if (stretches_.size() <= most_) { return; }
  auto const kept = stretches_.end() - static_cast<std::ptrdiff_t>((most_ + 1) / 2);
  forgotten_ns_   = std::prev(kept)->end_ns;
  stretches_.erase(stretches_.begin(), kept);
}

}  // namespace rmm_uvm::sim
