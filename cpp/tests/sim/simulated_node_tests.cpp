// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Several programs on one node: whose memory, counters and time are whose.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>
#include <rmm_uvm/sim/simulated_events.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

/** @brief A node with a device for each GPU. */
struct programs {
  explicit programs(simulated_node_config config, bool backing = false)
    : node{std::make_shared<simulated_node>(config)}
  {
    simulated_device_config features;
    features.backing = backing;
    for (unsigned gpu = 0; gpu < config.gpus; ++gpu) {
      devices.push_back(std::make_shared<simulated_device>(node, gpu, features));
    }
  }
  [[nodiscard]] static simulated_node_config of(unsigned gpus,
                                                std::size_t gpu_blocks,
                                                node_topology topology = node_topology::nvswitch)
  {
    simulated_node_config config;
    config.gpus           = gpus;
    config.topology       = topology;
    config.capacity_bytes = blocks(gpu_blocks);
    return config;
  }
  [[nodiscard]] memory_range touched(unsigned gpu, std::size_t count) const
  {
    memory_range range{0, blocks(count)};
    EXPECT_TRUE(devices[gpu]->allocate_managed(range.bytes, range.address).ok());
    EXPECT_TRUE(devices[gpu]->program().touch(range, true).ok());
    return range;
  }
  void send(unsigned from, memory_range range, int to) const
  {
    EXPECT_TRUE(devices[from]->prefetch(range, location::device(to), nullptr).ok());
  }

  std::shared_ptr<simulated_node> node;
  std::vector<std::shared_ptr<simulated_device>> devices;
};

class SimulatedNodeOf : public testing::TestWithParam<unsigned> {};

