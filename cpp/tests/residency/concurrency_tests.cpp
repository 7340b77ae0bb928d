// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The shared state of the residency layer under several threads; also run by the thread sanitizer.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/residency/live_allocations.hpp>
#include <rmm_uvm/residency/managed_account.hpp>
#include <rmm_uvm/residency/prefetcher.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::on_threads;
using tests::slab_address;

constexpr std::size_t thread_count = 8;
constexpr int rounds               = 2'000;

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
  prefetcher prefetcher{driver, make_epoch_source(*driver)};
  memory_range const slab = block_range(slab_address, 0, 32);
  prefetcher.on_slab(slab, nullptr, prefetch_mode::automatic);
  on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < rounds / 10; ++round) {
      if (round % 16 == 0) { ++driver->counted.device_to_host_bytes; }
      prefetcher.on_allocate(
        block_range(slab_address, index * 4, 4), nullptr, prefetch_mode::automatic);
    }
  });
  auto const statistics = prefetcher.statistics();
  auto const resident   = statistics.skipped[static_cast<std::size_t>(skip_reason::resident)];
  // Aligned allocations: each request is one discard or one skip.
  EXPECT_EQ(statistics.discard_calls + resident, thread_count * rounds / 10);
  EXPECT_EQ(statistics.discarded_bytes % va_block_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm
