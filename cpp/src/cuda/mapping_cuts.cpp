// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/mapping_cuts.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

namespace rmm_uvm::cuda {

mapping_cuts::mapping_cuts(std::shared_ptr<system_calls> system) noexcept
  : system_{std::move(system)}
{
}

mapping_cuts::~mapping_cuts()
{
  for (auto const& [address, count] : counts_) {
    of_process_ -= count;
  }
}

void mapping_cuts::cut(memory_range memory) noexcept
try {
  if (memory.bytes <= least_bytes || va_block_floor(memory.address) != memory.address) { return; }
  std::lock_guard const lock{mutex_};
  auto const allowed = (most - std::min(most, of_process_.load())) / 2;
  if (allowed < 2) { return; }
  auto length      = least_bytes;
  auto const count = [&] { return (memory.bytes + length - 1) / length; };
  while (count() > allowed) {
    length *= 2;
  }
  counts_.insert_or_assign(memory.address, count());
  of_process_ += count();
  for (auto begin = memory.address + length; begin < memory.end(); begin += 2 * length) {
    auto const bytes = std::min<std::size_t>(length, memory.end() - begin);
    if (system_->keep_apart(begin, bytes) != 0) { return; }
  }
} catch (std::exception const&) {  // no memory to note it
  return;
}

void mapping_cuts::forget(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const found = counts_.find(address);
  if (found == counts_.end()) { return; }
  of_process_ -= found->second;
  counts_.erase(found);
}

}  // namespace rmm_uvm::cuda
