// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_system.hpp"

#include <rmm_uvm/cuda/address_space_counters.hpp>
#include <rmm_uvm/cuda/counter_tracker.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_system;
using uvm_tools::counter;
using uvm_tools::flag;

constexpr fake_system::uuid gpu{1};
constexpr fake_system::uuid other_gpu{2};
constexpr int uvm_file = 5;
constexpr int space    = 1;

[[nodiscard]] std::shared_ptr<fake_system> machine()
{
  auto system = std::make_shared<fake_system>();
  system->open_uvm(fake_system::own_pid, uvm_file, space);
  return system;
}

TEST(CounterTracker, CountsOnlyItsProcessorAndItsFlags)
{
  auto const system = machine();
  auto const opened = counter_tracker::open(system, uvm_file, gpu);
  ASSERT_TRUE(opened.opened.available) << opened.opened.reason;
  system->migrate(space, gpu, 1, 1);  // before anything is counted
  ASSERT_TRUE(opened.tracker->count(flag(counter::bytes_to_device)).available);
  system->migrate(space, gpu, 10, 20);
  system->migrate(space, other_gpu, 100, 200);
  system->migrate(space + 1, gpu, 1000, 2000);
  EXPECT_EQ(opened.tracker->total(counter::bytes_to_device), 10U);
  EXPECT_EQ(opened.tracker->total(counter::bytes_to_host), 0U);
  opened.tracker->stop_counting(flag(counter::bytes_to_device));
  system->migrate(space, gpu, 10, 20);
  EXPECT_EQ(opened.tracker->total(counter::bytes_to_device), 10U);
}

TEST(CounterTracker, OfAllProcessorsCountsEachOfThem)
{
  auto const system = machine();
  auto const opened = counter_tracker::open(system, uvm_file, std::nullopt);
  ASSERT_TRUE(opened.tracker->count(flag(counter::bytes_to_host)).available);
  system->migrate(space, gpu, 10, 20);
  system->migrate(space, other_gpu, 100, 200);
  EXPECT_EQ(opened.tracker->total(counter::bytes_to_host), 220U);
}

TEST(CounterTracker, ClosesItsDescriptorBeforeItsPageGoes)
{
  // The driver writes to the page until the descriptor is closed.
  auto const system = machine();
  auto opened       = counter_tracker::open(system, uvm_file, gpu);
  EXPECT_EQ(system->held(), 2U);
  opened.tracker.reset();
  EXPECT_EQ(system->held(), 0U);
  EXPECT_EQ(system->given_back, (std::vector<std::string>{"/dev/nvidia-uvm-tools", "page"}));
}

TEST(CounterTracker, WithoutTheToolsDeviceSaysWhatToDo)
{
  auto const system       = machine();
  system->answers["open"] = ENOENT;
  auto const opened       = counter_tracker::open(system, uvm_file, gpu);
  EXPECT_EQ(opened.tracker, nullptr);
  EXPECT_NE(opened.opened.reason.find("nvidia-modprobe"), std::string::npos);
  EXPECT_EQ(tools_available(system).reason, opened.opened.reason);
  system->answers["open"] = EACCES;
  EXPECT_NE(tools_available(system).reason.find("this user"), std::string::npos);
}

TEST(CounterTracker, OfADescriptorWithoutAddressSpaceIsRefused)
{
  auto const system = machine();
  system->open_uvm(fake_system::own_pid, 6, -1);
  auto const opened = counter_tracker::open(system, 6, gpu);
  EXPECT_EQ(opened.tracker, nullptr);
  EXPECT_NE(opened.opened.reason.find("status 22"), std::string::npos);
  EXPECT_EQ(system->held(), 0U);
}

TEST(CounterTracker, InAChildLeavesTheParentsCountersOn)
{
  auto const system = machine();
  auto const opened = counter_tracker::open(system, uvm_file, gpu);
  ASSERT_TRUE(opened.tracker->count(flag(counter::bytes_to_host)).available);
  system->pid = fake_system::own_pid + 1;
  opened.tracker->stop_counting(flag(counter::bytes_to_host));
  system->migrate(space, gpu, 0, 7);
  EXPECT_EQ(opened.tracker->total(counter::bytes_to_host), 7U);
}

TEST(CounterPage, IsWipedInAForkedChild)
{
  // With the real system: this is what the kernel counters' page is made of.
  counter_page const page{linux_system_calls()};
  ASSERT_TRUE(page.valid());
  *reinterpret_cast<std::uint64_t*>(page.address()) = 42;
  auto const child                                  = ::fork();
  if (child == 0) { ::_exit(page.total(counter::bytes_to_device) == 0 ? 0 : 1); }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(page.total(counter::bytes_to_device), 42U);
}

