// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_transfers.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/address_space.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rmm_uvm::sim {

/**
 * @brief The table of everything that a program has allocated on its simulated device.
 *
 * It takes memory from the model and gives it back, and touches nothing else. The caller holds a
 * turn of the node and passes it in: the node's mutex is the only lock.
 */
class simulated_allocations {
 public:
  /** @param backing whether there are real bytes behind the addresses */
  simulated_allocations(node_gpu const& gpu, bool backing) noexcept : gpu_{gpu}, backing_{backing}
  {
  }

  [[nodiscard]] bool backing() const noexcept { return backing_; }

  /** @brief cudaMallocManaged. @throws std::bad_alloc, and has taken nothing */
  status allocate_managed(simulated_node::turn const& model,
                          std::size_t bytes,
                          std::uintptr_t& address);
  /** @brief cudaFree of it. */
  status free_managed(simulated_node::turn const& model, std::uintptr_t address) noexcept;
  /** @brief cudaMalloc. @throws std::bad_alloc, and has taken nothing */
  status allocate_device(simulated_node::turn const& model,
                         std::size_t bytes,
                         std::uintptr_t& address);
  /** @brief cudaFree of it. */
  status free_device(simulated_node::turn const& model, std::uintptr_t address) noexcept;
  /** @brief Frees every allocation, as the end of a process does. */
  void leave(simulated_node::turn const& model) noexcept;

  /** @brief Finds the allocation that an address is in. */
  [[nodiscard]] std::optional<memory_kind> find(simulated_node::turn const& model,
                                                std::uintptr_t address) const noexcept;
  /** @brief The descriptor of the bytes behind a cudaMalloc allocation, or -1 without backing. */
  [[nodiscard]] int descriptor(simulated_node::turn const& model,
                               std::uintptr_t base) const noexcept;

 private:
  struct device_allocation {
    std::size_t bytes{0};
    address_range addresses;
  };

  node_gpu const& gpu_;
  bool backing_;
  std::map<std::uintptr_t, address_range> managed_;
  std::map<std::uintptr_t, device_allocation> device_;
};

}  // namespace rmm_uvm::sim
