// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "blocks.hpp"

#include <rmm_uvm/mr/managed_memory_resource.hpp>
#include <rmm_uvm/mr/simulated_cuda_memory_resource.hpp>
#include <rmm_uvm/mr/uvm_resource_adaptor.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <memory>

namespace rmm_uvm::tests {

/** @brief A simulated device with our chain over it: adaptor over managed memory, no pool between.
 */
struct simulated_chain {
  static constexpr std::size_t capacity_blocks = 256;  ///< of the device
  static constexpr std::size_t limit_blocks    = 512;  ///< of managed memory

  bool backing{false};  ///< real bytes behind the addresses
  std::shared_ptr<sim::simulated_device> device = [this] {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(capacity_blocks);
    config.backing        = backing;
    return std::make_shared<sim::simulated_device>(config);
  }();
  std::shared_ptr<rmm_uvm::managed_residency> residency =
    std::make_shared<rmm_uvm::managed_residency>(device, make_epoch_source(*device));
  std::shared_ptr<managed_account> account =
    std::make_shared<managed_account>(blocks(limit_blocks));
  mr::managed_memory_resource managed{residency, account, prefetch_mode::automatic};
  mr::uvm_resource_adaptor adaptor{managed, residency, prefetch_mode::automatic};
};

inline constexpr cuda::stream_ref default_stream{cudaStream_t{nullptr}};

}  // namespace rmm_uvm::tests
