// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rmm_uvm {
namespace {

TEST(Status, IsSuccessByDefault)
{
  status const result{};
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.native_error, 0);
  EXPECT_STREQ(result.call, "");
}

TEST(Status, IsNotOkForAnyOtherCode)
{
  for (auto const code : {status_code::out_of_memory,
                          status_code::invalid_value,
                          status_code::not_supported,
                          status_code::driver_error}) {
    EXPECT_FALSE((status{code, 1, "cuCall"}.ok())) << to_string(code);
  }
}

TEST(Status, NamesOfCodesAreDistinct)
{
  std::set<std::string> names;
  for (auto const code : {status_code::success,
                          status_code::out_of_memory,
                          status_code::invalid_value,
                          status_code::not_supported,
                          status_code::driver_error}) {
    names.insert(to_string(code));
  }
  EXPECT_EQ(names.size(), 5U);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Availability, CarriesAReasonOnlyWhenNotAvailable)
{
  EXPECT_TRUE(availability::yes().available);
  EXPECT_EQ(availability::yes().reason, "");
  auto const no = availability::no("no GPU");
  EXPECT_FALSE(no.available);
  EXPECT_EQ(no.reason, "no GPU");
}

TEST(Memory, BlockFloorAndCeilMeetOnABoundary)
{
  auto const boundary = 3 * va_block_bytes;
  EXPECT_EQ(va_block_floor(boundary), boundary);
  EXPECT_EQ(va_block_ceil(boundary), boundary);
  EXPECT_EQ(va_block_floor(boundary + 1), boundary);
  EXPECT_EQ(va_block_ceil(boundary + 1), boundary + va_block_bytes);
  EXPECT_EQ(va_block_floor(boundary - 1), boundary - va_block_bytes);
  EXPECT_EQ(va_block_ceil(boundary - 1), boundary);
}

TEST(Memory, LocationKnowsTheHost)
{
  EXPECT_TRUE(location::host().is_host());
  EXPECT_FALSE(location::device(0).is_host());
  EXPECT_EQ(location::device(3).device_id, 3);
}

}  // namespace
}  // namespace rmm_uvm
