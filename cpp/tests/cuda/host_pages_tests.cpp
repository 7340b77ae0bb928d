// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Which pages lie on the host, on an operating system that the tests play.
#include "../support/counters_machine.hpp"

#include <rmm_uvm/cuda/host_pages.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::counters_machine;

class HostPages : public testing::Test {
 protected:
  HostPages() { machine.driver.counted = machine.open(); }
  [[nodiscard]] opened_host_pages open()
  {
    return host_pages::open(machine.driver, machine.system);
  }
  void expect_none(std::string const& why)
  {
    auto const opened = open();
    EXPECT_EQ(opened.pages, nullptr);
    EXPECT_FALSE(opened.opened.available);
    EXPECT_NE(opened.opened.reason.find(why), std::string::npos) << opened.opened.reason;
    EXPECT_EQ(machine.driver.allocations, 0U);
  }
  void map(std::uint64_t address, std::size_t bytes)
  {
    machine.system->map_for_cpu(address, bytes, true);
  }

  counters_machine machine;
};

struct part {
  std::uintptr_t first;
  std::size_t bytes;
};

void expect_parts(host_pages& pages, memory_range range, std::vector<part> const& expected)
{
  std::vector<memory_range> parts;
  ASSERT_TRUE(pages.not_on_host(range, parts).ok());
  ASSERT_EQ(parts.size(), expected.size());
  for (std::size_t index = 0; index < parts.size(); ++index) {
    EXPECT_EQ(parts[index].address, expected[index].first);
    EXPECT_EQ(parts[index].bytes, expected[index].bytes);
  }
}

TEST_F(HostPages, OfAWorkingSystemPassTheirSelfTestByBothWays)
{
  machine.driver.facts.direct_migration = availability::yes();
  auto const direct                     = direct_migration::open(machine.driver, machine.system);
  ASSERT_NE(direct.migration, nullptr);
  machine.driver.direct = direct.migration.get();
  auto const opened     = open();
  ASSERT_TRUE(opened.opened.available) << opened.opened.reason;
  EXPECT_EQ(machine.driver.allocations, 0U);
}

TEST_F(HostPages, AreTakenFromAScanOrFromEntriesAlike)
{
  constexpr std::uintptr_t first = 0x40000000;
  for (bool const scans : {true, false}) {
    machine.system->scans = scans;
    auto const opened     = open();
    ASSERT_NE(opened.pages, nullptr) << opened.opened.reason;
    map(first, 3 * va_block_bytes);
    machine.system->map_for_cpu(first + va_block_bytes, 0x10000, false);
    machine.system->map_for_cpu(first + 2 * va_block_bytes - 0x1000, 0x3000, false);
    expect_parts(
      *opened.pages,
      {first, 3 * va_block_bytes},
      {{first + va_block_bytes, 0x10000}, {first + 2 * va_block_bytes - 0x1000, 0x3000}});
    expect_parts(
      *opened.pages, {first + va_block_bytes + 100, 100}, {{first + va_block_bytes, 0x1000}});
    expect_parts(*opened.pages, {first, va_block_bytes}, {});
    expect_parts(*opened.pages, {first, 0}, {});
  }
}

TEST_F(HostPages, InMorePartsThanOneScanListsAreAllFound)
{
  constexpr std::uintptr_t first = 0x40000000;
  auto const opened              = open();
  ASSERT_NE(opened.pages, nullptr) << opened.opened.reason;
  std::vector<part> expected;
  for (std::size_t page = 0; page < 512; page += 2) {
    map(first + page * 0x1000, 0x1000);
    expected.push_back({first + (page + 1) * 0x1000, 0x1000});
  }
  expect_parts(*opened.pages, {first, va_block_bytes}, expected);
}

TEST_F(HostPages, ThatTheKernelDriverMapsOtherwiseAreNotBelieved)
{
  machine.system->direct_maps           = false;
  machine.driver.facts.direct_migration = availability::yes();
  auto const direct                     = direct_migration::open(machine.driver, machine.system);
  ASSERT_NE(direct.migration, nullptr);
  machine.driver.direct = direct.migration.get();
  expect_none("maps pages otherwise");
}

TEST_F(HostPages, WithoutCountersAreNotLookedAt)
{
  machine.driver.counted = std::make_unique<no_counters>("switched off");
  expect_none("its self-test needs counters: switched off");
}

TEST_F(HostPages, OfAnOperatingSystemThatHidesThemSayWhy)
{
  machine.system->answers["open_to_read"] = EACCES;
  expect_none("/proc/self/pagemap cannot be opened (Permission denied)");
}

TEST_F(HostPages, ThatCannotBeReadAreAStatusWithItsNumber)
{
  auto const opened = open();
  ASSERT_NE(opened.pages, nullptr) << opened.opened.reason;
  machine.system->answers["scan"] = EFAULT;
  std::vector<memory_range> parts;
  auto const failed = opened.pages->not_on_host({0x40000000, va_block_bytes}, parts);
  EXPECT_EQ(failed.code, status_code::driver_error);
  EXPECT_EQ(failed.native_error, EFAULT);
}

TEST_F(HostPages, GiveTheirDescriptorBack)
{
  auto const before = machine.system->held();
  {
    auto const opened = open();
    EXPECT_EQ(machine.system->held(), before + 1);
  }
  EXPECT_EQ(machine.system->held(), before);
}

}  // namespace
}  // namespace rmm_uvm::cuda
