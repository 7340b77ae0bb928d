// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/replay/live_blocks.hpp>

#include <algorithm>

namespace rmm_uvm::replay {
namespace {

/** @brief Calls `visit(block, bytes)` for each block of a range until it answers false. */
template <typename Visit>
[[nodiscard]] bool for_each_block(std::size_t first_block, memory_range range, Visit visit)
{
  auto offset = range.address % va_block_bytes;
  auto left   = range.bytes;
  for (auto block = first_block; left > 0; ++block, offset = 0) {
    auto const bytes = std::min(left, va_block_bytes - offset);
    if (!visit(block, static_cast<std::uint32_t>(bytes))) { return false; }
    left -= bytes;
  }
  return true;
}

}  // namespace

bool live_blocks::allocate(std::size_t first_block, memory_range range) noexcept
{
  total_bytes_ += range.bytes;
  peak_bytes_ = std::max(peak_bytes_, total_bytes_);
  return for_each_block(first_block, range, [&](std::size_t block, std::uint32_t bytes) {
    live_bytes_[block] += bytes;
    return live_bytes_[block] <= va_block_bytes;
  });
}

bool live_blocks::free(std::size_t first_block, memory_range range)
{
  if (range.bytes > total_bytes_) { return false; }
  total_bytes_ -= range.bytes;
  return for_each_block(first_block, range, [&](std::size_t block, std::uint32_t bytes) {
    if (live_bytes_[block] < bytes) { return false; }
    live_bytes_[block] -= bytes;
    if (live_bytes_[block] == 0 && states_[block] == state::counted) {
      states_[block] = state::listed;
      listed_.push_back(block);
    }
    return true;
  });
}

std::vector<std::size_t> live_blocks::take_dead()
{
  std::vector<std::size_t> dead;
  for (auto const block : listed_) {
    bool const is_dead = live_bytes_[block] == 0;
    states_[block]     = is_dead ? state::taken : state::counted;
    if (is_dead) { dead.push_back(block); }
  }
  listed_.clear();
  std::sort(dead.begin(), dead.end());
  return dead;
}

std::vector<std::size_t> live_blocks::reuse(std::size_t first_block, memory_range range)
{
  std::vector<std::size_t> taken;
  static_cast<void>(for_each_block(first_block, range, [&](std::size_t block, std::uint32_t) {
    if (states_[block] == state::taken) {
      taken.push_back(block);
      states_[block] = state::counted;
    }
    return true;
  }));
  return taken;
}

}  // namespace rmm_uvm::replay
