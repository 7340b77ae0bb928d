// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/auto_budget.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

// Of the most that a budget may be: what it does not follow.
constexpr std::size_t shrinking_part = 256;
constexpr std::size_t growing_part   = 64;
// Looks at which others leave nothing of what is this budget's, before it is taken all the same.
constexpr int patience = 25;

[[nodiscard]] std::size_t less(std::size_t from, std::size_t what) noexcept
{
  return from - std::min(from, what);
}

}  // namespace

/**
 * @brief A larger budget as far as others have left what it takes of theirs.
 *
 * Else the kernel driver would make the room, by its own order. Where they do not leave for a
 * while, it does. They leave where they have less than ever since they are waited for: one that
 * takes a block and gives it back does not.
 */
std::size_t auto_budget::as_others_leave(std::size_t next, std::size_t others_bytes) noexcept
{
  auto const before = begun_ ? budget_bytes_ : least_bytes_;
  auto const free   = std::max(before, less(left_bytes_, others_bytes));
  if (next <= free) {
    looks_without_leaving_ = 0;
    return next;
  }
  if (looks_without_leaving_ == 0 || others_bytes < least_others_bytes_) {
    least_others_bytes_    = others_bytes;
    looks_without_leaving_ = 1;
  } else {
    looks_without_leaving_ = std::min(looks_without_leaving_ + 1, patience);
  }
  return looks_without_leaving_ < patience ? free : next;
}

/**
 * @brief What is hidden at least, by the latest looks.
 *
 * What others say of themselves is as old as their last look. One that has grown since would be
 * taken for hidden, and stay so: where all of the device is used, no reading tells otherwise.
 */
std::size_t auto_budget::surely_hidden(std::size_t bound) noexcept
{
  lately_.at(looks_++ % lately_.size()) = bound;
  return *std::min_element(lately_.begin(), lately_.end());
}

std::size_t auto_budget::follow(device_use now,
                                std::size_t wanted_bytes,
                                std::span<budget_share const> others) noexcept
{
  std::size_t others_bytes = 0;
  for (auto const& each : others) {
    others_bytes += std::max(each.least_bytes, each.there_bytes);
    now.least_managed_bytes += each.least_bytes;
    now.most_managed_bytes += each.most_bytes;
  }
  auto const untold = less(now.used_bytes, now.unmanaged_bytes);
  auto const bound  = less(untold, now.most_managed_bytes);
  auto const least  = others.empty() ? bound : surely_hidden(bound);
  auto const most   = less(untold, std::min(now.least_managed_bytes, now.most_managed_bytes));
  hidden_bytes_     = std::clamp(hidden_bytes_, least, most);
  auto const shared = less(most_bytes_, now.unmanaged_bytes);
  auto const half   = now.tells_unmanaged ? shared / 2 : 0;
  left_bytes_       = std::max(less(shared, hidden_bytes_), half);
  auto next         = left_bytes_;
  if (!others.empty()) {
    next = as_others_leave(fair_share(left_bytes_, wanted_bytes, others), others_bytes);
  }
  next               = std::max(next, least_bytes_);
  bool const shrinks = next < budget_bytes_ && budget_bytes_ - next > most_bytes_ / shrinking_part;
  bool const grows   = next > budget_bytes_ && next - budget_bytes_ > most_bytes_ / growing_part;
  // All of it comes back, also where the last step is a small one.
  bool const nobody = next == most_bytes_;
  if (shrinks || grows || nobody) { budget_bytes_ = next; }
  begun_ = true;
  return budget_bytes_;
}

}  // namespace rmm_uvm
