// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_busy.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rmm_uvm {
namespace {

constexpr busy_thresholds thresholds{0.6, 0.3};

[[nodiscard]] std::vector<neighbor_load> kernels(std::vector<double> const& fractions)
{
  std::vector<neighbor_load> loads;
  for (auto const each : fractions) {
    loads.push_back({each, std::nullopt, std::nullopt});
  }
  return loads;
}

TEST(NeighbourBusy, AboveTheUpperThresholdItBecomesBusyBelowTheLowerOneIdle)
{
  EXPECT_TRUE(is_busy(kernels({0.7, 0.9}), thresholds, false));
  EXPECT_FALSE(is_busy(kernels({0.2, 0.1}), thresholds, true));
}

TEST(NeighbourBusy, BetweenTheThresholdsNothingChanges)
{
  for (auto const was : {false, true}) {
    EXPECT_EQ(is_busy(kernels({0.6, 0.3, 0.5}), thresholds, was), was);
  }
}

TEST(NeighbourBusy, OneSampleThatDisagreesKeepsTheAnswer)
{
  EXPECT_FALSE(is_busy(kernels({0.9, 0.5, 0.9}), thresholds, false));
  EXPECT_TRUE(is_busy(kernels({0.1, 0.5, 0.1}), thresholds, true));
}

TEST(NeighbourBusy, WithoutSamplesOrWithOnesThatTellNothingNothingChanges)
{
  auto loads = kernels({0.9});
  loads.push_back({});
  for (auto const was : {false, true}) {
    EXPECT_EQ(is_busy({}, thresholds, was), was);
    EXPECT_EQ(is_busy(loads, thresholds, was), was);
  }
}

TEST(NeighbourBusy, BusyLinksCountAsKernelsDoAndMemoryDoesNot)
{
  EXPECT_EQ(load_fraction({0.1, 0.9, 0.7}), 0.7);
  EXPECT_EQ(load_fraction({std::nullopt, std::nullopt, 0.2}), 0.2);
  EXPECT_EQ(load_fraction({std::nullopt, 0.9, std::nullopt}), std::nullopt);
}

[[nodiscard]] neighbor_load carried(std::uint64_t sent, std::uint64_t received)
{
  neighbor_load load;
  load.links = {sent, received, 1000};
  return load;
}

TEST(TrafficOfOthers, OurOwnBytesAreTakenOffEachWay)
{
  neighbor_watch watch;
  watch.asked = {300, 100};
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(600, 700), watch).value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(600, 700), watch).value_or(-1), 0.7);
}

TEST(TrafficOfOthers, WhatWeAskedForIsLateByOneLookAndNotMore)
{
  neighbor_watch watch;
  watch.asked = {900, 0};
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(0, 200), watch).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(0, 800), watch).value_or(-1), 0.1);
  watch.asked = {900, 0};  // that never go: pages that were not there
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(0, 0), watch).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(0, 0), watch).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(fraction_of_others(carried(0, 800), watch).value_or(-1), 0.8);
}

TEST(TrafficOfOthers, WithoutBytesALookInWhichWeMovedTellsNothing)
{
  neighbor_watch watch;
  neighbor_load const load{std::nullopt, std::nullopt, 0.9};
  EXPECT_EQ(fraction_of_others(load, watch), 0.9);
  watch.asked = {0, 1};
  EXPECT_EQ(fraction_of_others(load, watch), std::nullopt);
  EXPECT_EQ(fraction_of_others(load, watch), 0.9);
  EXPECT_EQ(fraction_of_others({}, watch), std::nullopt);
}

TEST(NeighbourBusy, WithTheThresholdsThatAreNoneItNeverIs)
{
  EXPECT_FALSE(is_busy(kernels({1.0}), {}, false));
}

}  // namespace
}  // namespace rmm_uvm
