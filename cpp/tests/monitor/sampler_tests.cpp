// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_levels.hpp"
#include "../support/forked.hpp"
#include "../support/recording_driver.hpp"
#include "../support/watching.hpp"

#include <rmm_uvm/monitor/fake_clock.hpp>
#include <rmm_uvm/monitor/sampler.hpp>
#include <rmm_uvm/monitor/steady_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds patience = 30s;  // only a failing test takes it
constexpr std::uint64_t interval_ns         = 100;

class Sampler : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<sampler> make(std::size_t capacity = 1'000)
  {
    return std::make_unique<sampler>(std::vector{tests::watching(0, driver, memory)},
                                     sampler_settings{interval_ns, capacity, patience},
                                     clock);
  }
  [[nodiscard]] static std::vector<std::uint64_t> times(sampler const& from)
  {
    std::vector<sample> found(from.count(0));
    found.resize(from.read(0, found).count);
    std::vector<std::uint64_t> result;
    for (auto const& one : found) {
      result.push_back(one.time_ns);
    }
    return result;
  }

  std::shared_ptr<fake_clock> clock                 = std::make_shared<fake_clock>();
  std::shared_ptr<tests::recording_driver> driver   = std::make_shared<tests::recording_driver>();
  std::shared_ptr<tests::fake_memory_reader> memory = std::make_shared<tests::fake_memory_reader>();
};

using numbers = std::vector<std::uint64_t>;

