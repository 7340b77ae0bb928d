// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_events.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

[[nodiscard]] std::shared_ptr<simulated_device> device_of(simulated_device_config config = {})
{
  config.capacity_bytes = blocks(4);
  return std::make_shared<simulated_device>(config);
}

[[nodiscard]] memory_range allocated(simulated_device& device, std::size_t bytes)
{
  memory_range range{0, bytes};
  EXPECT_TRUE(device.allocate_managed(bytes, range.address).ok());
  return range;
}

template <typename Array>
[[nodiscard]] std::uint64_t sum(Array const& by_cause)
{
  return std::accumulate(by_cause.begin(), by_cause.end(), std::uint64_t{0});
}

[[nodiscard]] std::size_t at(migration_cause cause) { return static_cast<std::size_t>(cause); }

TEST(SimulatedEvents, TellWhyPagesMoved)
{
  auto const device = device_of();
  simulated_events events{device};
  auto const range = allocated(*device, blocks(2));
  ASSERT_TRUE(events.start().available);
  ASSERT_TRUE(device->program().cpu_touch(range, true).ok());
  ASSERT_TRUE(device->prefetch(range, location::device(0), nullptr).ok());
  ASSERT_TRUE(device->prefetch(range, location::host(), nullptr).ok());
  ASSERT_TRUE(device->program().touch(range, true).ok());
  ASSERT_TRUE(device->program().cpu_touch({range.address, blocks(1)}, false).ok());
  auto const totals = events.read();
  EXPECT_EQ(totals.host_to_device_bytes[at(migration_cause::user)], blocks(2));
  // What faulted, and what the driver brought along: 300 faults a block here, 6 of the CPU.
  EXPECT_EQ(totals.host_to_device_bytes[at(migration_cause::coherence)], 600 * page_bytes);
  EXPECT_EQ(totals.host_to_device_bytes[at(migration_cause::prefetch)],
            blocks(2) - 600 * page_bytes);
  EXPECT_EQ(totals.device_to_host_bytes[at(migration_cause::user)], blocks(2));
  EXPECT_EQ(totals.device_to_host_bytes[at(migration_cause::coherence)], 6 * page_bytes);
  EXPECT_EQ(totals.device_to_host_bytes[at(migration_cause::prefetch)], blocks(1) - 6 * page_bytes);
  EXPECT_EQ(totals.gpu_fault_groups, device->view().statistics().gpu_fault_groups);
  EXPECT_EQ(totals.cpu_faults, device->view().statistics().cpu_faults);
}

TEST(SimulatedEvents, MakingRoomIsEvictionForManagedMemoryAndForCudaMalloc)
{
  auto const device = device_of();
  simulated_events events{device};
  ASSERT_TRUE(events.start().available);
  auto const first  = allocated(*device, blocks(4));
  auto const second = allocated(*device, blocks(1));
  ASSERT_TRUE(device->program().touch(first, true).ok());
  ASSERT_TRUE(device->program().touch(second, true).ok());
  std::uintptr_t fixed = 0;
  ASSERT_TRUE(device->program().allocate_device(blocks(1), fixed).ok());
  auto const totals = events.read();
  EXPECT_EQ(totals.device_to_host_bytes[at(migration_cause::eviction)], blocks(2));
  EXPECT_EQ(sum(totals.device_to_host_bytes), blocks(2));
  auto const found = events.busiest(10);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].address, first.address);
  EXPECT_EQ(found[0].device_to_host_bytes, blocks(1));
}

TEST(SimulatedEvents, NothingIsToldBeforeTheStartAndAfterTheStop)
{
  auto const device = device_of();
  simulated_events events{device};
  auto const range  = allocated(*device, blocks(1));
  auto const bounce = [&] {
    EXPECT_TRUE(device->program().cpu_touch(range, true).ok());
    EXPECT_TRUE(device->program().touch(range, true).ok());
  };
  bounce();
  EXPECT_EQ(sum(events.read().host_to_device_bytes), 0U);
  ASSERT_TRUE(events.start().available);
  ASSERT_TRUE(events.start().available);
  bounce();
  events.stop();
  events.stop();
  bounce();
  EXPECT_EQ(sum(events.read().host_to_device_bytes), blocks(1));
  ASSERT_TRUE(events.start().available);
  EXPECT_EQ(sum(events.read().host_to_device_bytes), 0U);
}

