// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Attaching to other processes, with every reason for which it cannot be done.
#include "../support/fake_system.hpp"

#include <rmm_uvm/cuda/process_counters.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_system;

constexpr fake_system::uuid gpu{1};
constexpr fake_system::uuid other_gpu{2};
constexpr int pid   = 200;
constexpr int space = 3;

/** @brief A machine where process `pid` uses CUDA: one descriptor bound, one not. */
[[nodiscard]] std::shared_ptr<fake_system> machine()
{
  auto system = std::make_shared<fake_system>();
  system->processes[pid].files.push_back({0, "/dev/null"});
  system->open_uvm(pid, 7, -1);
  system->open_uvm(pid, 8, space);
  return system;
}

[[nodiscard]] bool holds(std::string const& text, std::string const& part)
{
  return text.find(part) != std::string::npos;
}

TEST(ProcessCounters, ReadWhatAnotherProcessMovesOnAllGpus)
{
  auto const system = machine();
  auto const opened = process_counters::open({pid}, system);
  ASSERT_TRUE(opened.counters) << opened.opened.reason;
  system->migrate(space, gpu, 1, 2);
  system->migrate(space, other_gpu, 10, 20);
  system->fault(space, &gpu, 1);  // not asked for
  auto const totals = opened.counters->read();
  EXPECT_EQ(totals.host_to_device_bytes, 11U);
  EXPECT_EQ(totals.device_to_host_bytes, 22U);
  EXPECT_EQ(totals.gpu_faults, 0U);
  EXPECT_TRUE(opened.counters->available().available);
  EXPECT_EQ(system->held(), 3U);  // the process, a tracker and its page: no copied descriptor
}

TEST(ProcessCounters, OfOneGpuReadThatOneAndFaultsWhenAsked)
{
  auto const system = machine();
  auto const opened = process_counters::open({pid, gpu, true}, system);
  ASSERT_TRUE(opened.counters) << opened.opened.reason;
  system->migrate(space, gpu, 1, 2);
  system->migrate(space, other_gpu, 10, 20);
  system->fault(space, &gpu, 4);
  system->fault(space, nullptr, 5);
  auto const totals = opened.counters->read();
  EXPECT_EQ(totals.host_to_device_bytes, 1U);
  EXPECT_EQ(totals.gpu_faults, 4U);
  EXPECT_EQ(totals.cpu_faults, 5U);
}

TEST(ProcessCounters, OfTwoAddressSpacesAreTheirSum)
{
  auto const system = machine();
  system->open_uvm(pid, 9, space + 1);
  auto const opened = process_counters::open({pid}, system);
  system->migrate(space, gpu, 1, 0);
  system->migrate(space + 1, gpu, 10, 0);
  EXPECT_EQ(opened.counters->read().host_to_device_bytes, 11U);
}

TEST(ProcessCounters, OfADescriptorUnderTwoNumbersCountOnce)
{
  auto const system = machine();
  system->open_uvm(pid, 9, space);
  auto const opened = process_counters::open({pid}, system);
  system->migrate(space, gpu, 1, 0);
  EXPECT_EQ(opened.counters->read().host_to_device_bytes, 1U);
}

TEST(ProcessCounters, WhenTheProcessEndsLetGoAtOnceAndKeepTheTotals)
{
  auto const system = machine();
  auto const opened = process_counters::open({pid}, system);
  system->migrate(space, gpu, 1, 2);
  EXPECT_FALSE(opened.counters->wait_exit(0));
  EXPECT_FALSE(opened.counters->exited());
  system->processes[pid].ended = true;
  EXPECT_TRUE(opened.counters->wait_exit(1000));
  EXPECT_EQ(system->held(), 0U);
  EXPECT_TRUE(opened.counters->exited());
  EXPECT_EQ(opened.counters->available().reason, "process 200 has ended");
  EXPECT_EQ(opened.counters->read().device_to_host_bytes, 2U);
  EXPECT_TRUE(opened.counters->wait_exit(0));  // and again
}

TEST(ProcessCounters, ClosedKeepTheirTotalsAndKnowNoEnd)
{
  auto const system = machine();
  auto const opened = process_counters::open({pid}, system);
  system->migrate(space, gpu, 1, 2);
  opened.counters->close();
  opened.counters->close();
  EXPECT_EQ(system->held(), 0U);
  EXPECT_EQ(opened.counters->read().device_to_host_bytes, 2U);
  EXPECT_FALSE(opened.counters->wait_exit(0));
  EXPECT_EQ(opened.counters->available().reason, "the counters of process 200 are closed");
}

TEST(ProcessCounters, AfterASignalHaveNotSeenTheEnd)
{
  auto const system            = machine();
  auto const opened            = process_counters::open({pid}, system);
  system->answers["wait_exit"] = EINTR;
  EXPECT_FALSE(opened.counters->wait_exit(1000));
  EXPECT_TRUE(opened.counters->available().available);
}

