// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/auto_budget.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

// Of the most that a budget may be: what it does not follow.
constexpr std::size_t shrinking_part = 256;
constexpr std::size_t growing_part   = 64;

[[nodiscard]] std::size_t less(std::size_t from, std::size_t what) noexcept
{
  return from - std::min(from, what);
}

}  // namespace

std::size_t auto_budget::follow(device_use const& now) noexcept
{
  auto const untold  = less(now.used_bytes, now.unmanaged_bytes);
  auto const least   = less(untold, now.most_managed_bytes);
  auto const most    = less(untold, std::min(now.least_managed_bytes, now.most_managed_bytes));
  hidden_bytes_      = std::clamp(hidden_bytes_, least, most);
  auto const shared  = less(most_bytes_, now.unmanaged_bytes);
  auto const half    = now.tells_unmanaged ? shared / 2 : 0;
  auto const next    = std::max({less(shared, hidden_bytes_), half, least_bytes_});
  bool const shrinks = next < budget_bytes_ && budget_bytes_ - next > most_bytes_ / shrinking_part;
  bool const grows   = next > budget_bytes_ && next - budget_bytes_ > most_bytes_ / growing_part;
  // All of it comes back, also where the last step is a small one.
  bool const nobody = next == most_bytes_;
  if (shrinks || grows || nobody) { budget_bytes_ = next; }
  return budget_bytes_;
}

}  // namespace rmm_uvm
