// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/arrivals.hpp>
#include <rmm_uvm/residency/budget/use_learner.hpp>

#include <memory>

namespace rmm_uvm {

/**
 * @brief Whether blocks come and leave as they do on a smaller card without a budget.
 *
 * For comparisons only: pages come by faults, piece by piece, and what came first leaves first.
 */
[[nodiscard]] inline bool is_fault_driven(residency_settings const& settings) noexcept
{
  return settings.policy == eviction_policy::fifo && !settings.fetch;
}

/** @brief Notes uses once there is room: what a request finds leaves for it like others. */
class fault_driven_learner final : public use_learner {
 public:
  /** @param blocks whose lock is taken */
  fault_driven_learner(eviction_policy policy,
                       use_clock& clock,
                       presence& present,
                       stream_marks& marks,
                       live_block_watch& watch,
                       last_announced& announced,
                       residency_ledger& blocks)
    : use_learner{policy, clock, present, marks, watch, announced}, blocks_{blocks}
  {
  }
  void room_was_made(std::span<use_event const> uses) override;

 private:
  void note_learnt(ledger_view& /*view*/,
                   use_event const& /*event*/,
                   use_tick /*next*/,
                   bool /*no_more*/) override
  {
  }

  residency_ledger& blocks_;
};

/**
 * @brief Makes room for a request piece by piece, in the order in which its pages fault.
 *
 * As on a card without room for all of it: what the request uses later may leave for what it uses
 * first, and comes back in its turn. What was passed stays, since the kernel has not run yet.
 */
class fault_driven_arrivals final : public arrivals {
 public:
  using arrivals::arrivals;
  /** @brief No: every use counts. */
  bool confirm_present(stream_handle /*stream*/) override { return false; }

 private:
  [[nodiscard]] std::size_t needed_bytes(ledger_view& view,
                                         range_list wanted,
                                         std::size_t missing_bytes) const override;
  void bring_without_room(ledger_view& view, arrival_request const& request) override;
};

}  // namespace rmm_uvm