TEST_F(Sampler, TakesOneSampleAtTheStartAndOneAnInterval)
{
  clock->advance(12'345);  // samples count from the sampler's begin
  auto const sampler = make();
  sampler->start();
  sampler->start();
  EXPECT_TRUE(sampler->running());
  for (std::uint64_t next = 1; next <= 20; ++next) {
    clock->advance(interval_ns);
    ASSERT_TRUE(sampler->wait(next, patience));
  }
  sampler->stop();
  sampler->stop();
  EXPECT_FALSE(sampler->running());
  auto const found = times(*sampler);
  ASSERT_EQ(found.size(), 21U);
  EXPECT_EQ(found.front(), 0U);
  EXPECT_EQ(found.back(), 20 * interval_ns);
}

TEST_F(Sampler, MissedDeadlinesAreSkippedOnTheSameGrid)
{
  auto const sampler = make();
  sampler->start();
  clock->advance(1'030);
  ASSERT_TRUE(sampler->wait(1, patience));
  clock->advance(69);
  clock->advance(1);
  ASSERT_TRUE(sampler->wait(2, patience));
  sampler->stop();
  EXPECT_EQ(times(*sampler), (numbers{0, 1'030, 1'100}));
}

TEST_F(Sampler, SamplesByHandNeedNoThread)
{
  auto const sampler = make(2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(sampler->sample_now());
    clock->advance(1);
  }
  EXPECT_EQ(times(*sampler), (numbers{3, 4}));
  EXPECT_EQ(sampler->next_sequence(), 5U);
  EXPECT_EQ(sampler->cost_ns(), 0U);
  EXPECT_FALSE(sampler->running());
}

TEST_F(Sampler, GoesOnAfterAStop)
{
  auto const sampler = make();
  sampler->start();
  sampler->stop();
  clock->advance(7);
  sampler->start();
  clock->advance(interval_ns);
  ASSERT_TRUE(sampler->wait(2, patience));
  sampler->stop();
  EXPECT_EQ(times(*sampler), (numbers{0, 7, 107}));
}

TEST_F(Sampler, OneClockServesTwoOfThem)
{
  auto const first  = make();
  auto const second = make();
  first->start();
  second->start();
  first->stop();
  clock->advance(interval_ns);
  EXPECT_TRUE(second->wait(1, patience));
  EXPECT_EQ(first->next_sequence(), 1U);
}

TEST_F(Sampler, WaitEndsWithTheTimeoutAndWithTheThread)
{
  auto const sampler = make();
  EXPECT_FALSE(sampler->wait(0, patience));  // nothing runs: nothing will come
  sampler->start();
  EXPECT_TRUE(sampler->wait(0, 0ns));
  EXPECT_FALSE(sampler->wait(1, 1ns));
  EXPECT_FALSE(sampler->wait(1, -1ns));
  bool taken = true;
  std::thread waiting{
    [&] { taken = sampler->wait(1, std::chrono::nanoseconds{std::numeric_limits<long>::max()}); }};
  sampler->stop();
  waiting.join();
  EXPECT_FALSE(taken);
}

TEST_F(Sampler, FaultsAreHeldFromStartToStop)
{
  auto const held = std::make_unique<sampler>(std::vector{tests::watching(0, driver, memory, true)},
                                              sampler_settings{interval_ns, 10, patience},
                                              clock);
  EXPECT_FALSE(held->faults(0).available);
  held->start();
  EXPECT_TRUE(held->faults(0).available);
  EXPECT_EQ(driver->counted.fault_requests, 1);
  held->stop();
  EXPECT_EQ(driver->counted.fault_requests, 0);
  EXPECT_EQ(held->faults(9).reason, "device 9 is not watched");
}

TEST_F(Sampler, DevicesThatAreNotWatchedAreNamed)
{
  auto const sampler = make();
  EXPECT_TRUE(sampler->set_levels(0, std::make_shared<tests::fake_levels>()));
  EXPECT_FALSE(sampler->set_levels(1, nullptr));
  EXPECT_TRUE(sampler->set_external(0, 1, 2));
  EXPECT_FALSE(sampler->set_external(1, 1, 2));
}

TEST_F(Sampler, IntervalAndCapacityOfZeroAreRefused)
{
  EXPECT_THROW((sampler{{}, {0, 1, patience}}), std::invalid_argument);
  EXPECT_THROW((sampler{{}, {1, 0, patience}}), std::invalid_argument);
}

TEST_F(Sampler, LongestIntervalNeverComes)
{
  sampler never{{slot_settings{}}, {std::numeric_limits<std::uint64_t>::max(), 2, patience}};
  never.start();
  never.stop();
  EXPECT_EQ(never.next_sequence(), 1U);
}

TEST_F(Sampler, DeviceThatHangsHoldsUpNobodyForEver)
{
  auto impatient =
    std::make_unique<sampler>(std::vector{tests::watching(0, driver, memory)},
                              sampler_settings{interval_ns, 10, std::chrono::milliseconds{20}},
                              clock);
  impatient->start();
  memory->hangs = true;
  clock->advance(interval_ns);
  while (impatient->sample_now()) {  // until the thread is the one that hangs
    clock->advance(interval_ns);     // again and again: its patience may be over before its turn
  }
  EXPECT_GT(impatient->count(0), 0U);                 // readers do not wait at all
  EXPECT_TRUE(tests::in_child([] { return true; }));  // nor a fork
  impatient->stop();
  EXPECT_FALSE(impatient->running());
  impatient.reset();  // the thread keeps what it needs
  memory->hangs = false;
  memory->hangs.notify_all();
  while (driver.use_count() > 1) {
    std::this_thread::yield();
  }
}

TEST(SteadyClock, SleepsUntilItsDeadlineAndNoLongerWhenCancelled)
{
  steady_clock clock;
  std::atomic<bool> cancelled{false};
  auto const deadline = clock.now_ns() + 1'000'000;
  EXPECT_TRUE(clock.sleep_until(deadline, cancelled));
  EXPECT_GE(clock.now_ns(), deadline);
  std::thread sleeper{
    [&] { EXPECT_FALSE(clock.sleep_until(std::numeric_limits<std::uint64_t>::max(), cancelled)); }};
  cancelled = true;
  clock.wake();
  sleeper.join();
}

}  // namespace
}  // namespace rmm_uvm::monitor
