// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/link_measuring.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using sim::simulated_device;
using tests::blocks;

class LinkMeasuring : public testing::Test {
 protected:
  [[nodiscard]] static sim::simulated_device_config small()
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(16);
    config.neighbors      = 1;
    return config;
  }

  simulated_device device{small()};
  link_rates rates;
};

TEST_F(LinkMeasuring, UnderACapTakesWhatIsLeftAndGivesItBack)
{
  managed_account account{blocks(10)};
  ASSERT_TRUE(account.try_reserve(blocks(2)));
  EXPECT_TRUE(measure_links(device, account, 1, rates).ok());
  EXPECT_GT(rates.to_neighbor_bytes_per_second, 0U);
  EXPECT_EQ(account.used_bytes(), blocks(2));
}

TEST_F(LinkMeasuring, CapThatIsNearlyUsedUpIsAnsweredAndNothingTaken)
{
  managed_account account{blocks(10)};
  ASSERT_TRUE(account.try_reserve(blocks(7)));
  EXPECT_EQ(measure_links(device, account, 1, rates).code, status_code::out_of_memory);
  EXPECT_EQ(account.used_bytes(), blocks(7));
  EXPECT_EQ(rates, link_rates{});
}

TEST_F(LinkMeasuring, NeighbourWithoutRoomIsNotMeasuredInto)
{
  managed_account account;
  ASSERT_TRUE(device.neighbors().occupy(1, blocks(14)).ok());
  EXPECT_EQ(measure_links(device, account, 1, rates).code, status_code::out_of_memory);
  EXPECT_TRUE(measure_links(device, account, location::host_id, rates).ok());
}

TEST_F(LinkMeasuring, FailureOfTheDriverGivesTheCapBack)
{
  managed_account account;
  device.answers().plan("measure_links", {status_code::driver_error, 0, "injected"}, 0);
  EXPECT_EQ(measure_links(device, account, 1, rates).code, status_code::driver_error);
  EXPECT_EQ(account.used_bytes(), 0U);
}

}  // namespace
}  // namespace rmm_uvm
