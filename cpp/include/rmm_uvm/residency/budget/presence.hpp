// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/confirmed_presence.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <atomic>
#include <cstdint>
#include <span>

namespace rmm_uvm {

/**
 * @brief What is known to be on the device, so that uses of it cost next to nothing.
 *
 * That nothing ever left, or that all that lives was looked at and is there; while the latter
 * holds, uses are passed over, and their blocks are made up for when it ends. It changes records of
 * blocks only for that. Under the ledger's lock, except where a method says otherwise.
 */
class presence {
 public:
  presence(migration_counters const& counters,
           budget_ledger& ledger,
           use_clock const& clock,
           moved_account& moved) noexcept;

  /** @brief True while nothing can be away; takes no lock. */
  [[nodiscard]] bool all_present() const noexcept
  {
    return !ledger_.under_pressure() && !sent_away_.load(std::memory_order_acquire) &&
           counters_.read().device_to_host_bytes == quiet_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Whether `confirm` found all that lives, and nothing left since; takes no lock. */
  [[nodiscard]] bool confirmed() const noexcept;
  /** @brief Whether nobody asks what comes next, so that it can be learnt later; takes no lock. */
  [[nodiscard]] bool asks_nothing() const noexcept { return all_present() || confirmed(); }
  /** @brief Something leaves the device: what was confirmed is not so any more. */
  void send_away(ledger_view& view) noexcept;
  /** @brief Something that was sent away before goes elsewhere. */
  void note_sent_away() noexcept { sent_away_.store(true, std::memory_order_release); }

  /** @brief Whether uses may have been passed over since the last one that was noted. */
  [[nodiscard]] bool passes_over() const noexcept { return confirmed_.passes_over(); }
  /** @brief Up to this use some were not noted. */
  [[nodiscard]] use_tick passed_over() const noexcept { return confirmed_.passed_over; }
  /** @brief Ends what `confirm` found where it does not hold any more, before a use is noted. */
  void end_if_over(ledger_view& view) noexcept
  {
    if (passes_over() && !confirmed()) { end(view); }
  }
  /** @brief Has uses be noted again, and makes up for those that were not. */
  void end(ledger_view& view) noexcept;

  /** @brief Whether all of a range is on the device for sure. */
  [[nodiscard]] bool is_present(ledger_view& view, memory_range range);
  /** @brief Whether everything live was confirmed, and what is used is among it; locks. */
  [[nodiscard]] bool is_confirmed(std::span<use_event const> uses) noexcept;
  /**
   * @brief Looks whether all that lives is on the device, and remembers it.
   * @param[out] absent blocks to bring, where these are all that is missing
   */
  [[nodiscard]] bool confirm(ledger_view& view, absent_blocks& absent);
  /**
   * @brief Whether it pays to confirm after a use: all fits, but others moved memory meanwhile.
   *
   * Once for as many uses as half of the blocks: then a use pays for two blocks, two microseconds
   * each on an H100, however often others move some.
   */
  [[nodiscard]] bool pays_to_confirm() noexcept;

  /** @brief Counts what a use that was announced finds. */
  void count_use(ledger_view& view, memory_range range);
  /** @brief Moves what it remembers back with the clock. */
  void turn_back(tick_shift const& shift) noexcept;
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  [[nodiscard]] static bool was_only_read(ledger_view& view, memory_range range);

  migration_counters const& counters_;
  budget_ledger& ledger_;
  use_clock const& clock_;
  moved_account& moved_;
  std::atomic<std::uint64_t> quiet_bytes_;  // had left the device when all was known to be there
  std::atomic<bool> sent_away_{false};      // something was moved away
  confirmed_presence confirmed_;
  std::size_t uses_in_doubt_{0};  // since the last look
  std::uint64_t wanted_bytes_{0};
  std::uint64_t present_bytes_{0};
  std::uint64_t ahead_used_bytes_{0};
};

}  // namespace rmm_uvm
