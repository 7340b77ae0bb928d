// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_levels.hpp"
#include "../support/forked.hpp"
#include "../support/threads.hpp"
#include "../support/watching.hpp"

#include <rmm_uvm/monitor/sampler.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using namespace std::chrono_literals;
using tests::thread_count;

[[nodiscard]] std::shared_ptr<sim::simulated_device> small_device(int device_id)
{
  sim::simulated_device_config config;
  config.capacity_bytes = 8 * va_block_bytes;
  config.device_id      = device_id;
  return std::make_shared<sim::simulated_device>(config);
}

/** @brief Reads all there is, piece by piece; totals never fall, numbers never repeat. */
[[nodiscard]] bool reads_well(sampler const& from, std::uint64_t& since, sample& last)
{
  std::vector<sample> found(16);
  auto const got = from.read(since, found);
  if (got.first_sequence < since) { return false; }
  for (std::size_t i = 0; i < got.count; ++i) {
    if (found[i].device_id != 0) { continue; }
    if (found[i].time_ns < last.time_ns ||
        found[i].device_to_host_bytes < last.device_to_host_bytes) {
      return false;
    }
    last = found[i];
  }
  since = got.first_sequence + got.count;
  return true;
}

TEST(ConcurrentSampler, ReadersSwapsAndAProgramDoNotDisturbIt)
{
  auto const device = small_device(0);
  std::vector<slot_settings> slots(2);
  slots[0] = tests::watching(0, device, nullptr, true);
  slots[1] = tests::watching(1, small_device(1));
  sampler watched{slots, {50'000, 64, 30s}};
  watched.start();
  std::atomic<bool> well{true};
  tests::on_threads(thread_count, [&](std::size_t index) {
    std::uint64_t since = 0;
    sample last;
    std::uintptr_t address = 0;
    for (int round = 0; round < 200; ++round) {
      switch (index % 5) {  // readers, those that swap and those that sample are two each
        case 0:
          if (!reads_well(watched, since, last)) { well = false; }
          break;
        case 1: {
          auto const levels     = std::make_shared<tests::fake_levels>();
          levels->managed_bytes = static_cast<std::uint64_t>(round);
          static_cast<void>(watched.set_levels(0, round % 3 == 0 ? nullptr : levels));
          static_cast<void>(watched.set_external(1, round, std::nullopt));
          break;
        }
        case 2:
          if (!watched.sample_now()) { well = false; }
          static_cast<void>(watched.wait(watched.next_sequence(), 100us));
          break;
        case 3:
          if (!device->allocate_managed(12 * va_block_bytes, address).ok() ||
              !device->program().touch({address, 12 * va_block_bytes}, true).ok() ||
              !device->free_managed(address).ok()) {
            well = false;
          }
          break;
        default:
          static_cast<void>(watched.cost_ns());
          static_cast<void>(watched.faults(0));
          static_cast<void>(watched.running());
          if (round % 10 == 0 && !tests::in_child([&] { return watched.count(0) > 0; })) {
            well = false;
          }
      }
    }
  });
  watched.stop();
  EXPECT_TRUE(well);
  EXPECT_EQ(watched.count(0), 64U);
}

TEST(ConcurrentSampler, StartsAndStopsFromSeveralThreads)
{
  for (int round = 0; round < 20; ++round) {
    sampler watched{{tests::watching(0, small_device(0))}, {10'000, 16, 30s}};
    tests::on_threads(thread_count, [&](std::size_t index) {
      for (int i = 0; i < 5; ++i) {
        if ((index + static_cast<std::size_t>(i)) % 2 == 0) {
          watched.start();
        } else {
          watched.stop();
        }
      }
    });
    watched.start();
    EXPECT_TRUE(watched.wait(watched.next_sequence(), 30s));
  }  // goes while its thread runs
}

TEST(ConcurrentSampler, LevelsAreLetGoOutsideOfTheThread)
{
  sampler watched{{tests::watching(0, small_device(0))}, {1'000, 16, 30s}};
  watched.start();
  for (int round = 0; round < 500; ++round) {
    auto const levels = std::make_shared<tests::fake_levels>();
    static_cast<void>(watched.set_levels(0, levels));
    static_cast<void>(watched.set_levels(0, nullptr));
    ASSERT_EQ(levels.use_count(), 1);  // nobody else keeps it, not even for a moment
  }
}

}  // namespace
}  // namespace rmm_uvm::monitor
