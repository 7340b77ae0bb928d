// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Memory without a budget on the simulated device: what is decided costs in bytes.
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

class PrefetcherSimulated : public testing::Test {
 protected:
  /** @brief A device of `capacity` blocks and a managed slab of `slab` blocks on it. */
  void make(std::size_t capacity, std::size_t slab_blocks)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(capacity);
    device                = std::make_shared<sim::simulated_device>(config);
    residency = std::make_unique<rmm_uvm::managed_residency>(device, make_epoch_source(*device));
    ASSERT_TRUE(device->allocate_managed(blocks(slab_blocks), slab.address).ok());
    slab.bytes = blocks(slab_blocks);
    residency->on_slab(slab, nullptr, prefetch_mode::automatic);
  }
  [[nodiscard]] std::uint64_t to_device() const
  {
    return device->view().statistics().host_to_device_bytes;
  }

  std::shared_ptr<sim::simulated_device> device;
  std::unique_ptr<rmm_uvm::managed_residency> residency;
  memory_range slab;
};

TEST_F(PrefetcherSimulated, RecycledMemoryOnTheHostCostsTheTwoEdgeBlocksOnly)
{
  make(128, 32);
  ASSERT_TRUE(device->program().touch(slab, true).ok());
  ASSERT_TRUE(device->prefetch(slab, location::host(), nullptr).ok());
  auto const before = to_device();
  memory_range const allocation{slab.address + 256, blocks(20)};
  EXPECT_TRUE(residency->on_allocate(allocation, nullptr, prefetch_mode::automatic));
  EXPECT_EQ(to_device() - before, blocks(2));
  EXPECT_EQ(device->view().resident_bytes(allocation), allocation.bytes);
}

TEST_F(PrefetcherSimulated, AlwaysCopiesTheDeadBytesToo)
{
  make(128, 32);
  ASSERT_TRUE(device->program().touch(slab, true).ok());
  ASSERT_TRUE(device->prefetch(slab, location::host(), nullptr).ok());
  auto const before = to_device();
  EXPECT_TRUE(
    residency->on_allocate(block_range(slab.address, 1, 20), nullptr, prefetch_mode::always));
  EXPECT_EQ(to_device() - before, blocks(20));
}

TEST_F(PrefetcherSimulated, KernelOnASettledAllocationDoesNotFault)
{
  make(128, 32);
  ASSERT_TRUE(device->prefetch(slab, location::host(), nullptr).ok());
  memory_range const allocation{slab.address + 256, blocks(20)};
  EXPECT_TRUE(residency->on_allocate(allocation, nullptr, prefetch_mode::automatic));
  ASSERT_TRUE(device->program().touch(allocation, true).ok());
  EXPECT_EQ(device->view().statistics().gpu_fault_groups, 0U);
}

TEST_F(PrefetcherSimulated, DataThatFitMoveNothingAfterTheSlab)
{
  make(128, 32);
  auto const before = device->view().statistics().modelled_ns;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(residency->on_allocate(
      {slab.address + i * 256, blocks(3)}, nullptr, prefetch_mode::automatic));
  }
  EXPECT_EQ(device->view().statistics().modelled_ns, before);
}

TEST_F(PrefetcherSimulated, SlabOverCapacityEvictsNothing)
{
  make(128, 256);
  EXPECT_EQ(device->view().statistics().evicted_bytes, 0U);
  EXPECT_EQ(device->view().statistics().resident_bytes, blocks(128 - 8));  // headroom: a sixteenth
}

TEST_F(PrefetcherSimulated, AllocationPastTheEdgeIsMadeUsableByEvictingOthers)
{
  make(128, 256);
  ASSERT_TRUE(device->program().touch(block_range(slab.address, 0, 128), true).ok());
  auto const fresh = block_range(slab.address, 200, 10);
  EXPECT_TRUE(residency->on_allocate(fresh, nullptr, prefetch_mode::automatic));
  EXPECT_EQ(device->view().resident_bytes(fresh), fresh.bytes);
  EXPECT_EQ(device->view().statistics().evicted_bytes, fresh.bytes);
  EXPECT_EQ(to_device(), 0U);  // nothing dead was copied
}

}  // namespace
}  // namespace rmm_uvm
