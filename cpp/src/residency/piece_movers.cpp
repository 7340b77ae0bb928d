// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/piece_movers.hpp>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

namespace rmm_uvm {

std::size_t bytes_of(std::span<memory_range const> ranges) noexcept
{
  return std::accumulate(
    ranges.begin(), ranges.end(), std::size_t{0}, [](std::size_t sum, memory_range each) {
      return sum + each.bytes;
    });
}

void cut(std::vector<memory_range>& pieces, memory_range range, std::size_t most_bytes)
{
  while (range.bytes > 0) {
    auto const end =
      std::min(range.end(), va_block_floor(range.address + std::max(most_bytes, va_block_bytes)));
    pieces.push_back({range.address, end - range.address});
    range = {end, range.end() - end};
  }
}

piece_movers::~piece_movers()
{
  {
    std::lock_guard const lock{mutex_};
    stopping_ = true;
  }
  wanted_.notify_all();
  for (auto& each : threads_) {
    each.join();
  }
}

void piece_movers::work_on(job& one) noexcept
{
  while (!one.failed.load(std::memory_order_relaxed)) {
    auto const number = one.next.fetch_add(1, std::memory_order_relaxed);
    if (number >= one.pieces.size()) { return; }
    auto const result = (*one.move)(one.pieces[number]);
    // One thread writes it; who waits for the helpers, under the lock, reads it.
    if (!result.ok() && !one.failed.exchange(true)) { one.failure = result; }
  }
}

/** @brief What a helper does until it is stopped. */
void piece_movers::help()
{
  std::unique_lock lock{mutex_};
  for (;;) {
    wanted_.wait(lock, [this] { return stopping_ || open_ != nullptr; });
    if (stopping_) { return; }
    auto& one = *open_;
    ++one.helping;
    if (--one.wanted == 0) { close(one); }
    lock.unlock();
    work_on(one);
    lock.lock();
    --one.helping;
    left_.notify_all();
  }
}

/** @brief Has as many threads as `helpers`, or as can be had. */
void piece_movers::start(std::size_t helpers) noexcept
try {
  while (threads_.size() < std::min(helpers, most_helpers_)) {
    threads_.emplace_back("rmm_uvm mover", [this] { help(); });
  }
} catch (std::exception const&) {  // fewer help, or nobody does
  return;
}

/** @brief Lets no helper join any more. */
void piece_movers::close(job const& one) noexcept
{
  for (auto** each = &open_; *each != nullptr; each = &(*each)->after) {
    if (*each == &one) {
      *each = one.after;
      return;
    }
  }
}

status piece_movers::move_all(std::span<memory_range const> pieces,
                              std::size_t most_at_once,
                              move_one const& move) noexcept
{
  job one;
  one.pieces          = pieces;
  one.move            = &move;
  auto const together = std::min({most_at_once, pieces.size(), most_helpers_ + 1});
  if (together <= 1) {
    work_on(one);
    return one.failure;
  }
  one.wanted = together - 1;  // and the caller
  {
    std::lock_guard const lock{mutex_};
    start(one.wanted);
    one.after = std::exchange(open_, &one);
  }
  wanted_.notify_all();
  work_on(one);
  std::unique_lock lock{mutex_};
  close(one);
  left_.wait(lock, [&one] { return one.helping == 0; });
  return one.failure;
}

}  // namespace rmm_uvm
