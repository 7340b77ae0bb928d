// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is known to be on the device.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>

namespace rmm_uvm {

bool residency_manager::confirm_present() noexcept
{
  ledger_view view{ledger_};
  auto const left_bytes = driver_->counters().read().device_to_host_bytes;  // first: see below
  auto const as_of      = epoch();
  bool present          = !settings_.as_kernel_driver();  // to that every use counts
  view.each([&](block_record const& block, memory_range) {
    present = present && (block.dead() || (block.present(as_of) && !block.busy));
  });
  // What leaves by itself meanwhile raises the counter past what is remembered.
  confirmed_bytes_.store(left_bytes, std::memory_order_relaxed);
  confirmed_.store(present, std::memory_order_release);
  return present;
}

bool residency_manager::confirmed_present() const noexcept
{
  return confirmed_.load(std::memory_order_acquire) &&
         driver_->counters().read().device_to_host_bytes ==
           confirmed_bytes_.load(std::memory_order_relaxed);
}

/** @brief Whether everything live was confirmed to be there, and what is used is among it. */
bool residency_manager::is_confirmed(std::span<use_event const> uses) noexcept
{
  if (!confirmed_present()) { return false; }
  ledger_view view{ledger_};
  auto const as_of = epoch();
  // A block of a new allocation may be missing, or on its way in another stream.
  return std::all_of(uses.begin(), uses.end(), [&](use_event const& use) {
    bool present = true;
    view.each(use.range, [&](block_record const& block, memory_range) {
      present = present && block.present(as_of) && !block.busy;
    });
    return present;
  });
}

/** @brief Whether `claim` of this range alone would find nothing missing. */
bool residency_manager::is_present(ledger_view& view, memory_range range)
{
  auto const as_of = epoch();
  bool present     = true;
  view.each(range, [&](block_record const& block, memory_range) {
    present = present && block.present(as_of);
  });
  return present;
}

void residency_manager::count_presence(ledger_view& view, memory_range range)
{
  view.each(range, [&](block_record const& block, memory_range whole) {
    counts_.wanted_bytes += whole.bytes;
    if (block.place != block_place::device) { return; }
    counts_.present_bytes += whole.bytes;
    if (block.fetched_ahead) { counts_.ahead_used_bytes += whole.bytes; }
  });
}

}  // namespace rmm_uvm
