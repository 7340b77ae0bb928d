// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Counters are read while other threads ask for faults, wait and close; for the thread sanitizer.
#include "../support/counters_machine.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/cuda/process_counters.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm::cuda {
namespace {

using tests::counters_machine;
using tests::fake_system;
using tests::on_threads;

constexpr std::uint64_t rounds = 200;

TEST(KernelCountersThreads, AreReadWhileFaultsAreAskedForAndReleased)
{
  counters_machine here;
  auto const counters = here.open();
  ASSERT_TRUE(counters->available().available);
  on_threads(3, [&](std::size_t index) {
    if (index == 0) {
      for (std::uint64_t last = 0; last < rounds;) {
        auto const now = counters->read().gpu_faults;
        ASSERT_GE(now, last);
        last = now;
      }
      return;
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
      ASSERT_TRUE(counters->request_faults().available);
      here.system->fault(counters_machine::space, &counters_machine::gpu, 1);
      counters->release_faults();
    }
  });
  EXPECT_EQ(counters->read().gpu_faults, 2 * rounds);
}

TEST(ProcessCountersThreads, AreReadWaitedForAndClosedAtOnce)
{
  constexpr int pid = 200;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto const system = std::make_shared<fake_system>();
    system->open_uvm(pid, 7, 3);
    system->processes[pid].ended = round % 2 == 0;
    auto const opened            = process_counters::open({pid}, system);
    ASSERT_TRUE(opened.counters);
    system->migrate(3, counters_machine::gpu, 5, 0);
    on_threads(3, [&](std::size_t index) {
      if (index == 0) { EXPECT_EQ(opened.counters->read().host_to_device_bytes, 5U); }
      if (index == 1) { static_cast<void>(opened.counters->wait_exit(0)); }
      if (index == 2) { opened.counters->close(); }
    });
    EXPECT_EQ(system->held(), 0U);
    EXPECT_EQ(opened.counters->read().host_to_device_bytes, 5U);
  }
}

}  // namespace
}  // namespace rmm_uvm::cuda
