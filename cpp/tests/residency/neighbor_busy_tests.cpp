// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_busy.hpp>

#include <gtest/gtest.h>

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

TEST(NeighbourBusy, WithTheThresholdsThatAreNoneItNeverIs)
{
  EXPECT_FALSE(is_busy(kernels({1.0}), {}, false));
}

}  // namespace
}  // namespace rmm_uvm
