// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Migrations past libcuda, on a kernel driver that the tests play.
#include "../support/counters_machine.hpp"
#include "../support/forked.hpp"

#include <rmm_uvm/cuda/direct_migration.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace rmm_uvm::cuda {
namespace {

using tests::counters_machine;
using tests::fake_system;

class DirectMigration : public testing::Test {
 protected:
  DirectMigration() { machine.driver.counted = machine.open(); }
  [[nodiscard]] opened_direct_migration open()
  {
    return direct_migration::open(machine.driver, machine.system);
  }
  void expect_none(std::string const& why)
  {
    auto const opened = open();
    EXPECT_EQ(opened.migration, nullptr);
    EXPECT_FALSE(opened.opened.available);
    EXPECT_NE(opened.opened.reason.find(why), std::string::npos) << opened.opened.reason;
    EXPECT_EQ(machine.driver.allocations, 0U);
  }

  counters_machine machine;
};

TEST_F(DirectMigration, OfAWorkingDriverPassesItsSelfTestOnTheDescriptorThatIsBound)
{
  auto const opened = open();
  ASSERT_TRUE(opened.opened.available) << opened.opened.reason;
  EXPECT_EQ(machine.driver.allocations, 0U);
}

TEST_F(DirectMigration, AsksForWholePagesAndNamesTheirDestination)
{
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  machine.system->migrations.clear();
  EXPECT_TRUE(opened.migration->migrate({0x10100, 0x2000}, location::host()).ok());
  EXPECT_TRUE(opened.migration->migrate({0x20000, 0x1000}, location::device(0)).ok());
  auto const& asked = machine.system->migrations;
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].base, 0x10000U);
  EXPECT_EQ(asked[0].length, 0x3000U);
  EXPECT_EQ(asked[0].destination, uvm_migrate::host);
  EXPECT_EQ(asked[0].flags, 0U);
  EXPECT_EQ(asked[0].cpu_numa_node, -1);
  EXPECT_EQ(asked[1].base, 0x20000U);
  EXPECT_EQ(asked[1].length, 0x1000U);
  EXPECT_EQ(asked[1].destination, counters_machine::gpu);
}

TEST_F(DirectMigration, InAForkedChildLeavesTheParentsMemoryWhereItIs)
{
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  machine.system->migrations.clear();
  EXPECT_TRUE(tests::in_child([&] {
    return opened.migration->migrate({0x10000, 0x1000}, location::host()).code ==
             status_code::driver_error &&
           machine.system->migrations.empty();
  }));
  EXPECT_TRUE(opened.migration->migrate({0x10000, 0x1000}, location::host()).ok());
  EXPECT_EQ(machine.system->migrations.size(), 1U);
}

TEST_F(DirectMigration, GoesToANeighbourThatPassedItsSelfTest)
{
  fake_system::uuid const other{7};
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  EXPECT_FALSE(opened.migration->reaches(location::device(1)));
  EXPECT_EQ(opened.migration->migrate({0x10000, 0x1000}, location::device(1)).code,
            status_code::invalid_value);
  ASSERT_TRUE(opened.migration->add(machine.driver, 1, other).available);
  EXPECT_TRUE(opened.migration->reaches(location::device(1)));
  machine.system->migrations.clear();
  EXPECT_TRUE(opened.migration->migrate({0x10000, 0x1000}, location::device(1)).ok());
  EXPECT_EQ(machine.system->migrations.at(0).destination, other);
  EXPECT_EQ(machine.driver.allocations, 0U);
}

TEST_F(DirectMigration, DoesNotGoToANeighbourThatPagesDoNotReach)
{
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  machine.system->neighbors_reached = false;
  auto const added                  = opened.migration->add(machine.driver, 1, {7});
  EXPECT_EQ(added.reason, "pages did not get to device 1");
  EXPECT_FALSE(opened.migration->reaches(location::device(1)));
  EXPECT_TRUE(opened.migration->reaches(location::host()));
  EXPECT_EQ(machine.driver.allocations, 0U);
}

TEST_F(DirectMigration, DoesNotGoToANeighbourOnTheWayToWhichContentsAreLost)
{
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  machine.system->migrations_lose = true;
  EXPECT_EQ(opened.migration->add(machine.driver, 1, {7}).reason, "the self-test lost contents");
  machine.system->migrations_lose = false;
  machine.system->migrate_status  = 0x56;
  EXPECT_NE(opened.migration->add(machine.driver, 1, {7}).reason.find("refused"),
            std::string::npos);
}

TEST_F(DirectMigration, ThatTheKernelDriverRefusesIsAStatusWithItsNumber)
{
  auto const opened = open();
  ASSERT_NE(opened.migration, nullptr);
  machine.system->migrate_status = 0x51;  // NV_ERR_NO_MEMORY
  auto const no_memory           = opened.migration->migrate({0x10000, 0x1000}, location::host());
  EXPECT_EQ(no_memory.code, status_code::out_of_memory);
  EXPECT_EQ(no_memory.native_error, 0x51);
  machine.system->migrate_status = 0x1F;
  auto const other               = opened.migration->migrate({0x10000, 0x1000}, location::host());
  EXPECT_EQ(other.code, status_code::driver_error);
  machine.system->answers["ioctl"] = EFAULT;
  auto const fault                 = opened.migration->migrate({0x10000, 0x1000}, location::host());
  EXPECT_EQ(fault.code, status_code::driver_error);
  EXPECT_EQ(fault.native_error, EFAULT);
}

TEST_F(DirectMigration, WithoutCountersCannotBeTestedAndIsNotUsed)
{
  machine.driver.counted = std::make_unique<no_counters>("switched off");
  expect_none("its self-test needs counters: switched off");
}

TEST_F(DirectMigration, ThatTheKernelDriverDoesNotKnowIsNotUsed)
{
  machine.system->migrate_status = 0x56;  // NV_ERR_NOT_SUPPORTED
  expect_none("refused");
}

TEST_F(DirectMigration, ThatMovesNothingIsNotUsed)
{
  machine.system->migrations_move = false;
  expect_none("0 and 0 moved");
}

TEST_F(DirectMigration, ThatLosesContentsIsNotUsed)
{
  machine.system->migrations_lose = true;
  expect_none("lost contents");
}

TEST_F(DirectMigration, InAProcessWithoutDescriptorsIsNotUsed)
{
  machine.system->processes[fake_system::own_pid].files.clear();
  expect_none("no /dev/nvidia-uvm descriptor");
}

TEST_F(DirectMigration, WhereDescriptorsCannotBeListedIsNotUsed)
{
  machine.system->answers["list_files"] = EACCES;
  expect_none("cannot be listed");
}

}  // namespace
}  // namespace rmm_uvm::cuda