TEST(ProcessCounters, InAForkedChildReadZerosAndLetGoOfNothing)
{
  auto const system = machine();
  auto const opened = process_counters::open({pid}, system);
  system->migrate(space, gpu, 1, 2);
  system->pid = fake_system::own_pid + 1;
  EXPECT_EQ(opened.counters->read().device_to_host_bytes, 0U);
  EXPECT_TRUE(holds(opened.counters->available().reason, "forked"));
  opened.counters->close();
  EXPECT_FALSE(opened.counters->wait_exit(0));
  system->pid = fake_system::own_pid;
  EXPECT_EQ(opened.counters->read().device_to_host_bytes, 2U);
}

TEST(ProcessCounters, WhichCannotBeHadSayWhy)
{
  auto const reason = [](auto const& system, int of = pid) {
    auto const opened = process_counters::open({of}, system);
    EXPECT_EQ(opened.counters, nullptr);
    EXPECT_EQ(system->held(), 0U);
    return opened.opened.reason;
  };
  EXPECT_EQ(reason(machine(), 999), "there is no process 999");
  EXPECT_EQ(reason(machine(), -1), "-1 is not the number of a process");
  EXPECT_EQ(reason(machine(), 0), "0 is not the number of a process");
  EXPECT_TRUE(holds(reason(machine(), fake_system::own_pid), "process 100 does not use CUDA"));

  auto system                        = machine();
  system->answers["copy_descriptor"] = EPERM;
  auto const denied                  = reason(system);
  EXPECT_TRUE(holds(denied, "CAP_SYS_PTRACE")) << denied;
  EXPECT_TRUE(holds(denied, "ptrace_scope 0 (here 1)")) << denied;
  system->ptrace_scope.clear();  // a kernel without Yama
  EXPECT_FALSE(holds(reason(system), "here"));

  system                        = machine();
  system->answers["list_files"] = EACCES;
  EXPECT_TRUE(holds(reason(system), "no permission"));

  system                             = machine();
  system->answers["copy_descriptor"] = ENOSYS;
  EXPECT_TRUE(holds(reason(system), "5.6"));

  system                             = machine();
  system->answers["copy_descriptor"] = EBADF;  // closed while we looked
  EXPECT_TRUE(holds(reason(system), "does not use CUDA"));

  system                  = machine();
  system->answers["open"] = ENOENT;
  EXPECT_TRUE(holds(reason(system), "/dev/nvidia-uvm-tools does not exist"));

  system = std::make_shared<fake_system>();
  system->open_uvm(pid, 7, -1);
  EXPECT_TRUE(holds(reason(system), "refused"));
}

TEST(ProcessCounters, WhicheverCallFailsLeaveNothingBehind)
{
  auto const healthy = machine();
  static_cast<void>(process_counters::open({pid, gpu, true}, healthy));
  for (int call = 1; call <= healthy->calls; ++call) {
    auto const system    = machine();
    system->errors[call] = EIO;
    {
      // A failure at the descriptor that is not bound changes nothing: there is no other way to
      // know which one is.
      auto const opened = process_counters::open({pid, gpu, true}, system);
      EXPECT_EQ(opened.opened.reason.empty(), opened.counters != nullptr) << call;
    }
    EXPECT_EQ(system->held(), 0U) << call;
  }
}

TEST(MayAttach, AgreesWithAttachingAndOpensNoTracker)
{
  auto const system = machine();
  EXPECT_TRUE(may_attach(pid, system).available);
  EXPECT_EQ(system->held(), 0U);
  EXPECT_EQ(may_attach(999, system).reason, "there is no process 999");
  system->answers["open"] = ENOENT;
  EXPECT_TRUE(holds(may_attach(pid, system).reason, "nvidia-modprobe"));
}

TEST(LinuxSystemCalls, SeeAnotherProcessEnd)
{
  auto const system = linux_system_calls();
  int ends[2];  // NOLINT: a C interface
  ASSERT_EQ(::pipe(ends), 0);
  auto const child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char byte{};
    static_cast<void>(::read(ends[0], &byte, 1));  // until the parent lets it end
    ::_exit(0);
  }
  ::close(ends[0]);
  {
    descriptor const process{system, system->open_process(child)};
    if (process.valid()) {  // Linux 5.3
      EXPECT_EQ(system->wait_exit(process.get(), 0), 0);
      std::vector<system_calls::open_file> files;
      EXPECT_EQ(system->list_files(child, files), 0);
      EXPECT_FALSE(files.empty());
    }
    ::close(ends[1]);
    if (process.valid()) { EXPECT_EQ(system->wait_exit(process.get(), 10'000), 1); }
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::vector<system_calls::open_file> files;
  EXPECT_LT(system->list_files(child, files), 0);
}

}  // namespace
}  // namespace rmm_uvm::cuda
