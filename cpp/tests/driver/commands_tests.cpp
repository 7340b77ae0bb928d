// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/recording_driver.hpp"
#include "../support/traffic_sums.hpp"

#include <rmm_uvm/driver/device_memory_reader.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace rmm_uvm {
namespace {

using tests::traffic_bytes;
using tests::traffic_sums;

constexpr std::size_t mib = std::size_t{1} << 20U;

[[nodiscard]] std::unique_ptr<sim::simulated_device> small_device()
{
  sim::simulated_device_config config;
  config.capacity_bytes = 64 * mib;
  return std::make_unique<sim::simulated_device>(config);
}

TEST(Commands, AreCountedByWhereBytesWereAskedToGo)
{
  auto const device      = small_device();
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(16 * mib, address).ok());
  std::array const parts{memory_range{address, 2 * mib}, memory_range{address + 4 * mib, 4 * mib}};
  EXPECT_EQ(device->commands().prefetched_to_device_bytes, 0U);
  ASSERT_TRUE(device->prefetch({address, 16 * mib}, location::device(0), nullptr).ok());
  ASSERT_TRUE(device->prefetch({address, 8 * mib}, location::host(), nullptr).ok());
  ASSERT_TRUE(device->discard(parts, nullptr).ok());
  ASSERT_TRUE(device->discard_and_prefetch(parts, location::host(), nullptr).ok());
  EXPECT_EQ(device->commands().prefetched_to_device_bytes, 16 * mib);
  EXPECT_EQ(device->commands().prefetched_to_host_bytes, 8 * mib);
  EXPECT_EQ(device->commands().discarded_bytes, 12 * mib);
}

TEST(Commands, ThatFailAreNotCounted)
{
  auto const device      = small_device();
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(16 * mib, address).ok());
  memory_range const range{address, 2 * mib};
  for (auto const* const call : {"prefetch", "discard", "discard_and_prefetch"}) {
    device->answers().plan(call, {status_code::driver_error, 1, call}, 0);
  }
  EXPECT_FALSE(device->prefetch(range, location::host(), nullptr).ok());
  EXPECT_FALSE(device->discard({&range, 1}, nullptr).ok());
  EXPECT_FALSE(device->discard_and_prefetch({&range, 1}, location::device(0), nullptr).ok());
  EXPECT_EQ(device->commands().prefetched_to_host_bytes, 0U);
  EXPECT_EQ(device->commands().discarded_bytes, 0U);
}

TEST(Traffic, OfADriverIsWhatItWasAskedFor)
{
  tests::recording_driver driver;
  auto const sums = std::make_shared<traffic_sums>();
  driver.traffic_observers().set_account(sums);
  memory_range const range{0, 8 * mib};
  ASSERT_TRUE(driver.prefetch(range, location::device(0), nullptr).ok());
  ASSERT_TRUE(driver.prefetch({0, 4 * mib}, location::host(), nullptr).ok());
  ASSERT_TRUE(driver.prefetch({0, 1 * mib}, location::device(1), nullptr).ok());  // a neighbour
  ASSERT_TRUE(driver.discard({&range, 1}, nullptr).ok());
  ASSERT_TRUE(driver.discard_and_prefetch({&range, 1}, location::host(), nullptr).ok());
  ASSERT_TRUE(driver.discard_and_prefetch({&range, 1}, location::device(0), nullptr).ok());
  driver.note_faulted({0, 2 * mib});
  EXPECT_EQ(sums->bytes,
            (traffic_bytes{{traffic::asked, 8 * mib},
                           {traffic::evicted, 5 * mib},
                           {traffic::dropped, 16 * mib},
                           {traffic::renewed, 8 * mib},
                           {traffic::faulted, 2 * mib}}));
  driver.traffic_observers().end_account(sums.get());
  ASSERT_TRUE(driver.prefetch(range, location::host(), nullptr).ok());
  EXPECT_EQ(sums->bytes[traffic::evicted], 5 * mib);
}

TEST(Traffic, OfASimulatedDeviceIsWhatMovedAndWhy)
{
  auto const device      = small_device();
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(96 * mib, address).ok());
  auto const sums = std::make_shared<traffic_sums>();
  device->traffic_observers().set_account(sums);
  auto& program = device->program();
  // Empty pages are not copied, and what is there already does not move.
  ASSERT_TRUE(device->prefetch({address, 4 * mib}, location::device(0), nullptr).ok());
  ASSERT_TRUE(program.touch({address, 4 * mib}, true).ok());
  EXPECT_TRUE(sums->bytes.empty());
  ASSERT_TRUE(program.cpu_touch({address, 4 * mib}, false).ok());
  ASSERT_TRUE(program.touch({address, 4 * mib}, false).ok());
  ASSERT_TRUE(device->prefetch({address, 2 * mib}, location::host(), nullptr).ok());
  ASSERT_TRUE(device->prefetch({address, 4 * mib}, location::device(0), nullptr).ok());
  device->note_faulted({address, 2 * mib});  // it was told
  EXPECT_EQ(sums->bytes,
            (traffic_bytes{{traffic::read_back, 4 * mib},
                           {traffic::faulted, 4 * mib},
                           {traffic::evicted, 2 * mib},
                           {traffic::brought, 2 * mib}}));
  // More than fits.
  ASSERT_TRUE(program.touch({address + 4 * mib, 92 * mib}, true).ok());
  EXPECT_EQ(sums->bytes[traffic::evicted], 34 * mib);
}

TEST(SimulatedFaults, AreCountedOnlyWhileAskedFor)
{
  auto const device      = small_device();
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(8 * mib, address).ok());
  auto const touch_both = [&](std::size_t block) {
    memory_range const range{address + block * 2 * mib, 2 * mib};
    ASSERT_TRUE(device->program().touch(range, true).ok());
    ASSERT_TRUE(device->program().cpu_touch(range, true).ok());
  };
  touch_both(0);
  EXPECT_EQ(device->counters().read().gpu_faults, 0U);
  ASSERT_TRUE(device->counters().request_faults().available);
  ASSERT_TRUE(device->counters().request_faults().available);
  touch_both(1);
  device->counters().release_faults();
  touch_both(2);
  device->counters().release_faults();
  touch_both(3);
  // Of 100 pages at a time, each with 2 % duplicates; 300 faults bring a whole block.
  EXPECT_EQ(device->counters().read().gpu_faults, 2 * 306U);
  EXPECT_EQ(device->counters().read().cpu_faults, 2 * 6U);  // 64, 64, 128, 256, 512, 1024 KiB
  EXPECT_EQ(device->view().statistics().gpu_faults, 4 * 306U);
  EXPECT_EQ(device->view().statistics().gpu_fault_groups, 4 * 3U);
}

TEST(SimulatedFaults, WithoutCountersAreRefused)
{
  sim::simulated_device_config config;
  config.counters = false;
  sim::simulated_device const device{config};
  EXPECT_FALSE(device.counters().request_faults().available);
}

TEST(DriverMemoryReader, ReadsWhatTheDriverSaysOrLeavesTheValueAlone)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  driver->level     = {3, 4};
  driver_memory_reader reader{driver};
  device_memory memory;
  ASSERT_TRUE(reader.read(memory));
  EXPECT_EQ(memory.free_bytes, 3U);
  EXPECT_EQ(memory.total_bytes, 4U);
  driver->level             = {7, 8};
  driver->answers["memory"] = {status_code::driver_error, 1, "memory"};
  EXPECT_FALSE(reader.read(memory));
  EXPECT_EQ(memory.free_bytes, 3U);
}

}  // namespace
}  // namespace rmm_uvm
