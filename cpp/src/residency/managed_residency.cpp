// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/managed_residency.hpp>

#include <mutex>
#include <utility>

namespace rmm_uvm {

managed_residency::managed_residency(std::shared_ptr<uvm_driver> driver,
                                     std::unique_ptr<epoch_source> epochs)
  : driver_{std::move(driver)},
    adviser_{driver_, ledger_},
    unbudgeted_{driver_, std::move(epochs), ledger_, adviser_, counts_}
{
}

void managed_residency::start_budget(residency_settings const& settings)
{
  fork_call const call;
  std::unique_lock const lock{slabs_};
  budgets_.push_back(nullptr);
  try {
    budgets_.back() = std::make_unique<budgeted_enactor>(driver_, ledger_, settings, adviser_);
  } catch (...) {
    budgets_.pop_back();
    throw;
  }
  end_kept();
  kept_ = budgets_.back().get();
  kept_->adopt([this] { now_.store(kept_, std::memory_order_release); });
}

bool managed_residency::change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept
{
  fork_call const call;
  std::unique_lock const lock{slabs_};
  if (kept_ == nullptr) { return false; }
  kept_->change_budget(budget_bytes, low_bytes);
  return true;
}

void managed_residency::end_budget() noexcept
{
  fork_call const call;
  std::unique_lock const lock{slabs_};
  end_kept();
}

/** @brief Ends the budget that is kept, if any; with the lock. */
void managed_residency::end_kept() noexcept
{
  if (kept_ == nullptr) { return; }
  kept_->retire([this] { now_.store(&unbudgeted_, std::memory_order_release); });
  kept_ = nullptr;
}

void managed_residency::on_slab(memory_range slab,
                                stream_handle stream,
                                prefetch_mode mode) noexcept
try {
  std::shared_lock const lock{slabs_};
  ledger_.add_slab(slab);
  now().on_slab(slab, stream, mode);
} catch (...) {  // only the ledger's own memory can run out
  counts_.add_failure({status_code::out_of_memory, 0, "residency_ledger"});
}

std::size_t managed_residency::on_slab_free(std::uintptr_t address) noexcept
{
  std::shared_lock const lock{slabs_};
  auto const slab = ledger_.slab_of(address);
  if (!slab) { return 0; }
  adviser_.forget(*slab);
  return now().on_slab_free(*slab);
}

void managed_residency::tell(memory_observer& observer,
                             std::span<use_event const> uses) const noexcept
{
  for (auto const& use : uses) {
    if (use.range.bytes == 0) { continue; }
    observer.touched(driver_->info().device_id, use.range, !use.only_read, false);
  }
}

void managed_residency::end_advice(memory_range allocation) noexcept
{
  if (auto const taken = adviser_.take_back(allocation); !taken.ok()) {
    counts_.add_failure(taken);
  }
}

advice_outcome managed_residency::advise(memory_range range, advice_change change) noexcept
{
  fork_call const call;
  auto const outcome = adviser_.advise(range, change);
  now().on_advised(range);
  if (!driver_->info().concurrent_managed_access.available) {
    counts_.add_skip(skip_reason::no_concurrent_managed_access);
  } else if (!outcome.failure.ok()) {
    counts_.add_failure(outcome.failure);
  }
  return outcome;
}

}  // namespace rmm_uvm
