// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/discards.hpp>
#include <rmm_uvm/residency/piece_movers.hpp>
#include <rmm_uvm/residency/unbudgeted_enactor.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

/**
 * @brief Bytes of device memory that a slab's prefetch leaves free.
 *
 * One batch in which the kernel driver takes memory (uvm_perf_pma_batch_nonpinned_order = 6, so
 * 2^6 x 2 MiB), but no more than a sixteenth of a small simulated device.
 */
[[nodiscard]] std::size_t slab_headroom_bytes(std::size_t device_bytes) noexcept
{
  return std::min(std::size_t{128} << 20U, device_bytes / 16);
}

}  // namespace

unbudgeted_enactor::unbudgeted_enactor(std::shared_ptr<uvm_driver> driver,
                                       std::unique_ptr<epoch_source> epochs,
                                       residency_ledger& ledger,
                                       memory_adviser& adviser,
                                       prefetch_counts& counts)
  : driver_{std::move(driver)},
    epochs_{std::move(epochs)},
    ledger_{ledger},
    adviser_{adviser},
    counts_{counts}
{
}

bool unbudgeted_enactor::can_issue(std::size_t bytes) noexcept
{
  if (!driver_->info().concurrent_managed_access.available) {
    counts_.add_skip(skip_reason::no_concurrent_managed_access);
    return false;
  }
  if (driver_->info().integrated) {
    counts_.add_skip(skip_reason::integrated);
    return false;
  }
  if (bytes > driver_->info().total_bytes) {
    counts_.add_skip(skip_reason::larger_than_device);
    return false;
  }
  return true;
}

bool unbudgeted_enactor::may_issue(memory_range range, stream_handle stream) noexcept
{
  if (!can_issue(range.bytes)) { return false; }
  // Asked only when there is something to issue: a call into a capture would spoil the user's
  // graph.
  switch (driver_->capturing(stream)) {
    case capture_state::none: return true;
    case capture_state::capturing: counts_.add_skip(skip_reason::capturing); return false;
    case capture_state::implied:
    case capture_state::unknown: counts_.add_skip(skip_reason::capture_unknown); return false;
  }
  return false;
}

bool unbudgeted_enactor::issue_prefetch(memory_range range, stream_handle stream) noexcept
{
  auto const device = location::device(driver_->info().device_id);
  auto const result = driver_->prefetch(range, device, stream);
  if (!result.ok()) {
    counts_.add_failure(result);
    return false;
  }
  counts_.add_prefetch(range.bytes);
  return true;
}

void unbudgeted_enactor::on_slab(memory_range slab,
                                 stream_handle stream,
                                 prefetch_mode mode) noexcept
{
  if (mode == prefetch_mode::never) {
    counts_.add_skip(skip_reason::mode_never);
    return;
  }
  auto const epoch = epochs_->current();
  device_memory memory{};
  if (auto const asked = driver_->memory(memory); !asked.ok()) {
    counts_.add_failure(asked);
    return;
  }
  auto const headroom_bytes = slab_headroom_bytes(memory.total_bytes);
  auto const free_bytes     = std::max(memory.free_bytes, headroom_bytes) - headroom_bytes;
  memory_range const part{slab.address, std::min(slab.bytes, free_bytes)};
  if (part.bytes == 0) {
    counts_.add_skip(skip_reason::no_free_memory);
    return;
  }
  if (!may_issue(part, stream)) { return; }
  auto const device = location::device(driver_->info().device_id);
  if (auto const issued = driver_->prefetch(part, device, stream); !issued.ok()) {
    counts_.add_failure(issued);
    return;
  }
  counts_.add_slab(part.bytes);
  ledger_.mark_on_device(part, epoch);
}

std::size_t unbudgeted_enactor::on_slab_free(memory_range slab) noexcept
{
  ledger_.remove_slab(slab.address);
  return 0;
}

bool unbudgeted_enactor::on_allocate(memory_range allocation,
                                     stream_handle stream,
                                     prefetch_mode mode) noexcept
try {
  if (allocation.bytes == 0) { return false; }
  if (mode == prefetch_mode::never) {
    counts_.add_skip(skip_reason::mode_never);
    return false;
  }
  if (mode == prefetch_mode::always) {
    return may_issue(allocation, stream) && issue_prefetch(allocation, stream);
  }
  auto const epoch = epochs_->current();
  if (ledger_.all_on_device(epoch)) {
    counts_.add_skip(skip_reason::resident);
    return false;
  }
  return settle_doubt(allocation, stream, epoch);
} catch (...) {  // a list of ranges could not be built: the pages come by fault
  counts_.add_failure({status_code::out_of_memory, 0, "prefetch_plan"});
  return false;
}

