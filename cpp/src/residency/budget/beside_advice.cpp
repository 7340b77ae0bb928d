// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/beside_advice.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

/** @brief The later of two answers that matters. */
void keep_failure(status& kept, status result) noexcept
{
  if (!result.ok()) { kept = result; }
}

}  // namespace

status beside_advice::map(range_list ranges) noexcept
{
  status failure;
  auto const here = location::device(driver_.info().device_id);
  for (auto const& range : ranges) {
    keep_failure(failure, driver_.advise(range, memory_advice::accessed_by, here));
  }
  // Of what may be mapped in spite of a failure the mapping ends.
  if (!failure.ok()) { static_cast<void>(unmap(ranges)); }
  return failure;
}

status beside_advice::unmap(range_list ranges) noexcept
{
  status failure;
  auto const here = location::device(driver_.info().device_id);
  for (auto const& range : ranges) {
    keep_failure(failure, driver_.advise(range, memory_advice::unset_accessed_by, here));
  }
  return failure;
}

status beside_advice::leave_one_copy(range_list ranges, location where) noexcept
{
  status failure;
  for (auto const& range : ranges) {
    // The copy at the preferred location stays; without one, the host's.
    bool const on_device = !where.is_host();
    if (on_device) {
      keep_failure(failure, driver_.advise(range, memory_advice::preferred_location, where));
    }
    keep_failure(failure, driver_.advise(range, memory_advice::unset_read_mostly, where));
    if (on_device) {
      keep_failure(failure, driver_.advise(range, memory_advice::unset_preferred_location, where));
    }
    // A user may have advised about it meanwhile: that holds.
    if (adviser_ != nullptr) { keep_failure(failure, adviser_->tell_again(range)); }
  }
  return failure;
}

void beside_advice::end(claim_list const& blocks) noexcept
{
  status failure;
  claimed_block run{};  // of blocks about which the same was advised
  auto const end_run = [&] {
    if (run.range.bytes == 0) { return; }
    if (run.mapped) { keep_failure(failure, unmap({&run.range, 1})); }
    if (run.copied) {
      auto const where = neighbors_.where(static_cast<std::size_t>(run.from));
      keep_failure(failure, leave_one_copy({&run.range, 1}, where));
    }
  };
  for (auto const& each : blocks) {
    if (!each.ours_to_end()) { continue; }
    bool const joins = run.range.bytes > 0 && !each.first && run.range.end() == each.range.address;
    if (joins && run.from == each.from && run.mapped == each.mapped && run.copied == each.copied) {
      run.range.bytes += each.range.bytes;
      continue;
    }
    end_run();
    run = each;
  }
  end_run();
  if (failure.ok()) { return; }
  ledger_view const view{ledger_.blocks()};
  ledger_.count_failure(failure);
}

void beside_advice::end(ledger_view& view, claim_list const& blocks) noexcept
{
  auto const ours = [](claimed_block const& each) { return each.ours_to_end(); };
  if (std::none_of(blocks.begin(), blocks.end(), ours)) { return; }
  view.unlock();
  end(blocks);
  view.relock();
}

}  // namespace rmm_uvm
