// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/budget_follower.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace rmm_uvm {
namespace {

// NVML takes some 150 us for a list of processes, free memory 5 us (measured on an H100).
constexpr std::chrono::milliseconds binding_period{20};
constexpr std::chrono::milliseconds idle_period{100};
constexpr int reading_attempts = 3;
constexpr int most_failures    = 8;  // in a row, before NVML is not asked any more
// Less than this may be taken of free memory without being seen: it changes in such steps.
constexpr std::size_t shown_bytes = std::size_t{64} << 20U;
// Of what all who agree have: a program at work wants so much at least. One that has just begun has
// nothing yet, and had to evict its first data else.
constexpr std::size_t least_wanted_part = 16;
// Of the budget, allocated between two looks for a peak of what lives.
constexpr std::size_t looked_at_part = 16;

void withdraw(std::shared_ptr<budget_sharing> const& sharing) noexcept
{
  if (sharing != nullptr) { sharing->withdraw(); }
}

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

bool budget_follower::look_if_due(ledger_view& view)
{
  // A model's time is not ours: there each look is due, and equal programs do equal things.
  bool const due = with_.driver.info().simulated || clock::now() - looked_ >= period();
  return follows() && begun_ && due && look(view);
}

void budget_follower::begin(ledger_view& view)
{
  if (follows()) { static_cast<void>(look(view)); }
  begun_ = true;
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
  looking_                = true;
  looked_                 = clock::now();
  auto const sharing      = with_.sharing;
  auto const wanted_bytes = sharing == nullptr ? 0 : take_wanted(view);
  auto const before       = last_;
  device_use use          = before;
  use.least_managed_bytes = least_managed_bytes();
  use.most_managed_bytes  = most_managed_bytes();
  std::size_t sharers     = 0;
  auto const there_bytes  = with_.ledger.there_bytes();
  view.unlock();
  auto const told = read(before, use);
  if (sharing != nullptr) {
    static_cast<void>(
      sharing->tell({wanted_bytes, use.least_managed_bytes, use.most_managed_bytes, there_bytes}));
    sharers = sharing->others(others_);
  }
  view.relock();
  looking_ = false;
  sharers_ = sharers;
  if (with_.sharing == nullptr) { withdraw(sharing); }  // it ended meanwhile
  with_.ledger.count_if_failed(told);
  if (!told.ok() || with_.ledger.ended()) { return false; }
  use.tells_unmanaged = tells_unmanaged_;
  // As it was before the reading or after it: whichever says less.
  use.least_managed_bytes = std::min(use.least_managed_bytes, least_managed_bytes());
  use.most_managed_bytes  = std::max(use.most_managed_bytes, most_managed_bytes());
  last_                   = use;
  auto const next         = rule_.follow(use, wanted_bytes, std::span{others_}.first(sharers_));
  if (next == with_.ledger.budget_bytes()) { return false; }
  ++changes_;
  with_.change(next);
  return true;
}

/**
 * @brief What the program wants of the device.
 *
 * While it shares with nobody, what is there, which costs nothing to know. Else what lives: then
 * blocks are looked through.
 */
std::size_t budget_follower::take_wanted(ledger_view& view)
{
  auto const before     = std::exchange(resident_bytes_, with_.ledger.resident_bytes());
  bool const used       = used_.exchange(false, std::memory_order_relaxed);
  bool const came       = resident_bytes_ > before;  // by page faults, and was found
  auto const live_bytes = sharers_ > 0 ? live_.take(view, never_used, false).peak : resident_bytes_;
  if (sharers_ == 0) { live_.rest(); }
  auto const since = std::chrono::duration_cast<wanted_watch::duration>(period());
  return wanted_.look(live_bytes, rule_.left_bytes() / least_wanted_part, used || came, since);
}

void budget_follower::allocated(ledger_view& view, std::size_t bytes)
{
  live_.allocated(view, bytes, with_.ledger.budget_bytes() / looked_at_part);
}

void budget_follower::leave() noexcept { withdraw(std::exchange(with_.sharing, nullptr)); }

/**
 * @brief Reads free memory, between two equal readings of what is not managed: the first of them is
 * the one of the last look. While free memory stays as it was nobody took or gave any.
 */
status budget_follower::read(device_use const& before, device_use& use) noexcept
{
  status result;
  auto told_bytes = before.unmanaged_bytes;
  for (int attempt = 0; result.ok() && attempt < reading_attempts; ++attempt) {
    device_memory memory;
    result               = with_.driver.memory(memory);
    use.used_bytes       = memory.total_bytes - std::min(memory.total_bytes, memory.free_bytes);
    bool const as_it_was = use.used_bytes == before.used_bytes && memory.free_bytes >= shown_bytes;
    if (result.ok() && tells_unmanaged_ && !as_it_was) {
      result           = with_.driver.unmanaged_bytes(use.unmanaged_bytes);
      failures_        = result.ok() ? 0 : failures_ + 1;
      bool const never = result.code == status_code::not_supported || failures_ >= most_failures;
      if (!result.ok() && never) {  // all that others hold is hidden
        tells_unmanaged_    = false;
        use.unmanaged_bytes = 0;
        result              = {};
      }
    }
    if (std::exchange(told_bytes, use.unmanaged_bytes) == use.unmanaged_bytes) { break; }
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

std::size_t budget_follower::most_managed_bytes() const noexcept
{
  return begun_ ? with_.ledger.chunk_bytes() : with_.ledger.blocks().slab_bytes();
}

void budget_follower::tell(residency_statistics& told) const noexcept
{
  told.unmanaged_bytes = last_.unmanaged_bytes;
  told.unmanaged_told  = tells_unmanaged_;
  told.hidden_bytes    = rule_.hidden_bytes();
  told.budget_changes  = changes_;
  told.sharers         = sharers_;
}

}  // namespace rmm_uvm