TEST(SimulatedEvents, AnyNumberMayWatchAndEachHasItsOwnStart)
{
  auto const device = device_of();
  simulated_events early{device};
  auto const range = allocated(*device, blocks(1));
  ASSERT_TRUE(early.start().available);
  ASSERT_TRUE(device->program().cpu_touch(range, true).ok());
  ASSERT_TRUE(device->program().touch(range, true).ok());
  {
    simulated_events late{device};
    ASSERT_TRUE(late.start().available);
    ASSERT_TRUE(device->program().cpu_touch(range, true).ok());
    EXPECT_EQ(sum(late.read().host_to_device_bytes), 0U);
    EXPECT_EQ(sum(late.read().device_to_host_bytes), blocks(1));
  }
  EXPECT_EQ(sum(early.read().device_to_host_bytes), blocks(1));
  EXPECT_TRUE(device->free_managed(range.address).ok());  // the one that went is not written to
}

TEST(SimulatedEvents, WhereAGpuCouldNotTellTheyDoNotStartAndSayWhy)
{
  simulated_device_config config;
  config.counters = false;
  simulated_events without_counters{device_of(config)};
  EXPECT_NE(without_counters.start().reason.find("without counters"), std::string::npos);
  config.counters                  = true;
  config.concurrent_managed_access = false;
  simulated_events without_access{device_of(config)};
  EXPECT_NE(without_access.start().reason.find("concurrent managed access"), std::string::npos);
}

TEST(SimulatedEvents, SumsAreTheCountersToTheByteInRandomPrograms)
{
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 generator{seed};
    auto const random = [&](std::size_t below) { return generator() % below; };
    auto const device = device_of();
    simulated_events events{device};
    std::vector<memory_range> live{allocated(*device, blocks(3)),
                                   allocated(*device, blocks(3) + 12'345)};
    migration_totals before{};
    for (int step = 0; step < 200; ++step) {
      if (step == 20) {
        ASSERT_TRUE(events.start().available);
        before = device->counters().read();
      }
      auto const& whole = live[random(live.size())];
      auto const begin  = random(whole.bytes);
      memory_range const part{whole.address + begin, 1 + random(whole.bytes - begin)};
      switch (random(6)) {
        case 0: static_cast<void>(device->program().touch(part, random(2) == 0)); break;
        case 1: static_cast<void>(device->program().cpu_touch(part, random(2) == 0)); break;
        case 2: static_cast<void>(device->prefetch(part, location::device(0), nullptr)); break;
        case 3: static_cast<void>(device->prefetch(part, location::host(), nullptr)); break;
        case 4: static_cast<void>(device->discard({&part, 1}, nullptr)); break;
        default:
          static_cast<void>(device->discard_and_prefetch({&part, 1}, location::device(0), nullptr));
      }
    }
    auto const after  = device->counters().read();
    auto const totals = events.read();
    ASSERT_EQ(sum(totals.host_to_device_bytes),
              after.host_to_device_bytes - before.host_to_device_bytes);
    ASSERT_EQ(sum(totals.device_to_host_bytes),
              after.device_to_host_bytes - before.device_to_host_bytes);
    std::uint64_t by_block = 0;
    for (auto const& block : events.busiest(100)) {
      by_block += block.host_to_device_bytes + block.device_to_host_bytes;
    }
    ASSERT_EQ(by_block, sum(totals.host_to_device_bytes) + sum(totals.device_to_host_bytes));
  }
}

}  // namespace
}  // namespace rmm_uvm::sim
