// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/beside_advice.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Has kernels read on the host what of a request larger than the budget does not come.
 *
 * It has the driver map blocks, and writes that down in them. A mapping ends once the work that it
 * was for is done, or when its block comes to the device. Takes the ledger's lock, and gives it up
 * during calls, with the blocks marked busy.
 */
class host_mappings {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    residency_settings const& settings;
    budget_ledger& ledger;
    stream_marks& marks;
    beside_advice& advice;
  };
  explicit host_mappings(parts const& all) noexcept : with_{all} {}

  /**
   * @brief Maps what does not come of a request that is only read.
   * @param[in,out] wanted then only what comes
   */
  void map_rest(std::vector<memory_range>& wanted);
  /** @brief Ends the mappings whose work is done. */
  void end_of_done(ledger_view& view);
  /** @brief Ends all of them. */
  void end_all(ledger_view& view);
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  void end(ledger_view& view, use_tick until);

  parts with_;
  std::vector<memory_range> mapped_;  // some of their blocks may have come since
  std::uint64_t host_read_bytes_{0};
  std::uint64_t too_large_{0};
  std::size_t too_large_bytes_{0};
};

}  // namespace rmm_uvm
