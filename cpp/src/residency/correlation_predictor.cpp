// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/correlation_predictor.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept
{
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 31U);
}

/** @brief Never 0, which stands for none. */
[[nodiscard]] std::uint64_t identity_of(use_event const& event) noexcept
{
  auto const hash =
    mixed(mixed(mixed(static_cast<std::uint64_t>(event.kind) + 1, event.range.bytes),
                event.range.address),
          event.owner);
  return hash == 0 ? 1 : hash;
}

template <std::size_t Size>
void push(std::array<std::uint64_t, Size>& uses, std::uint64_t next) noexcept
{
  std::shift_left(uses.begin(), uses.end(), 1);
  uses.back() = next;
}

}  // namespace

std::size_t correlation_predictor::context_hash::operator()(context const& uses) const noexcept
{
  std::uint64_t hash = 0;
  for (auto const each : uses) {
    hash = mixed(hash, each);
  }
  return hash;
}

correlation_predictor::identity correlation_predictor::successor_of(
  context const& uses) const noexcept
{
  auto const found = after_.find(uses);
  return found == after_.end() ? 0 : found->second.front();
}

use_tick correlation_predictor::observe(use_event const& event)
{
  auto const now = identity_of(event);
  score_.enter(successor_of(last_) == now);
  if (after_.size() >= most_contexts || uses_.size() >= most_contexts) { begin_anew(); }
  // The most recent successor first; of an equal one, the older entry goes.
  auto& following = after_[last_];
  auto* const old = std::find(following.begin(), following.end(), now);
  std::move_backward(following.begin(),
                     old == following.end() ? following.end() - 1 : old,
                     old == following.end() ? following.end() : old + 1);
  following.front() = now;
  if (uses_.insert_or_assign(now, use_entry{event, true}).second) {
    uses_of_[event.owner].push_back(now);
  }
  if (event.kind == use_kind::allocate) { revive(event); }
  push(last_, now);
  auto chain = last_;
  for (std::size_t ahead = 1; ahead <= look_ahead; ++ahead) {
    auto const next = successor_of(chain);
    if (next == 0) { break; }
    auto const used = uses_.find(next);
    if (used != uses_.end() && used->second.event.owner == event.owner &&
        used->second.event.kind == use_kind::touch) {
      return static_cast<use_tick>(ahead);
    }
    push(chain, next);
  }
  return no_use;
}

void correlation_predictor::begin_anew() noexcept
{
  after_.clear();
  // Only what a context leads to is ever looked up. Addresses that a pool hands out are too many to
  // keep what was done at each.
  uses_.clear();
  uses_of_.clear();
}

void correlation_predictor::revive(use_event const& allocation)
{
  for (auto const each : uses_of_[allocation.owner]) {
    auto& use = uses_[each];
    use.alive = use.event.range.end() <= allocation.range.end();
  }
}

void correlation_predictor::forget(std::uintptr_t owner)
{
  auto const found = uses_of_.find(owner);
  if (found == uses_of_.end()) { return; }
  for (auto const each : found->second) {
    uses_[each].alive = false;
  }
  if (found->second.size() > look_ahead) {  // many sizes at one address: no more than are of use
    for (auto const each : found->second) {
      uses_.erase(each);
    }
    uses_of_.erase(found);
  }
}

std::vector<expected_use> correlation_predictor::upcoming(std::size_t bytes) const
{
  std::vector<expected_use> expected;
  std::size_t together = 0;
  auto chain           = last_;
  for (use_tick ahead = 1; ahead <= look_ahead && together < bytes; ++ahead) {
    auto const next = successor_of(chain);
    if (next == 0) { break; }
    auto const used = uses_.find(next);
    if (used != uses_.end() && used->second.alive && used->second.event.kind == use_kind::touch) {
      expected.push_back({used->second.event.range, ahead});
      together += used->second.event.range.bytes;
    }
    push(chain, next);
  }
  return expected;
}

}  // namespace rmm_uvm
