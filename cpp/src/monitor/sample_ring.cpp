// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/sample_ring.hpp>

#include <algorithm>
#include <new>

namespace rmm_uvm::monitor {

sample_ring::sample_ring(std::size_t capacity) : capacity_{std::max<std::size_t>(capacity, 1)}
{
  // The library's own error for this says nothing of memory.
  if (capacity_ > samples_.max_size()) { throw std::bad_alloc{}; }
  samples_.reserve(capacity_);
}

void sample_ring::push(sample const& one) noexcept
{
  if (samples_.size() < capacity_) {
    samples_.push_back(one);
  } else {
    samples_[next_ % capacity_] = one;
  }
  ++next_;
}

std::size_t sample_ring::count(std::uint64_t since) const noexcept
{
  auto const first = std::max(since, first_sequence());
  return first < next_ ? static_cast<std::size_t>(next_ - first) : 0;
}

ring_read sample_ring::read(std::uint64_t since, std::span<sample> into) const noexcept
{
  auto const first = std::min(std::max(since, first_sequence()), next_);
  auto const count = std::min(into.size(), this->count(first));
  // In at most two pieces: up to the end of the storage, and from its beginning.
  auto const place = static_cast<std::size_t>(first % capacity_);
  auto const piece = std::min(count, samples_.size() - std::min(place, samples_.size()));
  std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(place), piece, into.begin());
  std::copy_n(samples_.begin(), count - piece, into.begin() + static_cast<std::ptrdiff_t>(piece));
  return {first, count};
}

}  // namespace rmm_uvm::monitor
