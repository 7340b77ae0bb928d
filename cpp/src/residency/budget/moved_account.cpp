// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/moved_account.hpp>

namespace rmm_uvm {

moved_account::moved_account(migration_counters const& counters, bool fetches) noexcept
  : counters_{counters},
    fetches_{fetches},
    foreign_bytes_{counters.read().device_to_host_bytes},
    faulted_in_{counters.read().host_to_device_bytes, foreign_bytes_}
{
}

epoch_number moved_account::epoch() noexcept
{
  // What was asked to the host may have been there: then foreign bytes hide behind it, for a while.
  auto const totals = counters_.read();
  if (totals.device_to_host_bytes > asked_bytes_ + foreign_bytes_) {
    foreign_bytes_ = totals.device_to_host_bytes - asked_bytes_;
    ++epoch_;
  }
  faulted_in_.observe(totals.host_to_device_bytes, foreign_bytes_);
  return epoch_;
}

void moved_account::ask_to_device(claim_list const& blocks) noexcept
{
  for (auto const& each : blocks) {
    bool const copied = !each.renewed && !each.empty;
    if (each.away && copied) {
      faulted_in_.to_device(each.range.bytes, fetches_);
    } else if (each.away) {
      faulted_in_.forget(each.range.bytes);
    } else if (each.counted && copied && fetches_) {
      faulted_in_.again_to_device(each.range.bytes);
    }
  }
}

void moved_account::earlier_came() noexcept
{
  static_cast<void>(epoch());  // counts what came first
  faulted_in_.earlier_came();
}

void moved_account::tell(residency_statistics& told) const noexcept
{
  auto const totals  = counters_.read();
  auto const unasked = totals.device_to_host_bytes - asked_bytes_;
  bool const is_more = totals.device_to_host_bytes > asked_bytes_ + foreign_bytes_;
  faulted_in_.observe(totals.host_to_device_bytes, is_more ? unasked : foreign_bytes_);
  told.overshoot_bytes      = faulted_in_.beside_bytes();
  told.peak_overshoot_bytes = faulted_in_.peak_bytes();
  told.faulted_bytes        = faulted_in_.faulted_bytes();
}

}  // namespace rmm_uvm
