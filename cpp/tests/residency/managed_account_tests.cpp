// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/managed_account.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

TEST(ManagedAccount, WithoutALimitTakesEverything)
{
  managed_account account;
  EXPECT_EQ(account.limit_bytes(), managed_account::unlimited);
  EXPECT_TRUE(account.try_reserve(managed_account::unlimited));
  EXPECT_FALSE(account.try_reserve(1));
}

TEST(ManagedAccount, TakesUpToTheLimitExactly)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(60));
  EXPECT_TRUE(account.try_reserve(40));
  EXPECT_EQ(account.used_bytes(), 100U);
}

TEST(ManagedAccount, RefusedRequestTakesNothing)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(60));
  EXPECT_FALSE(account.try_reserve(41));
  EXPECT_EQ(account.used_bytes(), 60U);
}

TEST(ManagedAccount, RequestThatWouldOverflowIsRefused)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(60));
  EXPECT_FALSE(account.try_reserve(managed_account::unlimited - 10));
  EXPECT_EQ(account.used_bytes(), 60U);
}

TEST(ManagedAccount, WhatAThreadGivesBackLetsItsRequestPassTheCapByAsMuch)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(90));
  {
    managed_account::giving_back const gives{40};
    EXPECT_FALSE(account.try_reserve(51));
    EXPECT_TRUE(account.try_reserve(5));
    EXPECT_EQ(gives.passed_bytes(), 0U);
    EXPECT_FALSE(managed_account::giving_back::any_passed());
    EXPECT_TRUE(account.try_reserve(45));
    EXPECT_EQ(gives.passed_bytes(), 40U);
    EXPECT_TRUE(managed_account::giving_back::any_passed());
    EXPECT_FALSE(account.try_reserve(1));
  }
  EXPECT_FALSE(managed_account::giving_back::any_passed());
  account.release(40);
  EXPECT_FALSE(account.try_reserve(1));
  EXPECT_EQ(account.used_bytes(), 100U);
}

TEST(ManagedAccount, ReleasedBytesCanBeTakenAgain)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(100));
  account.release(30);
  EXPECT_FALSE(account.try_reserve(31));
  EXPECT_TRUE(account.try_reserve(30));
}

TEST(ManagedAccount, LoweredLimitKeepsWhatWasTakenAndRefusesMore)
{
  managed_account account{100};
  EXPECT_TRUE(account.try_reserve(80));
  account.set_limit_bytes(50);
  EXPECT_EQ(account.used_bytes(), 80U);
  EXPECT_FALSE(account.try_reserve(1));
  EXPECT_FALSE(account.try_reserve(0));  // above the limit already
  account.release(40);
  EXPECT_TRUE(account.try_reserve(10));
}

}  // namespace
}  // namespace rmm_uvm
