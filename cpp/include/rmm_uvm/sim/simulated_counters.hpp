// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>

#include <utility>

namespace rmm_uvm::sim {

/**
 * @brief The seam's observations of a simulated device.
 *
 * It reads the node's account of the program, and adds fault requests and tallies to that account.
 * It moves no page. Thread-safe: `read` is a few loads; tallies change under the node's mutex.
 */
class simulated_counters final : public migration_counters {
 public:
  /**
   * @param counted whether the device has counters
   * @param migrates whether pages migrate on faults; otherwise `attach` answers with this
   */
  simulated_counters(node_gpu const& gpu,
                     planned_answers& answers,
                     bool counted,
                     availability migrates)
    : gpu_{gpu}, answers_{answers}, counted_{counted}, migrates_{std::move(migrates)}
  {
  }

  [[nodiscard]] availability available() const override;
  [[nodiscard]] migration_totals read() const noexcept override;
  [[nodiscard]] availability request_faults() const override;
  void release_faults() const noexcept override;

  /**
   * @brief Enters what moves from now on, and why, into `tally`, until `detach`.
   *
   * `simulated_events` is the seam's way to it.
   * @return not available where a GPU could not tell either: without counters, or where nothing
   *         migrates
   */
  [[nodiscard]] availability attach(migration_tally& tally) const;
  /** @brief Lets go of a tally; of one that is not attached, too. */
  void detach(migration_tally& tally) const noexcept;

 private:
  node_gpu const& gpu_;
  planned_answers& answers_;
  bool counted_;
  availability migrates_;
};

}  // namespace rmm_uvm::sim
