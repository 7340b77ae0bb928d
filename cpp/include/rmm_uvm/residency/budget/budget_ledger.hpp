// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/budget/block_lists.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>

namespace rmm_uvm {

/**
 * @brief The ledger of blocks with its lock, and the levels that a budget is kept by.
 *
 * It knows how many bytes are on the device, leave it, or come before there is room for them; who
 * waits for a block waits here, and what a call answered wrongly is counted here. It commands
 * nothing and decides nothing.
 *
 * Under the lock, except where a method says otherwise. While the lock is let go of, a block that
 * somebody holds on to is `busy`.
 */
class budget_ledger {
 public:
  /**
   * @param blocks which nobody else marks; outlives this object
   * @param budget_bytes, low_bytes see `residency_settings`
   */
  budget_ledger(residency_ledger& blocks, std::size_t budget_bytes, std::size_t low_bytes) noexcept
    : blocks_{blocks}, budget_bytes_{budget_bytes}, low_bytes_{low_bytes}
  {
  }

  /** @brief The blocks and their lock: open a `ledger_view` of it. */
  [[nodiscard]] residency_ledger& blocks() const noexcept { return blocks_; }

  /** @brief Managed bytes to keep on the device; takes no lock. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept
  {
    return budget_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief What the thread evicts down to. */
  [[nodiscard]] std::size_t low_bytes() const noexcept { return low_bytes_; }
  /** @brief Sets both. */
  void set_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept
  {
    budget_bytes_.store(budget_bytes, std::memory_order_relaxed);
    low_bytes_ = low_bytes;
  }
  /** @brief Whether the slabs are larger than the budget; takes no lock. */
  [[nodiscard]] bool under_pressure() const noexcept
  {
    return blocks_.slab_bytes() > budget_bytes();
  }

  /** @brief From now on nobody begins a call for this budget; those under way are waited for. */
  void end() noexcept
  {
    ended_        = true;
    pinned_bytes_ = 0;
  }
  /** @brief Whether that was said. */
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /** @brief The last call of this budget is done: nobody waits for a block any more. */
  void close() noexcept { closed_ = true; }
  /** @brief Whether what is expected may come before its use. */
  [[nodiscard]] bool looks_ahead() const noexcept { return !asleep_; }
  /** @brief The program falls asleep, or wakes. */
  void set_asleep(bool asleep) noexcept { asleep_ = asleep; }
  /** @brief So much is taken to be on the device, of blocks that were there before the budget. */
  void adopt(std::size_t bytes) noexcept;
  /** @brief A block is on the device, or comes there: the driver may keep memory for it since. */
  void has_chunk(block_record& block, std::size_t bytes) noexcept
  {
    if (!block.chunk) { chunk_bytes_ += bytes; }
    block.chunk = true;
  }
  /** @brief So much counts as there, and comes when a kernel uses it. */
  void left_to_faults(std::size_t bytes) noexcept { assumed_bytes_ += bytes; }
  /** @brief A slab is to be given back; until it was, the driver may keep so much for it. */
  void slab_goes(std::size_t kept_bytes) noexcept
  {
    chunk_bytes_ -= kept_bytes;
    going_bytes_ += kept_bytes;
  }
  /** @brief It was given back. */
  void slab_went(std::size_t kept_bytes) noexcept
  {
    going_bytes_ -= std::min(going_bytes_, kept_bytes);
  }
  /** @brief The most of the device that the driver keeps for blocks, there or not. */
  [[nodiscard]] std::size_t chunk_bytes() const noexcept { return chunk_bytes_ + going_bytes_; }

