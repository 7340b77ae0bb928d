// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/simulated_calls.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::capacity_of;
using tests::take;

/** @brief A program without a device around it. */
class SimulatedProgram : public testing::Test {
 protected:
  node_gpu gpu_{std::make_shared<simulated_node>(simulated_node_config{}), 0, 5};
  planned_answers answers_;
  simulated_allocations allocations_{gpu_, false};
  migrating_threads threads_{0, true, true};
  simulated_program program_{gpu_, answers_, allocations_, threads_};

  [[nodiscard]] memory_range take(std::size_t bytes)
  {
    memory_range range{0, bytes};
    EXPECT_TRUE(allocations_.allocate_managed(gpu_.enter(), bytes, range.address).ok());
    return range;
  }
};

/** @brief Keeps the last touch. */
class last_touch final : public memory_observer {
 public:
  int device_id{-1};
  bool write{false};
  bool by_cpu{false};

  void allocated(int, memory_range, stream_handle) noexcept override {}
  void freed(int, memory_range, stream_handle) noexcept override {}
  void touched(int device, memory_range, bool writes, bool cpu) noexcept override
  {
    device_id = device;
    write     = writes;
    by_cpu    = cpu;
  }
};

TEST_F(SimulatedProgram, TellsItsObserverOfEveryValidTouch)
{
  auto const observer = std::make_shared<last_touch>();
  auto const range    = take(blocks(1));
  program_.observe(observer);
  EXPECT_EQ(program_.touch({4096, 1}, true).code, status_code::invalid_value);
  EXPECT_EQ(observer->device_id, -1);
  EXPECT_TRUE(program_.touch(range, true).ok());
  EXPECT_EQ(observer->device_id, 5);
  EXPECT_TRUE(observer->write);
  EXPECT_FALSE(observer->by_cpu);
  EXPECT_TRUE(program_.cpu_touch(range, false).ok());
  EXPECT_FALSE(observer->write);
  EXPECT_TRUE(observer->by_cpu);
}

TEST_F(SimulatedProgram, TakesTheTimeOfAKernelAndRefusesANegativeOne)
{
  EXPECT_EQ(program_.compute(-1).code, status_code::invalid_value);
  auto const before = gpu_.enter()->now_ns();
  EXPECT_TRUE(program_.compute(1'000).ok());
  EXPECT_GE(gpu_.enter()->now_ns(), before + 1'000);
}

TEST_F(SimulatedProgram, SetsTheThreadThatMigrates)
{
  program_.migrate_beside(true);
  EXPECT_EQ(threads_.lane_for(gpu_.enter(), {}, true), simulated_node::beside_lane);
  program_.migrate_beside(false);
  EXPECT_EQ(threads_.lane_for(gpu_.enter(), {}, true), 0U);
}

TEST(SimulatedProgramOfADevice, DeviceMemoryEvictsManagedMemory)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  std::uintptr_t address = 0;
  ASSERT_TRUE(device.program().allocate_device(blocks(3), address).ok());
  EXPECT_EQ(device.view().statistics().evicted_bytes, blocks(3));
  EXPECT_EQ(device.view().resident_bytes(range), blocks(1));
}

TEST(SimulatedProgramOfADevice, DeviceMemoryIsNeverEvicted)
{
  simulated_device device{capacity_of(4)};
  std::uintptr_t address = 0;
  ASSERT_TRUE(device.program().allocate_device(blocks(4), address).ok());
  auto const range = take(device, blocks(1));
  EXPECT_EQ(device.program().touch(range, true).code, status_code::out_of_memory);
  std::uintptr_t more = 0;
  EXPECT_EQ(device.program().allocate_device(1, more).code, status_code::out_of_memory);
  ASSERT_TRUE(device.program().free_device(address).ok());
  EXPECT_TRUE(device.program().touch(range, true).ok());
}

}  // namespace
}  // namespace rmm_uvm::sim