TEST_P(SimulatedNodeOf, EachProgramCanUseEveryOtherGpu)
{
  auto const gpus = GetParam();
  programs const all{programs::of(gpus, 4)};
  for (unsigned own = 0; own < gpus; ++own) {
    auto const range = all.touched(own, 2);
    for (unsigned other = 0; other < gpus; ++other) {
      if (other == own) { continue; }
      auto const there = location::device(static_cast<int>(other));
      ASSERT_TRUE(all.devices[own]->open_neighbor(there.device_id).available);
      all.send(own, range, there.device_id);
      EXPECT_EQ(all.devices[own]->view().resident_bytes(range, there), range.bytes);
      EXPECT_GE(all.devices[other]->view().statistics().lent_bytes, range.bytes);
    }
    EXPECT_TRUE(all.devices[own]->free_managed(range.address).ok());
    EXPECT_EQ(all.node->host_traffic(own, direction::to_host).bytes, 0U);
  }
  for (auto const& device : all.devices) {
    EXPECT_EQ(device->view().statistics().lent_bytes, 0U);
    EXPECT_EQ(device->view().statistics().resident_bytes, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SimulatedNodeOf, testing::Values(2U, 4U, 8U));

TEST(SimulatedNode, CountersTellOnlyOnesOwnMemory)
{
  programs const two{programs::of(2, 8)};
  auto const lent = two.touched(0, 4);
  two.send(0, lent, 1);
  auto const own    = two.touched(1, 8);  // takes back what the first one lends
  auto const first  = two.devices[0]->view().statistics();
  auto const second = two.devices[1]->view().statistics();
  EXPECT_EQ(two.devices[0]->view().resident_bytes(lent, location::host()), blocks(4));
  EXPECT_EQ(two.devices[1]->view().resident_bytes(own), blocks(8));
  EXPECT_EQ(first.device_to_host_bytes, blocks(4));
  EXPECT_EQ(first.evicted_bytes, blocks(4));
  EXPECT_EQ(two.devices[0]->counters().read().device_to_host_bytes, blocks(4));
  EXPECT_EQ(first.managed_bytes, blocks(4));
  EXPECT_EQ(second.device_to_host_bytes, 0U);
  EXPECT_EQ(second.managed_bytes, blocks(8));
  EXPECT_EQ(two.devices[1]->resident_managed_bytes(), blocks(8));
  EXPECT_EQ(two.devices[1]->view().statistics().lent_bytes, 0U);
}

TEST(SimulatedNode, CausesAreToldToWhoseMemoryMoves)
{
  programs const two{programs::of(2, 4)};
  simulated_events first{two.devices[0]};
  simulated_events second{two.devices[1]};
  ASSERT_TRUE(first.start().available);
  ASSERT_TRUE(second.start().available);
  auto const lent = two.touched(0, 4);
  two.send(0, lent, 1);
  ASSERT_TRUE(two.node->occupy(1, blocks(4)).ok());
  auto const evicted = static_cast<std::size_t>(migration_cause::eviction);
  EXPECT_EQ(first.read().device_to_host_bytes[evicted], blocks(4));
  EXPECT_EQ(second.read().device_to_host_bytes[evicted], 0U);
}

TEST(SimulatedNode, FreeMemoryOfANeighbourIsWhatItsProgramLeft)
{
  programs const two{programs::of(2, 8)};
  std::uintptr_t address = 0;
  ASSERT_TRUE(two.devices[1]->program().allocate_device(blocks(3), address).ok());
  static_cast<void>(two.touched(1, 2));
  device_memory memory{};
  ASSERT_TRUE(two.devices[0]->neighbor_memory(1, memory).ok());
  EXPECT_EQ(memory.free_bytes, blocks(3));
  EXPECT_EQ(memory.total_bytes, blocks(8));
  ASSERT_TRUE(two.devices[1]->program().free_device(address).ok());
  ASSERT_TRUE(two.devices[0]->neighbor_memory(1, memory).ok());
  EXPECT_EQ(memory.free_bytes, blocks(6));
}

TEST(SimulatedNode, MemoryOfAnotherProgramCannotBeNamed)
{
  programs const two{programs::of(2, 8)};
  auto const theirs = two.touched(1, 2);
  auto& device      = *two.devices[0];
  EXPECT_EQ(device.prefetch(theirs, location::device(0), nullptr).code, status_code::invalid_value);
  EXPECT_EQ(device.program().touch(theirs, true).code, status_code::invalid_value);
  EXPECT_EQ(device.free_managed(theirs.address).code, status_code::invalid_value);
  EXPECT_EQ(device.view().resident_bytes(theirs, location::device(1)), 0U);
  EXPECT_FALSE(device.view().find_memory(theirs.address).has_value());
  EXPECT_TRUE(two.devices[1]->view().find_memory(theirs.address).has_value());
}

TEST(SimulatedNode, ContentsAreKeptWhereverTheyGo)
{
  programs const four{programs::of(4, 4), true};
  auto const range = four.touched(2, 3);
  std::memset(reinterpret_cast<void*>(range.address), 7, range.bytes);
  four.send(2, range, 0);
  ASSERT_TRUE(four.node->occupy(0, blocks(4)).ok());
  four.send(2, range, 3);
  ASSERT_TRUE(four.devices[2]->program().touch(range, false).ok());
  std::vector<char> const same(range.bytes, 7);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(range.address), same.data(), range.bytes), 0);
}

TEST(SimulatedNode, ProgramThatEndsLeavesNothingBehind)
{
  programs two{programs::of(2, 8)};
  static_cast<void>(two.touched(1, 4));
  std::uintptr_t address = 0;
  ASSERT_TRUE(two.devices[1]->program().allocate_device(blocks(2), address).ok());
  two.devices[1].reset();
  device_memory memory{};
  ASSERT_TRUE(two.devices[0]->neighbor_memory(1, memory).ok());
  EXPECT_EQ(memory.free_bytes, blocks(8));
}

TEST(SimulatedNode, OccupiedMemoryIsBesideTheProgramsOwn)
{
  programs const two{programs::of(2, 8)};
  std::uintptr_t address = 0;
  ASSERT_TRUE(two.devices[1]->program().allocate_device(blocks(2), address).ok());
  ASSERT_TRUE(two.node->occupy(1, blocks(5)).ok());
  EXPECT_EQ(two.devices[1]->view().statistics().device_bytes, blocks(7));
  EXPECT_EQ(two.node->occupy(1, blocks(7)).code, status_code::out_of_memory);
  ASSERT_TRUE(two.node->occupy(1, 0).ok());
  EXPECT_EQ(two.devices[1]->view().statistics().device_bytes, blocks(2));
  EXPECT_EQ(two.node->occupy(2, 0).code, status_code::invalid_value);
}

