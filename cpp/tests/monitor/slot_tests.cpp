// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_levels.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/monitor/slot.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace rmm_uvm::monitor {
namespace {

/** @brief A device of 1000 bytes, watched; everything is set by hand. */
class Slot : public testing::Test {
 protected:
  Slot()
  {
    memory->total_bytes = 1'000;
    memory->free_bytes  = 500;
  }

  [[nodiscard]] slot_settings settings() const { return {3, driver, memory, 900, 0.02, false}; }
  void move(std::uint64_t to_device, std::uint64_t to_host) const
  {
    driver->counted.host_to_device_bytes += to_device;
    driver->counted.device_to_host_bytes += to_host;
  }
  void ask_to_host(std::size_t bytes) const
  {
    static_cast<void>(driver->prefetch({4096, bytes}, location::host(), nullptr));
  }
  void fill_device() const { memory->free_bytes = 19; }  // less than 2 %

  std::shared_ptr<tests::recording_driver> driver   = std::make_shared<tests::recording_driver>();
  std::shared_ptr<tests::fake_memory_reader> memory = std::make_shared<tests::fake_memory_reader>();
  std::shared_ptr<tests::fake_levels> levels        = std::make_shared<tests::fake_levels>();
};

TEST_F(Slot, TotalsBeginWithTheFirstSample)
{
  move(7, 8);
  ask_to_host(9);
  slot watched{settings()};
  auto const first = watched.take(0);
  EXPECT_EQ(first.host_to_device_bytes + first.device_to_host_bytes + first.own_to_host_bytes, 0U);
  move(100, 10);
  ask_to_host(5);
  auto const second = watched.take(12);
  EXPECT_EQ(second.time_ns, 12U);
  EXPECT_EQ(second.device_id, 3);
  EXPECT_EQ(second.host_to_device_bytes, 100U);
  EXPECT_EQ(second.device_to_host_bytes, 10U);
  EXPECT_EQ(second.own_to_host_bytes, 5U);
  EXPECT_EQ(second.device_used_bytes, 500U);
  EXPECT_EQ(second.known, counters_known | device_known);
}

TEST_F(Slot, CountersThatAreResetCountOn)
{
  slot watched{settings()};
  move(50, 60);
  static_cast<void>(watched.take(0));
  move(1, 2);
  static_cast<void>(watched.take(1));
  driver->counted.host_to_device_bytes = 3;
  driver->counted.device_to_host_bytes = 4;
  auto const after                     = watched.take(2);
  EXPECT_EQ(after.host_to_device_bytes, 1U + 3U);
  EXPECT_EQ(after.device_to_host_bytes, 2U + 4U);
}

TEST_F(Slot, SourcesThatFailKeepTheirLastValuesAndLoseTheirBits)
{
  slot watched{settings()};
  watched.set_levels(levels);
  levels->managed_bytes = 300;
  static_cast<void>(watched.take(0));
  move(40, 0);
  EXPECT_EQ(watched.take(1).known,
            counters_known | footprint_known | device_known | resident_known);
  move(2, 0);
  driver->counted.state = availability::no("gone");
  memory->works         = false;
  auto const blind      = watched.take(2);
  EXPECT_EQ(blind.known, footprint_known);
  EXPECT_EQ(blind.host_to_device_bytes, 40U);
  EXPECT_EQ(blind.device_used_bytes, 500U);
  driver->counted.state = availability::yes();
  memory->works         = true;
  auto const again      = watched.take(3);
  EXPECT_EQ(again.host_to_device_bytes, 42U);
  EXPECT_EQ(again.known, counters_known | footprint_known | device_known | resident_known);
}

TEST_F(Slot, WithoutDriverAndReaderNothingIsKnown)
{
  slot watched{slot_settings{}};
  EXPECT_EQ(watched.take(0).known, 0U);
  EXPECT_FALSE(watched.request_faults().available);
}

TEST_F(Slot, DriverIsAskedForDeviceMemoryWhereThereIsNoReader)
{
  driver->level = {250, 1'000};
  auto asked    = settings();
  asked.memory  = nullptr;
  EXPECT_EQ(slot{asked}.take(0).device_used_bytes, 750U);
}

TEST_F(Slot, EvictedIsWhatLeavesAFullDeviceUnasked)
{
  slot watched{settings()};
  static_cast<void>(watched.take(0));
  move(0, 10);  // there was room at both ends: the CPU touched it
  EXPECT_EQ(watched.take(1).evicted_bytes_estimate, 0U);
  fill_device();
  move(0, 20);  // full at the end
  EXPECT_EQ(watched.take(2).evicted_bytes_estimate, 20U);
  memory->free_bytes = 500;
  move(0, 30);  // full at the beginning
  EXPECT_EQ(watched.take(3).evicted_bytes_estimate, 50U);
  move(0, 40);
  EXPECT_EQ(watched.take(4).evicted_bytes_estimate, 50U);
}

TEST_F(Slot, WhatWeAskedToLeaveIsNotEvictedWhenItLeavesLater)
{
  slot watched{settings()};
  fill_device();
  static_cast<void>(watched.take(0));
  ask_to_host(100);
  EXPECT_EQ(watched.take(1).evicted_bytes_estimate, 0U);
  move(0, 60);
  EXPECT_EQ(watched.take(2).evicted_bytes_estimate, 0U);
  move(0, 60);  // 40 of ours, 20 of others
  EXPECT_EQ(watched.take(3).evicted_bytes_estimate, 20U);
}

TEST_F(Slot, RequestsThatMovedNothingAreForgotten)
{
  slot watched{settings()};
  fill_device();
  static_cast<void>(watched.take(0));
  ask_to_host(100);  // of pages that are on the host already
  static_cast<void>(watched.take(1));
  static_cast<void>(watched.take(2));
  move(0, 50);
  EXPECT_EQ(watched.take(3).evicted_bytes_estimate, 50U);
}

TEST_F(Slot, NothingIsCalledEvictedWhereDeviceMemoryIsUnknown)
{
  memory->works = false;
  slot watched{settings()};
  static_cast<void>(watched.take(0));
  move(0, 50);
  EXPECT_EQ(watched.take(1).evicted_bytes_estimate, 0U);
}

TEST_F(Slot, ResidentIsManagedLessWhatLeftWithinWhatTheDeviceHolds)
{
  memory->free_bytes    = 0;
  levels->managed_bytes = 800;
  slot watched{settings()};
  watched.set_levels(levels);
  EXPECT_EQ(watched.take(0).resident_bytes, 800U);
  move(0, 300);
  EXPECT_EQ(watched.take(1).resident_bytes, 500U);
  move(100, 0);
  EXPECT_EQ(watched.take(2).resident_bytes, 600U);
  levels->discarded_bytes += 50;  // came back without a copy
  EXPECT_EQ(watched.take(3).resident_bytes, 650U);
  move(10'000, 0);  // came from the host for the first time: nothing was away
  EXPECT_EQ(watched.take(4).resident_bytes, 800U);
  move(0, 10'000);
  EXPECT_EQ(watched.take(5).resident_bytes, 0U);
  levels->managed_bytes = 100;  // what was away was freed with its memory
  static_cast<void>(watched.take(6));
  move(100, 0);
  EXPECT_EQ(watched.take(7).resident_bytes, 100U);
  levels->managed_bytes = 5'000;
  EXPECT_EQ(watched.take(8).resident_bytes, 900U);  // the managed capacity
  memory->free_bytes = 960;
  EXPECT_EQ(watched.take(9).resident_bytes, 40U);  // all that is in use at all
}

TEST_F(Slot, WhatLeftOfTheResourceBeforeIsNotMissingFromTheNext)
{
  memory->free_bytes    = 0;
  levels->managed_bytes = 800;
  slot watched{settings()};
  watched.set_levels(levels);
  static_cast<void>(watched.take(0));
  move(0, 300);
  EXPECT_EQ(watched.take(1).resident_bytes, 500U);
  watched.set_levels(levels);  // the same once more
  EXPECT_EQ(watched.take(2).resident_bytes, 500U);
  move(0, 200);  // the last that the old one loses
  auto const other     = std::make_shared<tests::fake_levels>();
  other->managed_bytes = 700;
  watched.set_levels(nullptr);
  watched.set_levels(other);
  EXPECT_EQ(watched.take(3).resident_bytes, 700U);
  move(0, 50);
  EXPECT_EQ(watched.take(4).resident_bytes, 650U);
  watched.set_levels(nullptr);
  watched.set_external(std::nullopt, 600);
  EXPECT_EQ(watched.take(5).resident_bytes, 600U);
}

TEST_F(Slot, ResidentIsTheDriversOwnWhereItTells)
{
  driver->resident_bytes = 77;
  slot watched{settings()};
  auto const found = watched.take(0);
  EXPECT_EQ(found.resident_bytes, 77U);
  EXPECT_EQ(found.known & (resident_known | resident_exact), resident_known | resident_exact);
}

TEST_F(Slot, LevelsOfANewResourceCountFromTheChange)
{
  levels->prefetched_bytes = 500;
  slot watched{settings()};
  watched.set_levels(levels);
  levels->prefetched_bytes = 510;
  driver->counted.state    = availability::no("not counted");
  EXPECT_EQ(watched.take(0).prefetched_bytes, 10U);
  auto const other        = std::make_shared<tests::fake_levels>();
  other->prefetched_bytes = 2'000;
  other->discarded_bytes  = 3'000;
  watched.set_levels(other);
  EXPECT_EQ(levels.use_count(), 1);
  other->prefetched_bytes = 2'001;
  other->discarded_bytes  = 3'002;
  auto const last         = watched.take(1);
  EXPECT_EQ(last.prefetched_bytes, 11U);
  EXPECT_EQ(last.discarded_bytes, 2U);
}

TEST_F(Slot, PrefetchedIsNoMoreThanCameInItsIntervalOrTheNext)
{
  slot watched{settings()};
  watched.set_levels(levels);
  static_cast<void>(watched.take(0));
  levels->prefetched_bytes += 100;
  move(70, 0);  // the rest was on the device, or comes later
  EXPECT_EQ(watched.take(1).prefetched_bytes, 70U);
  move(20, 0);
  EXPECT_EQ(watched.take(2).prefetched_bytes, 90U);
  move(500, 0);  // page faults
  EXPECT_EQ(watched.take(3).prefetched_bytes, 90U);
  levels->prefetched_bytes += 10;
  move(500, 0);
  EXPECT_EQ(watched.take(4).prefetched_bytes, 100U);
}

TEST_F(Slot, DiscardedIsNoMoreThanLayOnTheHost)
{
  levels->managed_bytes = 800;
  slot watched{settings()};
  watched.set_levels(levels);
  static_cast<void>(watched.take(0));
  levels->discarded_bytes += 100;  // nothing had left: there was nothing to copy
  EXPECT_EQ(watched.take(1).discarded_bytes, 0U);
  move(0, 300);
  levels->discarded_bytes += 100;
  EXPECT_EQ(watched.take(2).discarded_bytes, 100U);
  move(150, 0);
  levels->discarded_bytes += 100;  // 50 were still there
  EXPECT_EQ(watched.take(3).discarded_bytes, 150U);
  driver->resident_bytes = 77;  // also where the driver tells what is on the device
  move(0, 40);
  levels->discarded_bytes += 100;
  EXPECT_EQ(watched.take(4).discarded_bytes, 190U);
}

TEST_F(Slot, WaitsAddUpOverResourcesAndOverBudgetsThatCountAnew)
{
  levels->waited_ns = 500;
  slot watched{settings()};
  watched.set_levels(levels);
  levels->waited_ns = 800;
  EXPECT_EQ(watched.take(0).waited_ns, 300U);
  levels->waited_ns = 20;  // of another budget
  EXPECT_EQ(watched.take(1).waited_ns, 320U);
  auto const other = std::make_shared<tests::fake_levels>();
  other->waited_ns = 7'000;
  watched.set_levels(other);
  EXPECT_EQ(watched.take(2).waited_ns, 320U);
  other->waited_ns = 7'001;
  EXPECT_EQ(watched.take(3).waited_ns, 321U);
}

TEST_F(Slot, LevelsFromOutsideServeWhereThereIsNoResourceOfOurs)
{
  slot watched{settings()};
  watched.set_external(30, 40);
  auto const outside = watched.take(0);
  EXPECT_EQ(outside.footprint_bytes, 30U);
  EXPECT_EQ(outside.managed_bytes, 40U);
  EXPECT_NE(outside.known & footprint_known, 0U);
  levels->footprint_bytes = 1;
  watched.set_levels(levels);
  EXPECT_EQ(watched.take(1).footprint_bytes, 1U);
  watched.set_levels(nullptr);
  watched.set_external(std::nullopt, std::nullopt);
  EXPECT_EQ(watched.take(2).known & footprint_known, 0U);
}

TEST_F(Slot, FaultsAreAskedForOnceAndTakenBackOnce)
{
  auto asked   = settings();
  asked.faults = true;
  slot watched{asked};
  EXPECT_EQ(watched.take(0).known & faults_known, 0U);
  EXPECT_TRUE(watched.request_faults().available);
  EXPECT_TRUE(watched.request_faults().available);
  EXPECT_EQ(driver->counted.fault_requests, 1);
  static_cast<void>(watched.take(1));
  driver->counted.gpu_faults = 5;
  driver->counted.cpu_faults = 6;
  auto const counted         = watched.take(2);
  EXPECT_EQ(counted.gpu_faults, 5U);
  EXPECT_EQ(counted.cpu_faults, 6U);
  EXPECT_NE(counted.known & faults_known, 0U);
  watched.release_faults();
  watched.release_faults();
  EXPECT_EQ(driver->counted.fault_requests, 0);
  auto const later = watched.take(3);
  EXPECT_EQ(later.gpu_faults, 5U);
  EXPECT_EQ(later.known & faults_known, 0U);
}

TEST_F(Slot, FaultsThatAreRefusedSayWhy)
{
  driver->counted.faults = availability::no("not here");
  auto asked             = settings();
  asked.faults           = true;
  slot watched{asked};
  EXPECT_EQ(watched.request_faults().reason, "not here");
  EXPECT_EQ(slot{settings()}.request_faults().reason, "faults were not asked for");
}

}  // namespace
}  // namespace rmm_uvm::monitor
