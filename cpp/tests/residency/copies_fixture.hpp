// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace rmm_uvm::tests {

/** @brief Objects that are written once and then read, on a device that is larger than the budget.
 */
class CopiesOfTheHost : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 16;
  static constexpr std::size_t slab_blocks   = 96;
  static constexpr std::size_t objects       = 6;
  static constexpr std::size_t object_blocks = 4;

  void SetUp() override
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);  // a GPU that is larger than the budget
    config.backing        = true;
    device                = std::make_shared<sim::simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
    adviser = std::make_unique<memory_adviser>(device, ledger);
  }
  /** @brief Another device, whose page tables of the host cannot be read. */
  void lose_page_tables()
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);
    config.backing        = true;
    config.host_pages     = false;
    ledger.remove_slab(slab.address);
    device = std::make_shared<sim::simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
    adviser = std::make_unique<memory_adviser>(device, ledger);
  }
  void make(bool keep_copies = true)
  {
    manage(eviction_policy::lru, keep_copies);
    for (std::size_t number = 0; number < objects; ++number) {
      manager->on_allocate(object(number), nullptr);
      write(object(number), number);
      static_cast<void>(manager->evict(object(number)));
    }
  }
  void manage(eviction_policy policy, bool keep_copies = true)
  {
    auto settings        = residency_settings::of(blocks(budget_blocks));
    settings.policy      = policy;
    settings.background  = false;
    settings.keep_copies = keep_copies;
    manager = std::make_unique<residency_manager>(device, ledger, settings, adviser.get());
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count = 1) const
  {
    return block_range(slab.address, first, count);
  }
  [[nodiscard]] memory_range object(std::size_t number) const
  {
    return at(number * object_blocks, object_blocks);
  }
  /** @brief What a kernel does; the bytes are the test's own. */
  void write(memory_range range, std::size_t value)
  {
    ASSERT_TRUE(device->program().touch(range, true).ok());
    std::memset(reinterpret_cast<void*>(range.address), static_cast<int>(value), range.bytes);
  }
  void read(memory_range range, std::size_t value)
  {
    ASSERT_TRUE(device->program().touch(range, false).ok());
    auto const* const bytes = reinterpret_cast<unsigned char const*>(range.address);
    for (std::size_t each = 0; each < range.bytes; each += 4096) {
      ASSERT_EQ(bytes[each], value);
    }
  }
  void announce(memory_range range, bool only_read = true)
  {
    use_event const use{use_kind::touch, range, range.address, 0, only_read};
    manager->on_touch({&use, 1}, nullptr);
  }
  /** @brief Announces and reads each object. */
  void go_round(int rounds = 1)
  {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t number = 0; number < objects; ++number) {
        announce(object(number));
        read(object(number), number);
      }
    }
  }
  [[nodiscard]] std::uint64_t left() const
  {
    return device->counters().read().device_to_host_bytes;
  }
  [[nodiscard]] bool is_advised(memory_range block) const
  {
    auto const told = device->view().advised(block.address);
    return told.read_mostly || told.preferred != sim::block_policy::nowhere;
  }
  [[nodiscard]] std::size_t advised_blocks() const
  {
    std::size_t found = 0;
    for (std::size_t block = 0; block < slab_blocks; ++block) {
      found += is_advised(at(block)) ? 1 : 0;
    }
    return found;
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks)};
  residency_ledger ledger;
  std::unique_ptr<memory_adviser> adviser;
  std::unique_ptr<residency_manager> manager;
};

}  // namespace rmm_uvm::tests