bool unbudgeted_enactor::on_dead(std::span<memory_range const> blocks) noexcept
{
  if (blocks.empty() || !driver_->info().discard.available) { return false; }
  // Nothing comes to the device, so that no length is too large for it.
  if (!can_issue(0)) { return false; }
  // Also where the call fails: some of the blocks may have been discarded by then.
  for (auto const& range : blocks) {
    ledger_.doubt(range);
  }
  if (auto const result = discard_at_once(*driver_, blocks); !result.ok()) {
    counts_.add_failure(result);
    return false;
  }
  counts_.add_discard(bytes_of(blocks));
  return true;
}

void unbudgeted_enactor::on_touch(std::span<use_event const> uses, stream_handle stream) noexcept
try {
  for (auto const& use : uses) {
    if (adviser_.advised_bytes() == 0) {
      bring(use.range, stream);
      continue;
    }
    for (auto const& part : adviser_.without_used_on_host(use.range)) {
      bring(part, stream);
    }
  }
} catch (...) {  // a list of ranges could not be built: the pages come by fault
  counts_.add_failure({status_code::out_of_memory, 0, "on_touch"});
}

void unbudgeted_enactor::bring(memory_range range, stream_handle stream) noexcept
try {
  auto const epoch = epochs_->current();
  auto const runs  = ledger_.doubtful_runs(range, epoch);
  if (runs.empty()) {
    counts_.add_skip(skip_reason::resident);
    return;
  }
  if (!may_issue(range, stream)) { return; }
  for (auto const& run : runs) {
    if (issue_prefetch(run, stream)) { ledger_.mark_on_device(run, epoch); }
  }
} catch (...) {  // a list of ranges could not be built: the pages come by fault
  counts_.add_failure({status_code::out_of_memory, 0, "bring"});
}

std::size_t unbudgeted_enactor::evict(memory_range range, stream_handle stream) noexcept
{
  auto const begin = va_block_ceil(range.address);
  auto const end   = va_block_floor(range.end());
  if (begin >= end || !may_issue({begin, 0}, stream)) { return 0; }
  memory_range const whole{begin, end - begin};
  ledger_.doubt(whole);
  auto const left = adviser_.to_host(std::span{&whole, 1}, stream);
  if (!left.advised.ok()) { counts_.add_failure(left.advised); }
  if (!left.moved.ok()) {
    counts_.add_failure(left.moved);
    return 0;
  }
  return whole.bytes;
}

bool unbudgeted_enactor::settle_doubt(memory_range allocation,
                                      stream_handle stream,
                                      epoch_number epoch)
{
  auto const runs = ledger_.doubtful_runs(allocation, epoch);
  if (runs.empty()) {
    counts_.add_skip(skip_reason::resident);
    return false;
  }
  if (!may_issue(allocation, stream)) { return false; }
  auto plan = plan_allocation(allocation, runs, driver_->info().discard.available);
  // The pool has the stream wait for every free of what it hands out. While work is under way
  // there, the work before a free may be, too: then dead contents are copied like others.
  if (!plan.dead.empty() && !driver_->idle(stream)) {
    counts_.add_undiscarded(bytes_of(plan.dead));
    plan = plan_allocation(allocation, runs, false);
  }
  bool issued = !plan.dead.empty();
  renew(plan.dead, stream, epoch);
  for (auto const& range : plan.kept) {
    if (issue_prefetch(range, stream)) {
      ledger_.mark_on_device(range, epoch);
      issued = true;
    }
  }
  return issued;
}

void unbudgeted_enactor::renew(std::span<memory_range const> ranges,
                               stream_handle stream,
                               epoch_number epoch)
{
  if (ranges.empty()) { return; }
  auto const result = renew_at_once(*driver_, ranges);
  if (result.ok()) {
    counts_.add_discard(bytes_of(ranges));
  } else {
    counts_.add_failure(result);
  }
  for (auto const& range : ranges) {
    // After a failure pages may be discarded and not prefetched, and would fault one by one: a
    // plain prefetch brings them in, whatever they hold.
    if (result.ok() || issue_prefetch(range, stream)) { ledger_.mark_on_device(range, epoch); }
  }
}

}  // namespace rmm_uvm
