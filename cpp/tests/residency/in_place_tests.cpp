// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/in_place.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace rmm_uvm {
namespace {

constexpr std::uint64_t gb = 1'000'000'000;
constexpr link_rates nvlink{51 * gb, 24 * gb, 205 * gb, 205 * gb};

TEST(InPlace, WhatIsNeverUsedAgainIsReadWhereItLies)
{
  EXPECT_TRUE(cheaper_in_place({true, no_use, std::nullopt}, nvlink));
}

TEST(InPlace, WhatIsUsedAgainComesWhereThereIsRoom)
{
  EXPECT_FALSE(cheaper_in_place({true, 1000, std::nullopt}, nvlink));
}

TEST(InPlace, NothingLeavesThatIsNeededSooner)
{
  EXPECT_TRUE(cheaper_in_place({false, 10, 9}, nvlink));
  EXPECT_TRUE(cheaper_in_place({false, 10, 10}, nvlink));
  EXPECT_FALSE(cheaper_in_place({false, 10, 11}, nvlink));
  EXPECT_FALSE(cheaper_in_place({false, 10, no_use}, nvlink));
}

TEST(InPlace, WhatNothingIsKnownOfComes)
{
  EXPECT_FALSE(cheaper_in_place({true, std::nullopt, std::nullopt}, nvlink));
  EXPECT_FALSE(cheaper_in_place({false, std::nullopt, 1}, nvlink));
  EXPECT_FALSE(cheaper_in_place({false, 10, std::nullopt}, nvlink));
}

TEST(InPlace, WithoutMeasuredRatesEverythingComes)
{
  auto unknown                           = nvlink;
  unknown.from_neighbor_bytes_per_second = 0;
  EXPECT_FALSE(cheaper_in_place({true, no_use, std::nullopt}, unknown));
  EXPECT_FALSE(cheaper_in_place({false, 10, 9}, link_rates{}));
}

}  // namespace
}  // namespace rmm_uvm
