// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The shared state of the residency layer under several threads; also run by the thread sanitizer.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/residency/budget/waited_time.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/live_allocations.hpp>
#include <rmm_uvm/residency/managed_account.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::on_threads;
using tests::slab_address;
using tests::thread_count;

constexpr int rounds = 2'000;

TEST(ConcurrentWaiting, IsNoMoreThanTheTimeThatWentBy)
{
  waited_time waited;
  auto const begun = std::chrono::steady_clock::now();
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds; ++round) {
      waited_time::scope const scope{waited, (index + static_cast<std::size_t>(round)) % 8 != 0};
    }
    waited_time::scope const scope{waited, true};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  });
  std::chrono::nanoseconds const told{waited.ns()};
  EXPECT_GE(told, std::chrono::milliseconds{50});
  EXPECT_LE(told, std::chrono::steady_clock::now() - begun);
}

TEST(ConcurrentSignal, EveryCallIsTaken)
{
  residency_ledger ledger;
  work_signal signal{true};
  std::uint64_t asked = 0;  // these two under the lock
  std::uint64_t taken = 0;
  std::atomic<bool> ended{false};
  std::thread worker{[&] {
    ledger_view view{ledger};
    while (!ended || signal.called()) {
      signal.wait(view.lock(), [&] { return ended.load(); });
      signal.take();
      taken = asked;
    }
  }};
  on_threads(thread_count, [&](std::size_t) {
    for (int round = 0; round < rounds; ++round) {
      bool first = false;
      {
        ledger_view const view{ledger};
        ++asked;
        first = signal.ask();
      }
      if (first) { signal.look(); }
    }
  });
  for (bool all = false; !all;) {  // without another call
    std::this_thread::yield();
    ledger_view const view{ledger};
    all = taken == asked;
  }
  {
    ledger_view const view{ledger};
    ended = true;
  }
  signal.look();
  worker.join();
  EXPECT_EQ(taken, thread_count * rounds);
}

TEST(ConcurrentAccount, NeverExceedsTheLimit)
{
  constexpr std::size_t limit = 1'000;
  managed_account account{limit};
  std::atomic<std::size_t> most{0};
  std::atomic<int> refused{0};
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds; ++round) {
      auto const bytes = 100 + index * 50;
      if (!account.try_reserve(bytes)) {
        ++refused;
        continue;
      }
      auto const used = account.used_bytes();
      auto seen       = most.load();
      while (used > seen && !most.compare_exchange_weak(seen, used)) {}
      account.release(bytes);
    }
  });
  EXPECT_LE(most, limit);
  EXPECT_EQ(account.used_bytes(), 0U);
}

TEST(ConcurrentAccount, HandsOutExactlyTheLimit)
{
  managed_account account{100};
  std::atomic<int> taken{0};
  on_threads(thread_count, [&](std::size_t) {
    for (int round = 0; round < rounds; ++round) {
      taken += account.try_reserve(1) ? 1 : 0;
    }
  });
  EXPECT_EQ(taken, 100);
  EXPECT_EQ(account.used_bytes(), 100U);
}

TEST(ConcurrentLiveAllocations, OneOfTwoFreesWins)
{
  live_allocations live;
  constexpr std::size_t count = 2'000;
  for (std::size_t i = 0; i < count; ++i) {
    live.insert(slab_address + i * 256, 64);
  }
  std::atomic<std::size_t> erased{0};
  on_threads(thread_count, [&](std::size_t) {
    for (std::size_t i = 0; i < count; ++i) {
      erased += live.erase(slab_address + i * 256, 64) ? 1 : 0;
    }
  });
  EXPECT_EQ(erased, count);
}

TEST(ConcurrentLiveAllocations, ThreadsWithAddressesOfTheirOwnLoseNone)
{
  live_allocations live;
  std::atomic<int> lost{0};
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds; ++round) {
      auto const address =
        slab_address + (static_cast<std::size_t>(round) * thread_count + index) * 256;
      live.insert(address, index + 1);
      lost += live.bytes_at(address) == index + 1 && live.erase(address, index + 1) ? 0 : 1;
    }
  });
  EXPECT_EQ(lost, 0);
}

TEST(ConcurrentEpochs, EndNoMoreOftenThanTheCounterRose)
{
  tests::fake_counters counters;
  counted_epochs epochs{counters};
  std::array<epoch_number, thread_count> last{};
  std::atomic<bool> fell{false};
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds; ++round) {
      if (index == 0 && round % 10 == 0) { ++counters.device_to_host_bytes; }
      auto const now = epochs.current();
      if (now < last[index]) { fell = true; }
      last[index] = now;
    }
  });
  EXPECT_FALSE(fell);
  EXPECT_GT(epochs.current(), 1U);
  EXPECT_LE(epochs.current(), 1U + rounds / 10);
}

