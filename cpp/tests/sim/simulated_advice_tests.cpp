// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Advice through the seam: it reaches the model, refuses what it must, and changes no contents.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

class SimulatedAdvice : public testing::Test {
 protected:
  void make(simulated_device_config config = {})
  {
    config.capacity_bytes = blocks(8);
    device                = std::make_unique<simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(blocks(4), address).ok());
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count) const
  {
    return block_range(address, first, count);
  }

  std::unique_ptr<simulated_device> device;
  std::uintptr_t address{0};
};

TEST_F(SimulatedAdvice, IsSetAndTakenBackForItsBlocksOnly)
{
  make();
  ASSERT_TRUE(device->advise(at(1, 2), memory_advice::read_mostly, location::host()).ok());
  auto const preferred = memory_advice::preferred_location;
  ASSERT_TRUE(device->advise(at(2, 1), preferred, location::host()).ok());
  ASSERT_TRUE(device->advise(at(3, 1), preferred, location::device(0)).ok());
  for (std::size_t block = 0; block < 4; ++block) {
    EXPECT_EQ(device->view().advised(at(block, 1).address).read_mostly, block == 1 || block == 2);
  }
  EXPECT_EQ(device->view().advised(at(1, 1).address).preferred, block_policy::nowhere);
  EXPECT_EQ(device->view().advised(at(2, 1).address).preferred, uvm_model::host);
  EXPECT_EQ(device->view().advised(at(3, 1).end() - 1).preferred, 0);
  ASSERT_TRUE(device->advise(at(0, 4), memory_advice::unset_read_mostly, {}).ok());
  ASSERT_TRUE(device->advise(at(0, 4), memory_advice::unset_preferred_location, {}).ok());
  for (std::size_t block = 0; block < 4; ++block) {
    EXPECT_FALSE(device->view().advised(at(block, 1).address).read_mostly);
    EXPECT_EQ(device->view().advised(at(block, 1).address).preferred, block_policy::nowhere);
  }
}

TEST_F(SimulatedAdvice, PrefetchOfWhatIsReadMostlyLeavesACopyWhereItWas)
{
  make();
  ASSERT_TRUE(device->program().touch(at(0, 4), true).ok());
  ASSERT_TRUE(device->advise(at(0, 2), memory_advice::read_mostly, {}).ok());
  ASSERT_TRUE(device->prefetch(at(0, 4), location::host(), nullptr).ok());
  EXPECT_EQ(device->view().resident_bytes(at(0, 2)), blocks(2));
  EXPECT_EQ(device->view().resident_bytes(at(2, 2)), 0U);  // the twin
  EXPECT_EQ(device->view().statistics().device_to_host_bytes, blocks(4));
}

TEST_F(SimulatedAdvice, ChangesNoContents)
{
  simulated_device_config config;
  config.backing = true;
  make(config);
  auto* const bytes = reinterpret_cast<unsigned char*>(address);
  std::memset(bytes, 0x5A, blocks(4));
  ASSERT_TRUE(device->program().cpu_touch(at(0, 4), true).ok());
  for (auto const what : {memory_advice::read_mostly,
                          memory_advice::preferred_location,
                          memory_advice::unset_read_mostly,
                          memory_advice::unset_preferred_location}) {
    ASSERT_TRUE(device->advise(at(0, 4), what, location::device(0)).ok());
    ASSERT_TRUE(device->program().touch(at(0, 4), false).ok());
    ASSERT_TRUE(device->prefetch(at(0, 4), location::host(), nullptr).ok());
    EXPECT_EQ(std::count(bytes, bytes + blocks(4), 0x5A), static_cast<long>(blocks(4)));
  }
}

TEST_F(SimulatedAdvice, OfForeignMemoryOrNoneIsRefused)
{
  make();
  auto const what = memory_advice::read_mostly;
  EXPECT_EQ(device->advise({4096, 4096}, what, {}).code, status_code::invalid_value);
  EXPECT_EQ(device->advise({address, 0}, what, {}).code, status_code::invalid_value);
  EXPECT_EQ(device->advise(at(3, 2), what, {}).code, status_code::invalid_value);
  EXPECT_FALSE(device->view().advised(at(3, 1).address).read_mostly);
  EXPECT_FALSE(device->view().advised(4096).read_mostly);
}

TEST_F(SimulatedAdvice, WithoutConcurrentAccessIsRefused)
{
  simulated_device_config config;
  config.concurrent_managed_access = false;
  make(config);
  EXPECT_EQ(device->advise(at(0, 1), memory_advice::read_mostly, {}).code,
            status_code::not_supported);
  EXPECT_FALSE(device->view().advised(address).read_mostly);
}

TEST_F(SimulatedAdvice, FailsWhereTheTestSaysSo)
{
  make();
  device->answers().plan("advise", {status_code::driver_error, 0, "injected"}, 1);
  EXPECT_TRUE(device->advise(at(0, 1), memory_advice::read_mostly, {}).ok());
  EXPECT_FALSE(device->advise(at(1, 1), memory_advice::read_mostly, {}).ok());
  EXPECT_FALSE(device->view().advised(at(1, 1).address).read_mostly);
}

TEST_F(SimulatedAdvice, GoesWithTheMemory)
{
  make();
  ASSERT_TRUE(device->advise(at(0, 4), memory_advice::read_mostly, {}).ok());
  ASSERT_TRUE(device->free_managed(address).ok());
  std::uintptr_t again = 0;
  ASSERT_TRUE(device->allocate_managed(blocks(4), again).ok());
  EXPECT_FALSE(device->view().advised(again).read_mostly);
}

}  // namespace
}  // namespace rmm_uvm::sim
