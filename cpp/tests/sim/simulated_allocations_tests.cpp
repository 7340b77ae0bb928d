// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_allocations.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

class SimulatedAllocations : public testing::Test {
 protected:
  node_gpu gpu_{std::make_shared<simulated_node>(simulated_node_config{}), 0, 3};
  simulated_allocations allocations_{gpu_, false};
};

TEST_F(SimulatedAllocations, AreFoundByEveryAddressInThem)
{
  auto const model       = gpu_.enter();
  std::uintptr_t managed = 0;
  std::uintptr_t device  = 0;
  ASSERT_TRUE(allocations_.allocate_managed(model, blocks(1), managed).ok());
  ASSERT_TRUE(allocations_.allocate_device(model, 1'000, device).ok());
  auto const first = allocations_.find(model, managed + 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->managed);
  EXPECT_FALSE(first->ipc_capable);
  EXPECT_EQ(first->base, managed);
  EXPECT_EQ(first->device_id, 3);
  auto const second = allocations_.find(model, device + 1'023);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->managed);
  EXPECT_TRUE(second->ipc_capable);
  EXPECT_EQ(second->bytes, 1'024U);  // as cudaMalloc rounds
  EXPECT_FALSE(allocations_.find(model, device + 1'024).has_value());
  EXPECT_TRUE(allocations_.free_managed(model, managed).ok());
  EXPECT_TRUE(allocations_.free_device(model, device).ok());
  EXPECT_FALSE(allocations_.find(model, managed).has_value());
  EXPECT_FALSE(allocations_.find(model, device).has_value());
}

TEST_F(SimulatedAllocations, AreFreedOnlyAsTheKindTheyAre)
{
  auto const model       = gpu_.enter();
  std::uintptr_t managed = 0;
  std::uintptr_t device  = 0;
  ASSERT_TRUE(allocations_.allocate_managed(model, blocks(1), managed).ok());
  ASSERT_TRUE(allocations_.allocate_device(model, blocks(1), device).ok());
  EXPECT_EQ(allocations_.free_device(model, managed).code, status_code::invalid_value);
  EXPECT_EQ(allocations_.free_managed(model, device).code, status_code::invalid_value);
}

TEST_F(SimulatedAllocations, HaveADescriptorIfTheyAreDeviceMemoryWithBacking)
{
  simulated_allocations backed{gpu_, true};
  auto const model       = gpu_.enter();
  std::uintptr_t managed = 0;
  std::uintptr_t device  = 0;
  std::uintptr_t without = 0;
  ASSERT_TRUE(backed.allocate_managed(model, blocks(1), managed).ok());
  ASSERT_TRUE(backed.allocate_device(model, blocks(1), device).ok());
  ASSERT_TRUE(allocations_.allocate_device(model, blocks(1), without).ok());
  EXPECT_GE(backed.descriptor(model, device), 0);
  EXPECT_EQ(backed.descriptor(model, managed), -1);
  EXPECT_EQ(allocations_.descriptor(model, without), -1);
}

TEST_F(SimulatedAllocations, AreAllFreedWhenTheProgramLeaves)
{
  auto const model       = gpu_.enter();
  auto const free        = model->free_bytes(0);
  std::uintptr_t address = 0;
  ASSERT_TRUE(allocations_.allocate_managed(model, blocks(2), address).ok());
  ASSERT_TRUE(model->prefetch({address, blocks(2)}, 0, 0).ok());
  ASSERT_TRUE(allocations_.allocate_device(model, blocks(1), address).ok());
  EXPECT_EQ(model->free_bytes(0), free - blocks(3));
  allocations_.leave(model);
  EXPECT_EQ(model->free_bytes(0), free);
  EXPECT_EQ(model->counters(0).managed_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::sim