  /** @brief On the device, or on the way there. */
  [[nodiscard]] std::size_t resident_bytes() const noexcept { return resident_bytes_; }
  /** @brief Of those, without what comes before there is room for it: also what is leaving. */
  [[nodiscard]] std::size_t there_bytes() const noexcept
  {
    return resident_bytes_ - std::min(resident_bytes_, without_room_bytes_);
  }
  /** @brief Of those, without what is on its way, and what is only taken to be there. */
  [[nodiscard]] std::size_t surely_resident_bytes() const noexcept
  {
    return staying_bytes() - std::min(staying_bytes(), without_room_bytes_ + assumed_bytes_);
  }
  /** @brief Of those, on their way elsewhere. */
  [[nodiscard]] std::size_t leaving_bytes() const noexcept { return leaving_bytes_; }
  /** @brief What stays of `resident_bytes` once all have left that are leaving. */
  [[nodiscard]] std::size_t staying_bytes() const noexcept
  {
    return resident_bytes_ - leaving_bytes_;
  }
  /** @brief Bytes past the budget that no request is making room for, and that stay. */
  [[nodiscard]] std::size_t beyond_budget_bytes() const noexcept
  {
    auto const there = staying_bytes() - std::min(staying_bytes(), without_room_bytes_);
    return there - std::min(there, budget_bytes());
  }
  /** @brief Of blocks that stay where they are. */
  [[nodiscard]] std::size_t pinned_bytes() const noexcept { return pinned_bytes_; }
  /** @brief Bytes come before there is room for them: `has_room` follows. */
  void comes(std::size_t bytes) noexcept
  {
    resident_bytes_ += bytes;
    without_room_bytes_ += bytes;
  }
  /** @brief Room was made for bytes that came, as far as that was possible. */
  void has_room(std::size_t bytes) noexcept;
  /** @brief Bytes begin to leave. */
  void begins_to_leave(std::size_t bytes) noexcept { leaving_bytes_ += bytes; }
  /** @brief Bytes that began to leave have left, or stay: then without `left`. */
  void ends_to_leave(std::size_t bytes) noexcept { leaving_bytes_ -= bytes; }
  /** @brief Bytes are not on the device any more. */
  void left(std::size_t bytes) noexcept { resident_bytes_ -= bytes; }

  /** @brief Keeps blocks where they are; what is leaving leaves first. */
  void pin(ledger_view& view, memory_range range);
  /** @brief Takes one `pin` of the same range back. */
  void unpin(ledger_view& view, memory_range range, use_tick now);
  /** @brief A pinned block goes with its slab. */
  void forget_pinned(std::size_t bytes) noexcept { pinned_bytes_ -= bytes; }

  /**
   * @brief Waits until no call about the ranges is under way; gives up the lock meanwhile.
   * @param to_read see `is_under_way`
   */
  void wait_until_free(ledger_view& view, range_list wanted, bool to_read = false);
  /** @brief Waits for `tell_change`; gives up the lock meanwhile. */
  void wait_for_change(ledger_view& view) { changed_.wait(view.lock()); }
  /** @brief The same until something holds. */
  template <typename Condition>
  void wait_for_change(ledger_view& view, Condition const& until)
  {
    changed_.wait(view.lock(), until);
  }
  /** @brief A block is not busy any more, or the thread has nothing to do. */
  void tell_change() noexcept { changed_.notify_all(); }

  /** @brief Counts a call that failed. */
  void count_failure(status failure) noexcept;
  /** @brief The same where it did. */
  void count_if_failed(status answer) noexcept
  {
    if (!answer.ok()) { count_failure(answer); }
  }
  /** @brief Counts a load that could not be read; a driver that tells none has not failed. */
  void count_unread(status answer) noexcept;
  /** @brief Counts that memory for a list ran out; takes the lock. */
  void count_no_memory(char const* where) noexcept;
  /** @brief Counts that no block could leave. */
  void count_over_budget() noexcept { ++over_budget_; }

  /** @brief Fills in the levels and what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  residency_ledger& blocks_;
  std::atomic<std::size_t> budget_bytes_;
  std::size_t low_bytes_;
  std::size_t resident_bytes_{0};
  std::size_t peak_resident_bytes_{0};
  std::size_t leaving_bytes_{0};
  std::size_t without_room_bytes_{0};  // of resident bytes: others are leaving for them
  std::size_t pinned_bytes_{0};
  std::size_t assumed_bytes_{0};  // of all that was ever taken to be there without being asked to
  std::size_t chunk_bytes_{0};
  std::size_t going_bytes_{0};  // of slabs that are on their way to the driver
  bool ended_{false};
  bool closed_{false};
  bool asleep_{false};
  lock_condition changed_;
  std::uint64_t waits_{0};
  std::uint64_t over_budget_{0};
  std::uint64_t failed_calls_{0};
  status last_failure_;
};

}  // namespace rmm_uvm
