// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/recording_driver.hpp"

#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using tests::fake_counters;
using tests::recording_driver;

TEST(CountedEpochs, StaysWhileNothingGoesToTheHost)
{
  fake_counters counters;
  counted_epochs epochs{counters};
  auto const first              = epochs.current();
  counters.host_to_device_bytes = 1 << 20;
  EXPECT_GE(first, 1U);
  EXPECT_EQ(epochs.current(), first);
}

TEST(CountedEpochs, EndsOnceForEachRiseSeen)
{
  fake_counters counters;
  counted_epochs epochs{counters};
  auto const first              = epochs.current();
  counters.device_to_host_bytes = 4096;
  EXPECT_EQ(epochs.current(), first + 1);
  EXPECT_EQ(epochs.current(), first + 1);
  counters.device_to_host_bytes = 4097;
  EXPECT_EQ(epochs.current(), first + 2);
}

TEST(CountedEpochs, IgnoresWhatMovedBeforeItWasMade)
{
  fake_counters counters;
  counters.device_to_host_bytes = 1 << 30;
  counted_epochs epochs{counters};
  EXPECT_EQ(epochs.current(), 1U);
}

class InferredEpochs : public testing::Test {
 protected:
  static constexpr std::int64_t period_ns     = 1'000;
  static constexpr std::size_t low_free_bytes = 1 << 20;

  recording_driver driver;
  std::int64_t now_ns{0};
  inferred_epochs epochs{driver, [this] { return now_ns; }, {period_ns, low_free_bytes}};
};

TEST_F(InferredEpochs, DoesNotLookBeforeThePeriodIsOver)
{
  driver.level.free_bytes = 0;
  now_ns                  = period_ns - 1;
  EXPECT_EQ(epochs.current(), 1U);
  EXPECT_TRUE(driver.take_calls().empty());
}

TEST_F(InferredEpochs, StaysWhileMemoryIsFree)
{
  driver.level.free_bytes = low_free_bytes;
  for (now_ns = 0; now_ns < 5 * period_ns; now_ns += period_ns) {
    EXPECT_EQ(epochs.current(), 1U);
  }
  EXPECT_EQ(driver.take_calls("memory").size(), 4U);
}

TEST_F(InferredEpochs, EndsWhenFreeMemoryIsLow)
{
  driver.level.free_bytes = low_free_bytes - 1;
  now_ns                  = period_ns;
  EXPECT_EQ(epochs.current(), 2U);
  EXPECT_EQ(epochs.current(), 2U);  // one look a period
  EXPECT_EQ(driver.take_calls("memory").size(), 1U);
  now_ns = 2 * period_ns;
  EXPECT_EQ(epochs.current(), 3U);
}

TEST_F(InferredEpochs, EndsWhenMemoryCannotBeRead)
{
  driver.answers["memory"] = {status_code::driver_error, 999, "cuMemGetInfo"};
  now_ns                   = period_ns;
  EXPECT_EQ(epochs.current(), 2U);
}

TEST(MakeEpochSource, CountsWhereCountersWork)
{
  recording_driver driver;
  auto const epochs                   = make_epoch_source(driver);
  auto const first                    = epochs->current();
  driver.counted.device_to_host_bytes = 1;
  EXPECT_EQ(epochs->current(), first + 1);
  EXPECT_TRUE(driver.take_calls("memory").empty());
}

TEST(MakeEpochSource, InfersWithoutCounters)
{
  recording_driver driver;
  driver.counted.state                = availability::no("no UVM tools");
  auto const epochs                   = make_epoch_source(driver);
  auto const first                    = epochs->current();
  driver.counted.device_to_host_bytes = 1;
  EXPECT_EQ(epochs->current(), first);
}

}  // namespace
}  // namespace rmm_uvm