TEST(CounterPage, WithoutProtectionFromAForkIsNotUsed)
{
  auto const system               = machine();
  system->answers["wipe_on_fork"] = EINVAL;
  auto const opened               = counter_tracker::open(system, uvm_file, gpu);
  EXPECT_NE(opened.opened.reason.find("fork"), std::string::npos);
  EXPECT_EQ(system->held(), 0U);
}

TEST(AddressSpaceCounters, OfAGpuTakeCpuFaultsFromTheWholeProcess)
{
  auto const system = machine();
  auto const opened = address_space_counters::open(system, uvm_file, gpu);
  ASSERT_TRUE(opened.counters);
  system->fault(space, nullptr, 5);  // nobody asked yet
  ASSERT_TRUE(opened.counters->count_faults(uvm_file).available);
  system->fault(space, nullptr, 3);
  system->fault(space, &gpu, 4);
  system->fault(space, &other_gpu, 8);
  system->migrate(space, gpu, 1, 2);
  auto const totals = opened.counters->read();
  EXPECT_EQ(totals.cpu_faults, 3U);
  EXPECT_EQ(totals.gpu_faults, 4U);
  EXPECT_EQ(totals.host_to_device_bytes, 1U);
  EXPECT_EQ(totals.device_to_host_bytes, 2U);
}

TEST(AddressSpaceCounters, OfAllProcessorsNeedOneTrackerOnly)
{
  auto const system = machine();
  auto const opened = address_space_counters::open(system, uvm_file, std::nullopt);
  ASSERT_TRUE(opened.counters->count_faults(uvm_file).available);
  EXPECT_EQ(system->held(), 2U);
  system->fault(space, nullptr, 3);
  system->fault(space, &other_gpu, 4);
  EXPECT_EQ(opened.counters->read().cpu_faults, 3U);
  EXPECT_EQ(opened.counters->read().gpu_faults, 4U);
  opened.counters->stop_faults();
  system->fault(space, nullptr, 3);
  system->fault(space, &other_gpu, 4);
  EXPECT_EQ(opened.counters->read().cpu_faults, 3U);
  EXPECT_EQ(opened.counters->read().gpu_faults, 4U);
}

TEST(AddressSpaceCounters, StoppedAndStartedAgainGoOnFromTheirTotals)
{
  auto const system = machine();
  auto const opened = address_space_counters::open(system, uvm_file, gpu);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(opened.counters->count_faults(uvm_file).available);
    system->fault(space, nullptr, 1);
    system->fault(space, &gpu, 1);
    opened.counters->stop_faults();
    system->fault(space, nullptr, 100);
    system->fault(space, &gpu, 100);
  }
  EXPECT_EQ(opened.counters->read().cpu_faults, 2U);
  EXPECT_EQ(opened.counters->read().gpu_faults, 2U);
}

TEST(AddressSpaceCounters, WhicheverCallFailsLeaveNothingBehind)
{
  auto const all_calls = [](auto const& system) {
    auto opened = address_space_counters::open(system, uvm_file, gpu);
    return opened.counters ? opened.counters->count_faults(uvm_file) : opened.opened;
  };
  auto const healthy = machine();
  ASSERT_TRUE(all_calls(healthy).available);
  for (int call = 1; call <= healthy->calls; ++call) {
    auto const system    = machine();
    system->errors[call] = EIO;
    auto const result    = all_calls(system);
    EXPECT_FALSE(result.available) << call;
    EXPECT_FALSE(result.reason.empty()) << call;
    EXPECT_EQ(system->held(), 0U) << call;
  }
}

TEST(AddressSpaceCounters, WhoseFaultsAreRefusedGoOnCountingBytes)
{
  auto const system       = machine();
  auto const opened       = address_space_counters::open(system, uvm_file, gpu);
  system->answers["open"] = EMFILE;
  EXPECT_FALSE(opened.counters->count_faults(uvm_file).available);
  system->migrate(space, gpu, 1, 2);
  system->fault(space, &gpu, 1);
  EXPECT_EQ(opened.counters->read().device_to_host_bytes, 2U);
  EXPECT_EQ(opened.counters->read().gpu_faults, 0U);
  system->answers.clear();
  EXPECT_TRUE(opened.counters->count_faults(uvm_file).available);
}

}  // namespace
}  // namespace rmm_uvm::cuda
