// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/budget_follower.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

// A look takes some tens of microseconds.
constexpr std::chrono::milliseconds binding_period{10};
constexpr std::chrono::milliseconds idle_period{100};
// A request that needs room looks by itself, but not each one.
constexpr std::chrono::milliseconds request_period{1};
constexpr int reading_attempts = 3;

}  // namespace

budget_follower::budget_follower(parts all)
  : with_{std::move(all)},
    rule_{with_.settings.followed_bytes,
          std::min(with_.settings.followed_bytes, residency_settings::least_budget_bytes)},
    looked_{clock::now() - idle_period}
{
}

/** @brief Half of the budget and more in slabs may bind soon. */
budget_follower::clock::duration budget_follower::period() const noexcept
{
  bool const near = with_.ledger.blocks().slab_bytes() > with_.ledger.budget_bytes() / 2;
  return near ? binding_period : idle_period;
}

/** @brief A model's time is not ours: there each look is due, and equal programs do equal things.
 */
bool budget_follower::is_due(clock::duration after) const noexcept
{
  return with_.driver.info().simulated || clock::now() - looked_ >= after;
}

void budget_follower::look_if_due(ledger_view& view)
{
  if (follows() && is_due(period())) { static_cast<void>(look(view)); }
}

bool budget_follower::look_for_request(ledger_view& view)
{
  return follows() && is_due(request_period) && look(view);
}

std::optional<std::chrono::microseconds> budget_follower::look_again_in() const noexcept
{
  if (!follows()) { return std::nullopt; }
  return std::chrono::duration_cast<std::chrono::microseconds>(period());
}

/** @return whether the budget changed */
bool budget_follower::look(ledger_view& view)
{
  if (looking_ || with_.ledger.ended()) { return false; }
  looking_ = true;
  looked_  = clock::now();
  device_use use;
  use.least_managed_bytes = least_managed_bytes();
  use.most_managed_bytes  = with_.ledger.chunk_bytes();
  auto const unmanaged    = unmanaged_bytes_;
  view.lock().unlock();
  auto const told = read(unmanaged, use);
  view.lock().lock();
  looking_ = false;
  with_.ledger.count_if_failed(told);
  if (!told.ok() || with_.ledger.ended()) { return false; }
  // As it was before the reading or after it: whichever says less.
  use.least_managed_bytes = std::min(use.least_managed_bytes, least_managed_bytes());
  use.most_managed_bytes  = std::max(use.most_managed_bytes, with_.ledger.chunk_bytes());
  unmanaged_bytes_        = use.unmanaged_bytes;
  auto const next         = rule_.follow(use);
  if (next == with_.ledger.budget_bytes()) { return false; }
  ++changes_;
  with_.change(next);
  return true;
}

/**
 * @brief Reads free memory, between two equal readings of what is not managed: the first of them is
 * the one of the last look.
 */
status budget_follower::read(std::size_t unmanaged_bytes, device_use& use) noexcept
{
  status result;
  for (int attempt = 0; result.ok() && attempt < reading_attempts; ++attempt) {
    device_memory memory;
    result = with_.driver.memory(memory);
    if (result.ok() && tells_unmanaged_) {
      result = with_.driver.unmanaged_bytes(use.unmanaged_bytes);
      if (result.code == status_code::not_supported) {  // all that others hold is hidden
        tells_unmanaged_    = false;
        use.unmanaged_bytes = 0;
        result              = {};
      }
    }
    use.used_bytes = memory.total_bytes - std::min(memory.total_bytes, memory.free_bytes);
    if (std::exchange(unmanaged_bytes, use.unmanaged_bytes) == use.unmanaged_bytes) { break; }
  }
  return result;
}

/**
 * @brief What is on the device for sure: a prefetch that was issued may not have come yet, so the
 * least of the latest looks.
 */
std::size_t budget_follower::least_managed_bytes() noexcept
{
  lately_.at(looks_++ % lately_.size()) = with_.ledger.surely_resident_bytes();
  return *std::min_element(lately_.begin(), lately_.end());
}

void budget_follower::tell(residency_statistics& told) const noexcept
{
  told.unmanaged_bytes = unmanaged_bytes_;
  told.hidden_bytes    = rule_.hidden_bytes();
  told.budget_changes  = changes_;
}

}  // namespace rmm_uvm
