// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_paths.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

constexpr std::uint64_t gb = 1'000'000'000;

TEST(NeighborPaths, BothWaysOfABurstEndTogether)
{
  link_rates const rates{50 * gb, 25 * gb, 200 * gb, 200 * gb};
  auto const staged = staged_fraction(rates);
  // 40 GB/s by way of the neighbour, 50 past it.
  EXPECT_NEAR(staged, 40.0 / 90.0, 1e-9);
  EXPECT_NEAR(staged / 40.0, (1 - staged) / 50.0, 1e-9);
}

TEST(NeighborPaths, PiecesThatGoByAreSpreadEvenly)
{
  link_rates const rates{50 * gb, 25 * gb, 200 * gb, 200 * gb};
  std::size_t staged = 0;
  for (std::size_t piece = 0; piece < 90; ++piece) {
    if (is_staged(piece, rates)) { ++staged; }
    EXPECT_NEAR(static_cast<double>(staged), static_cast<double>(piece + 1) * 4 / 9, 1.0);
  }
  EXPECT_EQ(staged, 40U);
}

TEST(NeighborPaths, WithoutMeasuredRatesNothingGoesThatWay)
{
  EXPECT_EQ(staged_fraction({0, 25 * gb, 200 * gb, 200 * gb}), 0.0);
  EXPECT_EQ(staged_fraction({50 * gb, 25 * gb, 0, 0}), 0.0);
  EXPECT_FALSE(is_staged(7, {}));
}

}  // namespace
}  // namespace rmm_uvm
