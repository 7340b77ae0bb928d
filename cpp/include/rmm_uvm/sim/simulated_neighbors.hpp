// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/neighbor_load.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace rmm_uvm::sim {

/**
 * @brief The other GPUs of a simulated device's node, and the programs on them.
 *
 * It takes memory of neighbours for those programs, and touches nothing else. Thread-safe: it uses
 * the node's mutex.
 */
class simulated_neighbors {
 public:
  simulated_neighbors(node_gpu const& gpu, planned_answers& answers) noexcept
    : gpu_{gpu}, answers_{answers}
  {
  }

  /** @brief Programs on a neighbour hold so much cudaMalloc memory there from now on. */
  status occupy(int device_id, std::size_t bytes) noexcept;
  /**
   * @brief A neighbour, or the device itself, is so busy from now on; before, nothing tells.
   * @return invalid value: no such device
   */
  status set_load(int device_id, neighbor_load const& load) noexcept;

  /** @brief The seam's `device_count`. */
  [[nodiscard]] int device_count() const noexcept;
  /** @brief The seam's `open_neighbor`. */
  [[nodiscard]] availability open(int device_id) const;
  /** @brief The seam's `neighbor_uuid`. */
  status uuid(int device_id, std::array<std::uint8_t, 16>& uuid) const noexcept;
  /** @brief The seam's `neighbor_memory`. */
  status memory(int device_id, device_memory& memory) const noexcept;
  /** @brief The seam's `read_neighbor_load`. */
  status read_load(int device_id, neighbor_load& load) const noexcept;

 private:
  node_gpu const& gpu_;
  planned_answers& answers_;
  std::map<int, neighbor_load> loads_;  // those that were set
};

}  // namespace rmm_uvm::sim
