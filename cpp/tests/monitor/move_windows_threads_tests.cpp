// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_interpreter.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/monitor/move_windows.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace rmm_uvm::monitor {
namespace {

using namespace std::chrono_literals;

TEST(MoveWindowsThreads, WhileOthersAllocateFaultAndAskAreOpenedAndEnded)
{
  constexpr std::size_t workers = 4;
  tests::fake_interpreter python{true};
  auto const account =
    std::make_shared<line_account>(interpreter{[]() noexcept -> std::uintptr_t { return 0; },
                                               [](code_place, code_line&) { return false; },
                                               python.layout().value()});
  sim::simulated_device_config config;
  config.capacity_bytes = workers * va_block_bytes;
  config.tells_moves    = false;
  auto const device     = std::make_shared<sim::simulated_device>(config);
  device->traffic_observers().set_account(account);
  auto opened = device->open_moves();
  ASSERT_TRUE(opened.queue) << opened.opened.reason;
  move_windows windows{
    device,
    std::move(opened.queue),
    account,
    {.length_ns = 20'000, .look_ns = 10'000, .most_fraction = 0.5, .patience = 30s}};
  windows.start();
  auto const until = std::chrono::steady_clock::now() + 30s;
  tests::on_threads(workers + 1, [&](std::size_t worker) {
    for (int round = 0;
         round < tests::rounds_of(500) || (windows.totals().seen_bytes == 0 && worker < workers &&
                                           std::chrono::steady_clock::now() < until);
         ++round) {
      if (worker == workers) {
        static_cast<void>(account->report());
        windows.stop();
        windows.start();
        continue;
      }
      std::uintptr_t address = 0;
      ASSERT_TRUE(device->allocate_managed(va_block_bytes, address).ok());
      memory_range const block{address, va_block_bytes};
      account->allocated(0, block, nullptr);
      EXPECT_TRUE(device->program().cpu_touch(block, true).ok());
      EXPECT_TRUE(device->program().touch(block, true).ok());
      account->freed(0, block, nullptr);
      EXPECT_TRUE(device->free_managed(address).ok());
    }
  });
  windows.stop();
  auto const told = windows.totals();
  EXPECT_GT(told.seen_bytes, 0U);
  EXPECT_GE(told.faulted_bytes, told.seen_bytes);
  EXPECT_LE(told.faulted_bytes, device->counters().read().host_to_device_bytes);
  EXPECT_EQ(account->report().paths[0].moved.brought, 0U);
}

}  // namespace
}  // namespace rmm_uvm::monitor
