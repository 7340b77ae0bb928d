// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rmm_uvm::tests {

/** @brief Managed memory of a simulated device whose driver is told what memory is for. */
class AdvisedEviction : public testing::TestWithParam<bool> {
 protected:
  /** @brief A slab of 16 blocks, and with a budget one of 4; in the background, a thread moves. */
  void make(bool with_budget, bool background = false)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(32);
    device                = std::make_shared<sim::simulated_device>(config);
    residency = std::make_unique<rmm_uvm::managed_residency>(device, make_epoch_source(*device));
    if (with_budget) {
      auto settings       = residency_settings::of(blocks(4));
      settings.policy     = eviction_policy::fifo;
      settings.background = background;
      residency->start_budget(settings);
    }
    ASSERT_TRUE(device->allocate_managed(blocks(16), base).ok());
    residency->on_slab({base, blocks(16)}, nullptr, prefetch_mode::automatic);
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count) const
  {
    return block_range(base, first, count);
  }
  /** @brief Hands out memory, and a kernel writes it. */
  void allocate(std::size_t first, std::size_t count)
  {
    static_cast<void>(residency->on_allocate(at(first, count), nullptr, prefetch_mode::automatic));
    ASSERT_TRUE(device->program().touch(at(first, count), true).ok());
  }
  void touch(std::size_t first, std::size_t count)
  {
    tests::touch(*residency, at(first, count), nullptr);
  }
  [[nodiscard]] std::uint64_t to_host() const
  {
    return device->view().statistics().device_to_host_bytes;
  }
  [[nodiscard]] std::size_t on_device(std::size_t first, std::size_t count) const
  {
    return device->view().resident_bytes(at(first, count));
  }
  [[nodiscard]] bool reads_mostly(std::size_t block) const
  {
    return device->view().advised(at(block, 1).address).read_mostly;
  }

  std::shared_ptr<sim::simulated_device> device;
  std::unique_ptr<rmm_uvm::managed_residency> residency;
  std::uintptr_t base{0};
};

}  // namespace rmm_uvm::tests
