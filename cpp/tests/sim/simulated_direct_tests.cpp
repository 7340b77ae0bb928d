// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Migrations of simulated devices past libcuda: what they move, whose time they take, and threads.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

class SimulatedDirect : public testing::Test {
 protected:
  static constexpr std::size_t count = 32;  ///< blocks of each range

  void SetUp() override { make({}); }
  void make(simulated_node_config config, bool direct = true, bool at_once = true)
  {
    config.capacity_bytes = blocks(4 * count);
    auto const node       = std::make_shared<simulated_node>(config);
    simulated_device_config features;
    features.direct_migration = direct;
    features.places_at_once   = at_once;
    device                    = std::make_unique<simulated_device>(node, 0, features);
    first                     = on_host();
    second                    = on_host();
  }
  [[nodiscard]] memory_range on_host()
  {
    memory_range range{0, blocks(count)};
    EXPECT_TRUE(device->allocate_managed(range.bytes, range.address).ok());
    EXPECT_TRUE(device->program().cpu_touch(range, true).ok());
    return range;
  }
  void migrate(memory_range range, location where)
  {
    EXPECT_TRUE(device->migrate(range, where).ok());
  }
  /** @brief Modelled time until a range has moved in pieces, by so many threads. */
  [[nodiscard]] double moving_ns(memory_range range,
                                 location where,
                                 std::size_t threads,
                                 std::size_t piece_blocks = 4)
  {
    auto const before = now();
    EXPECT_EQ(device->begin_together(threads), 1U);
    for (std::size_t at = 0; at < count; at += piece_blocks) {
      migrate(block_range(range.address, at, piece_blocks), where);
    }
    device->end_together();
    return now() - before;
  }
  /** @brief Modelled time until one range came from the host and one from the neighbour. */
  [[nodiscard]] double fetching_both_ns(std::size_t threads)
  {
    migrate(first, location::host());
    migrate(second, neighbour);
    auto const before = now();
    EXPECT_EQ(device->begin_together(threads), 1U);
    for (std::size_t at = 0; at < count; at += 4) {
      migrate(block_range(first.address, at, 4), here);
      migrate(block_range(second.address, at, 4), here);
    }
    device->end_together();
    return now() - before;
  }
  [[nodiscard]] double now() const
  {
    return static_cast<double>(device->view().statistics().modelled_ns);
  }

  static constexpr location here      = location::device(0);
  static constexpr location neighbour = location::device(1);
  std::unique_ptr<simulated_device> device;
  memory_range first;
  memory_range second;
};

TEST_F(SimulatedDirect, PagesGoWhereTheyAreSentAndCountAsTheyMove)
{
  for (auto const where : {here, neighbour, here, location::host()}) {
    EXPECT_TRUE(device->migrates_to(where));
    migrate(first, where);
    EXPECT_EQ(device->view().resident_bytes(first, where), first.bytes);
  }
  EXPECT_EQ(device->view().statistics().host_to_device_bytes, first.bytes);
  EXPECT_EQ(device->view().statistics().device_to_host_bytes, first.bytes);
  EXPECT_EQ(device->commands().prefetched_to_host_bytes, first.bytes);
}

TEST_F(SimulatedDirect, WhatCannotBeMovedIsRefusedAndMovesNothing)
{
  std::uintptr_t other = 0;
  ASSERT_TRUE(device->program().allocate_device(blocks(1), other).ok());
  auto const begun = now();
  EXPECT_EQ(device->migrate({other, blocks(1)}, location::host()).code, status_code::invalid_value);
  EXPECT_EQ(device->migrate({first.address, 0}, here).code, status_code::invalid_value);
  EXPECT_EQ(device->migrate({first.address, blocks(count + 1)}, here).code,
            status_code::invalid_value);
  EXPECT_EQ(device->migrate(first, location::device(7)).code, status_code::invalid_value);
  EXPECT_FALSE(device->migrates_to(location::device(7)));
  EXPECT_EQ(device->view().resident_bytes(first, location::host()), first.bytes);
  EXPECT_EQ(now(), begun);
}

TEST_F(SimulatedDirect, WithoutPeersNothingGoesToANeighbour)
{
  simulated_node_config config;
  config.topology = node_topology::pcie;
  make(config);
  EXPECT_FALSE(device->migrates_to(neighbour));
  EXPECT_EQ(device->migrate(first, neighbour).code, status_code::invalid_value);
  EXPECT_EQ(device->view().resident_bytes(first, location::host()), first.bytes);
  migrate(first, here);  // to itself, it does
}

TEST_F(SimulatedDirect, ADeviceMadeWithoutHasNone)
{
  make({}, false);
  EXPECT_FALSE(device->info().direct_migration.available);
  EXPECT_FALSE(device->migrates_to(location::host()));
  EXPECT_EQ(device->migrate(first, here).code, status_code::not_supported);
  EXPECT_EQ(device->begin_together(3), 3U);
  device->end_together();
}

TEST_F(SimulatedDirect, WhereNothingMigratesNothingDoesPastLibcuda)
{
  simulated_device_config config;
  config.capacity_bytes            = blocks(count);
  config.direct_migration          = true;
  config.concurrent_managed_access = false;
  simulated_device const without{config};
  EXPECT_FALSE(without.info().direct_migration.available);
}

TEST_F(SimulatedDirect, AFailureIsToldAndWhatWasMovedStays)
{
  migrate(first, here);
  device->answers().plan("migrate", {status_code::out_of_memory, 0, "migrate"}, 1);
  migrate(block_range(first.address, 0, 1), location::host());
  EXPECT_EQ(device->migrate(block_range(first.address, 1, 1), location::host()).code,
            status_code::out_of_memory);
  EXPECT_EQ(device->view().resident_bytes(first, location::host()), blocks(1));
}

TEST_F(SimulatedDirect, TheCallerWaits)
{
  auto const begun = now();
  migrate(first, here);
  auto const least = static_cast<double>(first.bytes) / machine_profile{}.to_device_bytes_per_ns;
  EXPECT_GT(now() - begun, least);
}

TEST_F(SimulatedDirect, WhatAThreadBesideMovesIsWaitedForWhereItIsUsed)
{
  auto const begun = now();
  device->program().migrate_beside(true);
  migrate(first, here);
  device->program().migrate_beside(false);
  EXPECT_EQ(now(), begun);
  auto const least = static_cast<double>(first.bytes) / machine_profile{}.to_device_bytes_per_ns;
  ASSERT_TRUE(device->program().touch(first, false).ok());
  EXPECT_GT(now() - begun, least);
}

TEST_F(SimulatedDirect, ThreadsFetchFasterUntilTheLinkIsFull)
{
  auto const one  = moving_ns(first, here, 1);
  auto const two  = moving_ns(second, here, 2);
  auto const full = static_cast<double>(second.bytes) / machine_profile{}.to_device_bytes_per_ns;
  EXPECT_GT(one / two, 1.3);  // measured: 1.46
  EXPECT_LT(one / two, 1.7);
  EXPECT_GT(two, full);
}

TEST_F(SimulatedDirect, OneThreadTakesAsLongAsOnAGpu)
{
  // benchmarks/results/migration_threads.json, an H200: alone and beside kernels.
  auto const piece_ns = [this](std::size_t piece_blocks) {
    migrate(first, location::host());
    return moving_ns(first, here, 1, piece_blocks) * static_cast<double>(piece_blocks) / count;
  };
  EXPECT_NEAR(piece_ns(1), 107e3, 5e3);
  EXPECT_NEAR(piece_ns(4), 247e3, 10e3);
  EXPECT_NEAR(piece_ns(16), 834e3, 60e3);
}

TEST_F(SimulatedDirect, ThreadsEvictLittleFaster)
{
  migrate(first, here);
  migrate(second, here);
  auto const one  = moving_ns(first, location::host(), 1);
  auto const four = moving_ns(second, location::host(), 4);
  EXPECT_GT(one / four, 1.2);  // measured: 1.33
  EXPECT_LT(one / four, 1.4);
}

TEST_F(SimulatedDirect, HostAndNeighbourBringTheirPartsAtOnce)
{
  EXPECT_LT(fetching_both_ns(4), 0.6 * fetching_both_ns(1));
}

TEST_F(SimulatedDirect, APlaceAfterTheOtherTakesWhatBothTake)
{
  auto const at_once = fetching_both_ns(4);
  migrate(first, location::host());
  migrate(second, neighbour);
  auto const both = moving_ns(first, here, 2) + moving_ns(second, here, 2);
  EXPECT_LT(at_once, 0.9 * both);
  make({}, true, false);
  EXPECT_NEAR(fetching_both_ns(4), both, 1e3);
  migrate(first, location::host());  // from one place alone all of them fetch
  auto const two = moving_ns(first, here, 2);
  make({});
  EXPECT_NEAR(two, moving_ns(first, here, 2), 1e3);
}

TEST_F(SimulatedDirect, WhoStagesAPieceMovesItOn)
{
  auto const before = now();
  EXPECT_EQ(device->begin_together(2), 1U);
  migrate(first, neighbour);
  migrate(first, here);  // no sooner than it is there
  device->end_together();
  auto const two = now() - before;
  migrate(first, location::host());
  auto const alone_from = now();
  migrate(first, neighbour);
  migrate(first, here);
  EXPECT_NEAR(two, now() - alone_from, 1);
}

TEST_F(SimulatedDirect, WithoutLanesOneFollowsTheOther)
{
  simulated_node_config config;
  config.beside = false;
  make(config);
  auto const one = moving_ns(first, here, 1);
  EXPECT_NEAR(moving_ns(second, here, 4), one, 1);
}

TEST_F(SimulatedDirect, EndingWhatWasNotBegunDoesNothing)
{
  device->end_together();
  auto const begun = now();
  migrate(first, here);
  EXPECT_GT(now(), begun);
}

}  // namespace
}  // namespace rmm_uvm::sim