TEST(SimulatedNode, HostMemoryIsSharedByAll)
{
  auto config       = programs::of(2, 4);
  config.host_bytes = blocks(4);
  programs const two{config};
  auto const first = two.touched(0, 3);
  ASSERT_TRUE(two.devices[0]->prefetch(first, location::host(), nullptr).ok());
  auto const second = two.touched(1, 3);
  EXPECT_EQ(two.devices[1]->prefetch(second, location::host(), nullptr).code,
            status_code::out_of_memory);
  EXPECT_EQ(two.devices[0]->view().statistics().host_page_bytes, blocks(3));
}

TEST(SimulatedNode, AdviceNamesGpusByTheirNumber)
{
  programs const two{programs::of(2, 8)};
  auto const range = two.touched(1, 1);
  ASSERT_TRUE(
    two.devices[1]->advise(range, memory_advice::preferred_location, location::device(0)).ok());
  EXPECT_EQ(two.devices[1]->view().advised(range.address).preferred, 0);
  EXPECT_EQ(two.devices[0]->view().advised(range.address).preferred, block_policy::nowhere);
}

TEST(SimulatedNode, TopologySaysWhoReachesWhom)
{
  programs const pairs{programs::of(4, 4, node_topology::pairs)};
  EXPECT_TRUE(pairs.devices[2]->open_neighbor(3).available);
  EXPECT_EQ(pairs.devices[1]->open_neighbor(2).reason,
            "GPUs 1 and 2 have no peer access: NVLink joins pairs (0 and 1, 2 and 3, ...) here");
  programs const pcie{programs::of(2, 4, node_topology::pcie)};
  EXPECT_EQ(pcie.devices[0]->open_neighbor(1).reason,
            "GPUs 0 and 1 have no peer access: they are joined by PCIe only");
  auto config                      = programs::of(2, 4);
  config.machine.peer_bytes_per_ns = 0;
  programs const without{config};
  EXPECT_EQ(without.devices[0]->open_neighbor(1).reason,
            "GPUs 0 and 1 have no peer access: the simulated machine has none");
}

TEST(SimulatedNode, WithoutPeerAccessPagesGoByWayOfTheHost)
{
  for (auto const topology : {node_topology::nvswitch, node_topology::pairs, node_topology::pcie}) {
    programs const four{programs::of(4, 4, topology)};
    auto const range = four.touched(0, 2);
    four.send(0, range, 2);
    auto const direct = topology == node_topology::nvswitch;
    EXPECT_EQ(four.node->peer_traffic(0, 2).bytes, direct ? blocks(2) : 0);
    EXPECT_EQ(four.node->host_traffic(0, direction::to_host).bytes, direct ? 0 : blocks(2));
    EXPECT_EQ(four.node->host_traffic(2, direction::to_device).bytes, direct ? 0 : blocks(2));
    EXPECT_EQ(four.node->host_traffic(1, direction::to_device).bytes, 0U);
  }
}

TEST(SimulatedNode, ValuesOutOfBoundsAreRefused)
{
  EXPECT_THROW(simulated_node{programs::of(0, 4)}, std::invalid_argument);
  EXPECT_THROW(simulated_node{programs::of(9, 4)}, std::invalid_argument);
  EXPECT_THROW(simulated_node{programs::of(2, 0)}, std::invalid_argument);
  auto config  = programs::of(2, 4);
  config.links = {0};
  EXPECT_THROW(simulated_node{config}, std::invalid_argument);
  config.links = {0, 2};
  EXPECT_THROW(simulated_node{config}, std::invalid_argument);
}

}  // namespace
}  // namespace rmm_uvm::sim
