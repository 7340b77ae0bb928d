// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/free_memory_lender.hpp>

namespace rmm_uvm {

harvest_holding* free_memory_lender::of(int device_id) noexcept
{
  if (device_id < 0 || device_id >= most_devices) { return nullptr; }
  return &holdings_.at(static_cast<std::size_t>(device_id));
}

std::size_t free_memory_lender::claim(int device_id,
                                      std::size_t bytes,
                                      std::size_t free_bytes,
                                      std::size_t reserve_bytes) noexcept
{
  std::lock_guard const guard{mutex_};
  auto* const mine = of(device_id);
  if (mine == nullptr) { return 0; }
  auto const granted = granted_bytes(
    bytes, {false, 0, mine->claimed_bytes, mine->coming_bytes}, free_bytes, reserve_bytes);
  *mine = mine->claimed(granted);
  return granted;
}

void free_memory_lender::placed(int device_id, std::size_t bytes) noexcept
{
  std::lock_guard const guard{mutex_};
  if (auto* const mine = of(device_id)) { *mine = mine->placed(bytes); }
}

void free_memory_lender::cancel(int device_id, std::size_t bytes) noexcept
{
  std::lock_guard const guard{mutex_};
  if (auto* const mine = of(device_id)) { *mine = mine->cancelled(bytes); }
}

void free_memory_lender::release(int device_id, std::size_t bytes) noexcept
{
  std::lock_guard const guard{mutex_};
  if (auto* const mine = of(device_id)) { *mine = mine->released(bytes); }
}

std::size_t free_memory_lender::excess(int device_id, std::size_t shortage_bytes) noexcept
{
  std::lock_guard const guard{mutex_};
  auto const* const mine = of(device_id);
  return mine == nullptr
           ? 0
           : give_back_bytes(mine->claimed_bytes, mine->claimed_bytes, shortage_bytes);
}

std::size_t free_memory_lender::held(int device_id) noexcept
{
  std::lock_guard const guard{mutex_};
  auto const* const mine = of(device_id);
  return mine == nullptr ? 0 : mine->claimed_bytes;
}

bool free_memory_lender::busy(int) noexcept { return false; }

}  // namespace rmm_uvm
