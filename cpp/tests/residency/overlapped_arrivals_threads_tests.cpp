// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is large comes in portions while others leave; also run by the thread sanitizer.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/threads.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::recording_driver;
using tests::slab_address;

[[nodiscard]] residency_settings settings_of(std::size_t budget_blocks)
{
  auto settings        = residency_settings::of(blocks(budget_blocks));
  settings.policy      = eviction_policy::lru;
  settings.piece_bytes = blocks(1);  // so that four blocks are a portion
  return settings;
}

/** @brief A budget of 16 blocks that are taken, and an array of 16 that is away. */
class OverlappedArrivals : public testing::Test {
 protected:
  void make()
  {
    driver->facts.direct_migration = availability::yes();
    auto settings                  = settings_of(16);
    settings.background            = false;
    ledger.add_slab({slab_address, blocks(64)});
    manager = std::make_unique<residency_manager>(driver, ledger, settings);
    manager->on_allocate(at(0, 16), nullptr);
    manager->on_allocate(at(16, 16), nullptr);
    static_cast<void>(driver->take_calls());
  }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count)
  {
    return block_range(slab_address, first, count);
  }
  /** @brief Where each migration of a use went, in the order of the calls. */
  [[nodiscard]] std::vector<int> places_of_a_use(memory_range range)
  {
    tests::touch(*manager, range, nullptr);
    std::vector<int> places;
    for (auto const& each : driver->take_calls("migrate")) {
      places.push_back(each.device_id);
      auto const moved = each.ranges.front();
      for (auto block = moved.address; each.device_id == 0 && block < moved.end();
           block += va_block_bytes) {
        came.insert(block);
      }
    }
    return places;
  }
  /** @return whether any came before the last one left */
  [[nodiscard]] static bool overlap(std::vector<int> const& places)
  {
    auto const came = std::find(places.begin(), places.end(), 0);
    return std::find(came, places.end(), location::host_id) != places.end();
  }

  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
  std::set<std::uintptr_t> came;
};

TEST_F(OverlappedArrivals, ComeWhileOthersLeave)
{
  make();
  auto const places = places_of_a_use(at(0, 16));
  EXPECT_TRUE(overlap(places));
  EXPECT_EQ(std::count(places.begin(), places.end(), location::host_id), 16);
  EXPECT_EQ(came.size(), 16U);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(16));
  EXPECT_EQ(manager->statistics().failed_calls, 0U);
}

TEST_F(OverlappedArrivals, AreOnlyLargeOnes)
{
  make();
  auto const places = places_of_a_use(at(0, 7));
  EXPECT_FALSE(overlap(places));
  EXPECT_EQ(came.size(), 7U);
}

TEST_F(OverlappedArrivals, NeedThreadsThatRun)
{
  driver->facts.threads_run = false;
  make();
  auto const places = places_of_a_use(at(0, 16));
  EXPECT_FALSE(overlap(places));
  EXPECT_EQ(came.size(), 16U);
}

TEST_F(OverlappedArrivals, LeaveWhatTheirRequestUses)
{
  make();
  static_cast<void>(places_of_a_use(at(0, 6)));  // its first portion is there now
  came.clear();
  static_cast<void>(places_of_a_use(at(0, 16)));
  EXPECT_EQ(came.size(), 10U);
  EXPECT_FALSE(came.contains(at(0, 1).address));
}

TEST_F(OverlappedArrivals, CountAFailureOnce)
{
  make();
  driver->fails_to            = 0;
  driver->answers["prefetch"] = {status_code::driver_error, 1, "prefetch"};
  static_cast<void>(places_of_a_use(at(0, 16)));
  EXPECT_GT(manager->statistics().failed_calls, 0U);
  driver->fails_to.reset();
  driver->answers.clear();
  manager->on_free(at(16, 16), nullptr);  // and nothing is busy for ever
  manager->on_free(at(0, 16), nullptr);
  EXPECT_EQ(manager->statistics().over_budget, 0U);
}

/** @brief Arrays of ten blocks over a budget of 24, with real bytes behind them. */
class LargeArrays {
 public:
  static constexpr std::size_t array_blocks = 10;
  static constexpr std::size_t arrays       = 8;

  explicit LargeArrays(bool keep_copies)
  {
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    ledger.add_slab(slab);
    auto settings        = settings_of(24);
    settings.policy      = eviction_policy::repeat;
    settings.background  = true;
    settings.keep_copies = keep_copies;
    manager              = std::make_unique<residency_manager>(device, ledger, settings);
  }
  [[nodiscard]] memory_range array(std::size_t number) const
  {
    return block_range(slab.address, number * array_blocks, array_blocks);
  }
  /** @brief One thread's uses of two arrays of its own. @return how often contents did not hold */
  [[nodiscard]] std::size_t use(std::size_t thread)
  {
    std::mt19937_64 random{100 + thread};
    std::vector<unsigned char> values(2, 0);
    std::size_t lost = 0;
    for (int step = 0; step < tests::rounds_of(60); ++step) {
      auto const which = random() % 2;
      auto const range = array(2 * thread + which);
      if (values[which] == 0) {
        manager->on_allocate(range, nullptr);
      } else {
        tests::touch(*manager, range, nullptr);
      }
      static_cast<void>(device->program().touch(range, true));
      auto* const bytes = reinterpret_cast<unsigned char*>(range.address);
      if (values[which] != 0) {
        bool const held =
          bytes[0] == values[which] && std::memcmp(bytes, bytes + 1, range.bytes - 1) == 0;
        lost += held ? 0 : 1;
      }
      values[which] = static_cast<unsigned char>(1 + random() % 200);
      std::memset(bytes, values[which], range.bytes);
      if (random() % 5 == 0) {
        manager->on_free(range, nullptr);
        values[which] = 0;
      }
    }
    return lost;
  }

  std::shared_ptr<sim::simulated_device> device{
    std::make_shared<sim::simulated_device>(configuration())};
  memory_range slab{0, blocks(arrays* array_blocks)};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;

 private:
  [[nodiscard]] static sim::simulated_device_config configuration()
  {
    sim::simulated_device_config config;
    config.capacity_bytes   = blocks(2 * arrays * array_blocks);
    config.backing          = true;
    config.direct_migration = true;
    config.threads_run      = true;
    return config;
  }
};

class ConcurrentOverlappedArrivals : public testing::TestWithParam<bool> {};

TEST_P(ConcurrentOverlappedArrivals, LoseNoByteAndKeepTheBudget)
{
  LargeArrays memory{GetParam()};
  std::atomic<std::size_t> lost{0};
  tests::on_threads(LargeArrays::arrays / 2,
                    [&](std::size_t thread) { lost += memory.use(thread); });
  memory.manager->flush();
  EXPECT_EQ(lost, 0U);
  auto const statistics = memory.manager->statistics();
  EXPECT_EQ(statistics.failed_calls, 0U);
  EXPECT_GT(statistics.fetched_bytes, 0U);
  EXPECT_LE(statistics.resident_bytes, blocks(24));
}

INSTANTIATE_TEST_SUITE_P(KeptCopies, ConcurrentOverlappedArrivals, testing::Bool());

}  // namespace
}  // namespace rmm_uvm
