// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What faults in beside a budget: the manager's estimate beside the simulated device, which knows.
#include "../support/blocks.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

class ResidencyOvershoot : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 8;
  static constexpr std::size_t slab_blocks   = 32;

  void make(bool fetch = true)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);  // a GPU that is larger than the budget
    config.host_pages     = false;                    // else it is found, and nothing is beside
    device                = std::make_shared<sim::simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = eviction_policy::lru;
    settings.fetch      = fetch;
    settings.background = false;
    manager             = std::make_unique<residency_manager>(device, ledger, settings);
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count) const
  {
    return block_range(slab.address, first, count);
  }
  void allocate(std::size_t first, std::size_t count)
  {
    manager->on_allocate(at(first, count), nullptr);
    kernel(first, count);
  }
  /** @brief Allocates the first `count` blocks, four at a time. */
  void allocate_all(std::size_t count)
  {
    for (std::size_t first = 0; first < count; first += 4) {
      allocate(first, 4);
    }
  }
  void announce(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), nullptr);
  }
  void kernel(std::size_t first, std::size_t count)
  {
    ASSERT_TRUE(device->program().touch(at(first, count), true).ok());
  }
  /** @brief Bytes on the device that the manager does not count. */
  [[nodiscard]] std::size_t truth() const
  {
    return device->view().resident_bytes(slab) - manager->statistics().resident_bytes;
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks)};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

TEST_F(ResidencyOvershoot, KernelsThatUseWhatIsAwayUnannouncedAreEstimatedExactly)
{
  make();
  allocate_all(24);  // 0 to 15 leave
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
  kernel(0, 3);
  EXPECT_EQ(truth(), blocks(3));
  EXPECT_EQ(manager->statistics().overshoot_bytes, blocks(3));
  EXPECT_EQ(manager->statistics().faulted_bytes, blocks(3));
}

TEST_F(ResidencyOvershoot, AnnouncedUsesLeaveNothingBeside)
{
  make();
  allocate_all(24);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t first = 0; first < 24; first += 4) {
      announce(first, 4);
      kernel(first, 4);
    }
  }
  auto const counts = manager->statistics();
  EXPECT_EQ(truth(), 0U);
  EXPECT_EQ(counts.overshoot_bytes, 0U);
  EXPECT_EQ(counts.peak_overshoot_bytes, 0U);
  EXPECT_EQ(counts.faulted_bytes, 0U);
  EXPECT_GT(counts.fetched_bytes, 0U);
}

TEST_F(ResidencyOvershoot, AnnouncedLaterItIsBesideNoMoreAndThePeakStays)
{
  make();
  allocate_all(24);
  kernel(0, 4);
  announce(0, 4);
  EXPECT_EQ(truth(), 0U);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
  EXPECT_EQ(manager->statistics().peak_overshoot_bytes, blocks(4));
}

TEST_F(ResidencyOvershoot, FreedAndHandedOutAnewItIsBesideNoMore)
{
  make();
  allocate_all(24);
  kernel(0, 16);
  EXPECT_EQ(manager->statistics().overshoot_bytes, blocks(16));
  for (std::size_t first = 0; first < 16; first += 4) {
    manager->on_free(at(first, 4), nullptr);
    allocate(first, 4);
  }
  EXPECT_EQ(truth(), 0U);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
}

TEST_F(ResidencyOvershoot, EstimateIsALowerOneWhereOthersAreHandedOutAnew)
{
  make();
  allocate_all(24);
  kernel(0, 4);
  manager->on_free(at(4, 4), nullptr);  // on the host: nobody knows which ones faulted in
  allocate(4, 4);
  EXPECT_EQ(truth(), blocks(4));
  EXPECT_LE(manager->statistics().overshoot_bytes, truth());
  EXPECT_EQ(manager->statistics().peak_overshoot_bytes, blocks(4));
}

TEST_F(ResidencyOvershoot, PeakIsSeenWithoutLookingAtStatistics)
{
  make();
  allocate_all(24);
  kernel(0, 4);
  announce(8, 4);  // the manager looks at the counters here
  announce(0, 4);
  EXPECT_EQ(manager->statistics().peak_overshoot_bytes, blocks(4));
}

TEST_F(ResidencyOvershoot, DataThatTheCpuTookAndAKernelTookBackAreNotBeside)
{
  make();
  allocate(0, 8);
  ASSERT_TRUE(device->program().cpu_touch(at(0, 4), false).ok());
  kernel(0, 4);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
  EXPECT_GT(manager->statistics().faulted_bytes, 0U);
}

TEST_F(ResidencyOvershoot, WhatFaultsInAndIsAnnouncedInEachRoundIsCountedInEach)
{
  make();
  allocate_all(24);
  std::uint64_t faulted = 0;
  for (int round = 0; round < 5; ++round) {
    for (std::size_t first = 0; first < 24; first += 4) {
      auto const away = blocks(4) - device->view().resident_bytes(at(first, 4));
      kernel(first, 4);
      faulted += away;
      for (int use = 0; use < 4; ++use) {  // the first is too late; then it is known to have come
        announce(first, 4);
        manager->run_pending();
      }
    }
  }
  EXPECT_GT(faulted, blocks(24));
  EXPECT_EQ(manager->statistics().faulted_bytes, faulted);
}

TEST_F(ResidencyOvershoot, WithoutFetchingAllThatComesIsFaultedAndOnlyTheUnannouncedBeside)
{
  make(false);
  allocate_all(24);
  announce(0, 4);
  kernel(0, 4);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
  kernel(4, 2);
  EXPECT_EQ(truth(), blocks(2));
  EXPECT_EQ(manager->statistics().overshoot_bytes, blocks(2));
  EXPECT_EQ(manager->statistics().faulted_bytes, blocks(6));
}

TEST_F(ResidencyOvershoot, SlabThatIsGivenBackLeavesNothingBeside)
{
  make();
  allocate_all(24);
  kernel(0, 4);
  manager->on_slab_free(slab);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
}

TEST_F(ResidencyOvershoot, RandomProgramsAreEstimatedExactlyWhileNothingIsFreed)
{
  make();
  allocate_all(slab_blocks);
  std::mt19937_64 random{5};
  for (int step = 0; step < 500; ++step) {
    auto const first = random() % slab_blocks;
    auto const count = 1 + random() % std::min<std::size_t>(4, slab_blocks - first);
    if (random() % 3 != 0) { announce(first, count); }
    kernel(first, count);
    ASSERT_EQ(manager->statistics().overshoot_bytes, truth()) << "step " << step;
  }
  EXPECT_GT(manager->statistics().peak_overshoot_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm
