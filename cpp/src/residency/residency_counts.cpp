// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the counters of the driver tell the manager: bytes that moved without its asking.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

/**
 * @brief Of blocks that any part of is live: what a round needs on the device.
 *
 * What is away counts if it was used after `before`. What belongs to the host is read there, and
 * what lies on the device is there for whatever reason.
 */
[[nodiscard]] std::size_t live_block_bytes(ledger_view& view, use_tick before)
{
  std::size_t bytes = 0;
  view.each([&bytes, before](block_record const& block, memory_range whole) {
    if (block.dead() || block.place == block_place::nowhere) { return; }
    bool const used = std::max(block.touched, block.allocated) > before;
    bool const away = block.place != block_place::device;
    if (!away || (used && !block.used_on_host())) { bytes += whole.bytes; }
  });
  return bytes;
}

}  // namespace

epoch_number residency_manager::epoch() noexcept
{
  // What was asked to the host may have been there: then foreign bytes hide behind it, for a while.
  auto const totals = driver_->counters().read();
  if (totals.device_to_host_bytes > asked_bytes_ + foreign_bytes_) {
    foreign_bytes_ = totals.device_to_host_bytes - asked_bytes_;
    ++epoch_;
  }
  faulted_in_.observe(totals.host_to_device_bytes, foreign_bytes_);
  return epoch_;
}

/** @brief Tells the estimate of faults what is asked to the device, before it is. */
void residency_manager::count_coming(claims const& blocks) noexcept
{
  for (auto const& each : blocks) {
    bool const copied = !each.renewed && !each.empty;
    if (each.away && copied) {
      faulted_in_.to_device(each.range.bytes, settings_.fetch);
    } else if (each.away) {
      faulted_in_.forget(each.range.bytes);
    } else if (each.counted && copied && settings_.fetch) {
      faulted_in_.again_to_device(each.range.bytes);
    }
  }
}

void residency_manager::count_faulted() const noexcept
{
  auto const totals  = driver_->counters().read();
  auto const unasked = totals.device_to_host_bytes - asked_bytes_;
  bool const is_more = totals.device_to_host_bytes > asked_bytes_ + foreign_bytes_;
  faulted_in_.observe(totals.host_to_device_bytes, is_more ? unasked : foreign_bytes_);
}

residency_statistics residency_manager::statistics() const noexcept
{
  ledger_view const view{ledger_};
  count_faulted();
  auto counts = counts_;
  // What is to come once others have left is not there yet.
  counts.resident_bytes -= std::min(counts.resident_bytes, without_room_bytes_);
  counts.overshoot_bytes      = faulted_in_.beside_bytes();
  counts.peak_overshoot_bytes = faulted_in_.peak_bytes();
  counts.faulted_bytes        = faulted_in_.faulted_bytes();
  if (predictor_ != nullptr) { counts.prediction = predictor_->score(); }
  counts.ahead_bytes  = look_ahead_.bytes();
  counts.foresees     = prediction_.on();
  counts.switched_off = prediction_.switched_off();
  return counts;
}

/** @brief After an allocation: what was allocated since the last look may have made a peak. */
void residency_manager::look_at_live_blocks(std::size_t new_bytes) noexcept
{
  ledger_view view{ledger_};
  if (!live_blocks_.asked) { return; }
  live_blocks_.allocated_bytes += new_bytes;
  if (live_blocks_.allocated_bytes < settings_.budget_bytes / 64) { return; }
  live_blocks_.allocated_bytes = 0;
  live_blocks_.peak = std::max(live_blocks_.peak, live_block_bytes(view, live_blocks_.before));
}

live_blocks residency_manager::take_live_blocks(bool begins) noexcept
{
  ledger_view view{ledger_};
  if (begins) { live_blocks_.before = std::exchange(live_blocks_.round, now_); }
  live_blocks_.asked           = true;
  live_blocks_.allocated_bytes = 0;
  auto const now               = live_block_bytes(view, live_blocks_.before);
  return {now, std::max(now, std::exchange(live_blocks_.peak, 0))};
}

}  // namespace rmm_uvm
