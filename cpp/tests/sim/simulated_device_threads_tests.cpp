// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

TEST(ConcurrentSimulatedDevice, BooksBalanceAfterThreadsThatEvictEachOther)
{
  simulated_device_config config;
  config.capacity_bytes = blocks(16);
  simulated_device device{config};
  std::atomic<int> failures{0};
  tests::on_threads(6, [&](std::size_t index) {
    for (int round = 0; round < 40; ++round) {
      memory_range range{0, blocks(1 + index)};
      failures += device.allocate_managed(range.bytes, range.address).ok() ? 0 : 1;
      failures += device.program().touch(range, true).ok() ? 0 : 1;
      failures += device.prefetch(range, location::host(), nullptr).ok() ? 0 : 1;
      failures += device.prefetch(range, location::device(0), nullptr).ok() ? 0 : 1;
      static_cast<void>(device.counters().read());
      static_cast<void>(device.view().statistics());
      failures += device.free_managed(range.address).ok() ? 0 : 1;
    }
  });
  EXPECT_EQ(failures, 0);
  auto const after = device.view().statistics();
  EXPECT_EQ(after.managed_bytes, 0U);
  EXPECT_EQ(after.resident_bytes, 0U);
  EXPECT_EQ(after.host_page_bytes, 0U);
  EXPECT_LE(after.peak_resident_bytes, blocks(16));
  EXPECT_EQ(after.device_to_host_bytes, device.counters().read().device_to_host_bytes);
}

TEST(ConcurrentSimulatedDevice, ProgramsOfANodeThatTakeEachOthersGpuBalanceTheirBooks)
{
  simulated_node_config config;
  config.gpus           = 4;
  config.capacity_bytes = blocks(8);
  auto const node       = std::make_shared<simulated_node>(config);
  std::atomic<int> failures{0};
  tests::on_threads(4, [&](std::size_t index) {
    simulated_device device{node, static_cast<unsigned>(index), {}};
    auto const other = location::device(static_cast<int>((index + 1) % 4));
    memory_range range{0, blocks(6)};
    failures += device.allocate_managed(range.bytes, range.address).ok() ? 0 : 1;
    for (int round = 0; round < 40; ++round) {
      failures += device.program().touch(range, true).ok() ? 0 : 1;
      failures += device.prefetch(range, other, nullptr).ok() ? 0 : 1;
      failures += node->occupy(static_cast<unsigned>(index), blocks(round % 3)).ok() ? 0 : 1;
      static_cast<void>(device.counters().read());
      static_cast<void>(device.resident_managed_bytes());
      static_cast<void>(node->peer_traffic(0, 1));
      static_cast<void>(node->synchronize());
    }
    failures += node->occupy(static_cast<unsigned>(index), 0).ok() ? 0 : 1;
  });  // the devices go, and their memory with them
  EXPECT_EQ(failures, 0);
  for (unsigned gpu = 0; gpu < 4; ++gpu) {
    simulated_device const device{node, gpu, {}};
    EXPECT_EQ(device.view().statistics().managed_bytes, 0U);
    EXPECT_EQ(device.view().statistics().host_page_bytes, 0U);
    EXPECT_EQ(device.view().statistics().device_bytes, 0U);
    EXPECT_EQ(device.view().statistics().lent_bytes, 0U);
  }
}

TEST(ConcurrentSimulatedDevice, EveryPlannedAnswerIsGivenOnceToOneOfTheThreads)
{
  constexpr int each = 50;
  simulated_device device{simulated_device_config{}};
  std::atomic<int> met{0};
  tests::on_threads(6, [&](std::size_t) {
    for (int round = 0; round < each; ++round) {
      device.answers().plan("mark", failed(status_code::driver_error, "mark"), 0);
      met += device.mark(0, nullptr).ok() ? 0 : 1;
      device.answers().set_capture_state(&met, capture_state::capturing);
      static_cast<void>(device.capturing(&met));
    }
  });
  EXPECT_EQ(met, 6 * each);
  EXPECT_EQ(device.answers().cancel(), 0U);
}

}  // namespace
}  // namespace rmm_uvm::sim