TEST(ConcurrentLedger, SlabsOfSeveralThreadsEndUpSettled)
{
  residency_ledger ledger;
  on_threads(thread_count, [&](std::size_t index) {
    auto const mine = block_range(slab_address, index * 8, 8);
    for (int round = 1; round < rounds / 10; ++round) {
      ledger.add_slab(mine);
      ledger.mark_on_device(mine, static_cast<epoch_number>(round));
      static_cast<void>(ledger.doubtful_runs(mine, static_cast<epoch_number>(round)));
      static_cast<void>(ledger.all_on_device(static_cast<epoch_number>(round)));
      ledger.remove_slab(mine.address);
    }
    ledger.add_slab(mine);
    ledger.mark_on_device(mine, rounds);
  });
  EXPECT_EQ(ledger.slab_bytes(), thread_count * blocks(8));
  EXPECT_TRUE(ledger.all_on_device(rounds));
}

TEST(ConcurrentPrefetcher, CountsEveryRequestOnce)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  managed_residency residency{driver, make_epoch_source(*driver)};
  memory_range const slab = block_range(slab_address, 0, 32);
  residency.on_slab(slab, nullptr, prefetch_mode::automatic);
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds / 10; ++round) {
      if (round % 16 == 0) { ++driver->counted.device_to_host_bytes; }
      residency.on_allocate(
        block_range(slab_address, index * 4, 4), nullptr, prefetch_mode::automatic);
    }
  });
  auto const statistics = residency.statistics();
  auto const resident   = statistics.skipped[static_cast<std::size_t>(skip_reason::resident)];
  // Aligned allocations: each request is one discard or one skip.
  EXPECT_EQ(statistics.discard_calls + resident, thread_count * rounds / 10);
  EXPECT_EQ(statistics.discarded_bytes % va_block_bytes, 0U);
}

/** @brief A budget of six blocks for eight threads of four blocks each. */
[[nodiscard]] residency_settings six_blocks()
{
  auto settings   = residency_settings::of(blocks(6));
  settings.policy = eviction_policy::lru;
  settings.ahead  = true;
  return settings;
}

TEST(ConcurrentReuse, ThreadsThatFreeLoseNothingOfWhatOthersHaveLive)
{
  sim::simulated_device_config config;
  config.capacity_bytes = blocks(2 * thread_count * 4);
  config.backing        = true;
  auto const device     = std::make_shared<sim::simulated_device>(config);
  residency_ledger ledger;
  std::array<memory_range, thread_count> slabs{};
  for (auto& slab : slabs) {
    slab.bytes = blocks(4);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
  }
  residency_manager manager{device, ledger, six_blocks()};
  std::atomic<int> lost{0};
  on_threads(slabs.size(), [&](std::size_t index) {
    for (int round = 0; round < tests::rounds_of(rounds / 10); ++round) {
      auto const count = static_cast<std::size_t>(1 + round % 3);
      auto const range =
        block_range(slabs[index].address, static_cast<std::size_t>(round) % 2, count);
      auto const value = static_cast<unsigned char>(1 + round % 200);
      if (round % 5 == 0) { static_cast<void>(manager.confirm_present(nullptr)); }
      manager.on_reuse({range, range, round % 3 == 0 ? blocks(1) : 0}, nullptr);
      static_cast<void>(device->program().touch(range, true));
      for (std::size_t block = 0; block < count; ++block) {
        std::memset(reinterpret_cast<void*>(range.address + blocks(block)), value, 4096);
      }
      use_event const use{use_kind::touch, range, range.address};
      manager.on_touch({&use, 1}, nullptr);
      static_cast<void>(device->program().touch(range, true));
      for (std::size_t block = 0; block < count; ++block) {
        auto const* const found =
          reinterpret_cast<unsigned char const*>(range.address + blocks(block));
        lost += found[0] == value && found[4095] == value ? 0 : 1;
      }
      manager.on_free(range, nullptr, round % 7 != 0);
    }
  });
  manager.flush();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(manager.statistics().failed_calls, 0U);
  EXPECT_GT(manager.statistics().dropped_bytes, 0U);
}

TEST(ConcurrentReuse, EveryFreeIsFencedAndCountedOnce)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  residency_ledger ledger;
  ledger.add_slab(block_range(slab_address, 0, thread_count * 4));
  residency_manager manager{driver, ledger, six_blocks()};
  on_threads(thread_count, [&](std::size_t index) {
    auto const mine = block_range(slab_address, index * 4, 2);
    for (int round = 0; round < rounds / 10; ++round) {
      manager.on_reuse({mine, mine, 0}, nullptr);
      manager.on_free(mine, nullptr, round % 4 != 0);
    }
  });
  manager.flush();
  auto const frees             = tests::recording_driver::own(own_stream_use::frees);
  constexpr std::size_t fourth = thread_count * rounds / 10 / 4;  // of all frees
  EXPECT_EQ(manager.statistics().unfenced_frees, fourth);
  EXPECT_EQ(std::count_if(driver->orders.begin(),
                          driver->orders.end(),
                          [&](auto const& one) { return one.first == frees; }),
            3 * fourth);
  // A mark for each 8 blocks that are freed behind a fence.
  EXPECT_EQ(std::count_if(driver->marks.begin(),
                          driver->marks.end(),
                          [&](auto const& one) { return one.second == frees; }),
            3 * fourth * 2 / 8);
  ledger_view view{ledger};
  view.each([](block_record const& block, memory_range) { EXPECT_TRUE(block.dead()); });
}

}  // namespace
}  // namespace rmm_uvm
