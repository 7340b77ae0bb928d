// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

class SimulatedNeighbours : public testing::Test {
 protected:
  static constexpr std::size_t device_blocks = 4;

  /** @brief A device of this ordinal among three. */
  [[nodiscard]] static simulated_device_config among_three(int device_id)
  {
    simulated_device_config config;
    config.capacity_bytes = blocks(device_blocks);
    config.device_id      = device_id;
    config.neighbors      = 2;
    return config;
  }
  [[nodiscard]] static memory_range touched(simulated_device& device)
  {
    memory_range range{0, blocks(device_blocks)};
    EXPECT_TRUE(device.allocate_managed(range.bytes, range.address).ok());
    EXPECT_TRUE(device.program().touch(range, true).ok());
    return range;
  }
  [[nodiscard]] static std::size_t free_bytes(simulated_device& device, int neighbour)
  {
    device_memory memory{};
    EXPECT_TRUE(device.neighbor_memory(neighbour, memory).ok());
    EXPECT_EQ(memory.total_bytes, blocks(device_blocks));
    return memory.free_bytes;
  }
};

TEST_F(SimulatedNeighbours, PagesGoToEachOfThemAndComeBack)
{
  for (auto const own : {0, 1, 2}) {
    simulated_device device{among_three(own)};
    auto const range = touched(device);
    for (auto const other : {0, 1, 2}) {
      if (other == own) { continue; }
      ASSERT_TRUE(device.open_neighbor(other).available);
      ASSERT_TRUE(device.prefetch(range, location::device(other), nullptr).ok());
      EXPECT_EQ(device.view().resident_bytes(range, location::device(other)), range.bytes);
      EXPECT_EQ(device.view().resident_bytes(range), 0U);
      EXPECT_EQ(free_bytes(device, other), 0U);
      EXPECT_EQ(device.view().statistics().device_to_host_bytes, 0U);
      ASSERT_TRUE(device.program().touch(range, false).ok());
      EXPECT_EQ(device.view().resident_bytes(range), range.bytes);
    }
  }
}

TEST_F(SimulatedNeighbours, LevelsAreThoseOfTheDeviceItself)
{
  simulated_device device{among_three(0)};
  auto const range = touched(device);
  ASSERT_TRUE(device.prefetch({range.address, blocks(1)}, location::device(1), nullptr).ok());
  auto const found = device.view().statistics();
  EXPECT_EQ(found.neighbor_bytes, blocks(1));
  EXPECT_EQ(found.peak_resident_bytes, blocks(device_blocks));
  EXPECT_EQ(device.resident_managed_bytes(), found.resident_bytes);
}

TEST_F(SimulatedNeighbours, OwnersOfANeighbourSendPagesToTheHost)
{
  simulated_device device{among_three(0)};
  auto const range = touched(device);
  ASSERT_TRUE(device.prefetch(range, location::device(1), nullptr).ok());
  ASSERT_TRUE(device.neighbors().occupy(1, blocks(3)).ok());
  EXPECT_EQ(device.view().resident_bytes(range, location::host()), blocks(3));
  EXPECT_EQ(device.view().statistics().device_bytes, 0U);  // theirs is not this device's
  ASSERT_TRUE(device.neighbors().occupy(1, 0).ok());
  EXPECT_EQ(free_bytes(device, 1), blocks(3));
  EXPECT_FALSE(device.neighbors().occupy(1, blocks(device_blocks + 1)).ok());
}

TEST_F(SimulatedNeighbours, PlacesThatAreNotThereAreRefused)
{
  simulated_device device{among_three(1)};
  auto const range = touched(device);
  device_memory memory{};
  for (auto const id : {-2, 1, 3}) {
    EXPECT_FALSE(device.open_neighbor(id).available) << id;
    EXPECT_FALSE(device.neighbor_memory(id, memory).ok()) << id;
    EXPECT_FALSE(device.neighbors().occupy(id, 0).ok()) << id;
  }
  EXPECT_EQ(device.open_neighbor(1).reason, "device 1 is the device itself");
  EXPECT_EQ(device.open_neighbor(3).reason,
            "device 3 does not exist: the simulated device has 2 neighbours");
  EXPECT_EQ(device.prefetch(range, location::device(3), nullptr).code, status_code::invalid_value);
  EXPECT_EQ(device.view().resident_bytes(range, location::device(3)), 0U);
}

TEST_F(SimulatedNeighbours, LoadIsWhatWasSet)
{
  simulated_device device{among_three(0)};
  neighbor_load load;
  EXPECT_EQ(device.read_neighbor_load(1, load).code, status_code::not_supported);
  ASSERT_TRUE(device.neighbors().set_load(1, {0.75, 0.5, std::nullopt}).ok());
  ASSERT_TRUE(device.read_neighbor_load(1, load).ok());
  EXPECT_EQ(load.kernel_fraction, 0.75);
  EXPECT_EQ(load.link_fraction, std::nullopt);
  EXPECT_EQ(device.read_neighbor_load(2, load).code, status_code::not_supported);
}

TEST_F(SimulatedNeighbours, LoadOfItselfIsWhatWasSet)
{
  simulated_device device{among_three(0)};
  neighbor_load load;
  EXPECT_EQ(device.read_neighbor_load(0, load).code, status_code::not_supported);
  ASSERT_TRUE(device.neighbors().set_load(0, {std::nullopt, std::nullopt, 0.5}).ok());
  ASSERT_TRUE(device.read_neighbor_load(0, load).ok());
  EXPECT_EQ(load.link_fraction, 0.5);
}

TEST_F(SimulatedNeighbours, LoadOfDevicesThatAreNotThereIsRefused)
{
  simulated_device device{among_three(0)};
  neighbor_load load;
  for (auto const id : {-1, 3}) {
    EXPECT_EQ(device.neighbors().set_load(id, load).code, status_code::invalid_value);
    EXPECT_EQ(device.read_neighbor_load(id, load).code, status_code::invalid_value);
  }
}

}  // namespace
}  // namespace rmm_uvm::sim
