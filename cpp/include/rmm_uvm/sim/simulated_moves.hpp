// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/move_queue.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>

#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Windows of a simulated device; which pages of a block moved is not told. */
class simulated_moves final : public move_queue {
 public:
  /** @param answers of the device, which lives longer @throws std::bad_alloc */
  simulated_moves(node_gpu gpu, planned_answers& answers);
  ~simulated_moves() override;
  simulated_moves(simulated_moves const&)            = delete;
  simulated_moves& operator=(simulated_moves const&) = delete;
  simulated_moves(simulated_moves&&)                 = delete;
  simulated_moves& operator=(simulated_moves&&)      = delete;

  [[nodiscard]] availability begin() override;
  std::uint64_t end(std::vector<seen_move>& moves) override;

 private:
  void close() noexcept;

  node_gpu gpu_;
  planned_answers& answers_;
  simulated_window window_;  // with the node's mutex while it is open
};

}  // namespace rmm_uvm::sim
