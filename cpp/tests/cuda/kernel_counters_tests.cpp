// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The kernel counters of this process, on a kernel driver that the tests play.
#include "../support/counters_machine.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/kernel_counters.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_system;

using tests::counters_machine;

constexpr auto gpu  = counters_machine::gpu;
constexpr int space = counters_machine::space;

TEST(KernelCounters, OfAWorkingDriverPassTheirSelfTestAndCount)
{
  counters_machine here;
  auto const counters = here.open();
  ASSERT_TRUE(counters->available().available) << counters->available().reason;
  EXPECT_EQ(here.driver.allocations, 0U);
  auto const before = counters->read();
  here.system->migrate(space, gpu, 10, 20);
  EXPECT_EQ(counters->read().host_to_device_bytes - before.host_to_device_bytes, 10U);
  EXPECT_EQ(counters->read().device_to_host_bytes - before.device_to_host_bytes, 20U);
  EXPECT_EQ(counters->read().cpu_faults, 0U);
}

TEST(KernelCounters, AreForgivenTrafficOfOthersOnce)
{
  counters_machine here;
  here.driver.strangers = {va_block_bytes};
  EXPECT_TRUE(here.open()->available().available);
}

TEST(KernelCounters, ThatDisagreeWithTheSelfTestAreNotUsed)
{
  counters_machine here;
  here.driver.strangers.assign(100, 4096);
  auto const counters = here.open();
  EXPECT_NE(counters->available().reason.find("unknown layout"), std::string::npos);
  EXPECT_EQ(here.system->held(), 0U);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelCounters, WhoseSelfTestCannotMoveMemoryAreNotUsed)
{
  counters_machine here;
  here.driver.moves   = {status_code::driver_error, 1, "prefetch"};
  auto const counters = here.open();
  EXPECT_NE(counters->available().reason.find("could not move"), std::string::npos);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelCounters, CountFaultsWhileAnyRequestStands)
{
  counters_machine here;
  auto const counters = here.open();
  auto const fault    = [&] { here.system->fault(space, &gpu, 1); };
  fault();
  ASSERT_TRUE(counters->request_faults().available);
  ASSERT_TRUE(counters->request_faults().available);
  fault();
  counters->release_faults();
  fault();
  counters->release_faults();
  fault();
  EXPECT_EQ(counters->read().gpu_faults, 2U);
  counters->release_faults();  // one too many does no harm
  ASSERT_TRUE(counters->request_faults().available);
  fault();
  EXPECT_EQ(counters->read().gpu_faults, 3U);
}

TEST(KernelCounters, WhoseFaultsAreRefusedSayWhyAndGoOn)
{
  counters_machine here;
  auto const counters          = here.open();
  here.system->answers["open"] = EMFILE;
  EXPECT_FALSE(counters->request_faults().available);
  EXPECT_TRUE(counters->available().available);
  here.system->answers.clear();
  EXPECT_TRUE(counters->request_faults().available);
}

TEST(KernelCounters, InAForkedChildAreUnavailableAndLeaveTheParentAlone)
{
  counters_machine here;
  auto const counters = here.open();
  ASSERT_TRUE(counters->request_faults().available);
  here.system->pid = fake_system::own_pid + 1;
  EXPECT_NE(counters->available().reason.find("forked"), std::string::npos);
  EXPECT_FALSE(counters->request_faults().available);
  counters->release_faults();
  here.system->fault(space, &gpu, 1);
  here.system->pid = fake_system::own_pid;
  EXPECT_EQ(counters->read().gpu_faults, 1U);
}

TEST(KernelCounters, WhicheverCallFailsAreMissingForAReasonAndLeaveNothingBehind)
{
  counters_machine healthy;
  static_cast<void>(healthy.open());
  for (int call = 1; call <= healthy.system->calls; ++call) {
    counters_machine here;
    here.system->errors[call] = EIO;
    {
      auto const counters = here.open();
      EXPECT_EQ(counters->available().reason.empty(), counters->available().available) << call;
    }
    EXPECT_EQ(here.system->held(), 0U) << call;
    EXPECT_EQ(here.driver.allocations, 0U) << call;
  }
}

TEST(KernelCounters, WithoutConcurrentAccessAreMissingForThatReason)
{
  tests::recording_driver driver;
  driver.facts.concurrent_managed_access = availability::no("WSL2");
  auto const counters                    = open_kernel_counters(driver);
  ASSERT_NE(counters, nullptr);
  EXPECT_NE(counters->available().reason.find("concurrent managed access"), std::string::npos);
  EXPECT_TRUE(driver.take_calls().empty());  // no self-test
}

TEST(KernelCounters, WithoutADescriptorAreMissingAndMoveNothing)
{
  // No test opens /dev/nvidia-uvm, on a machine with a GPU neither.
  tests::recording_driver driver;
  auto const counters = open_kernel_counters(driver);
  EXPECT_FALSE(counters->available().available);
  EXPECT_NE(counters->available().reason.find("/dev/nvidia-uvm"), std::string::npos);
  EXPECT_TRUE(driver.take_calls().empty());
}

TEST(NoCounters, ReadZerosAndCarryTheirReason)
{
  no_counters const counters{"for a reason"};
  EXPECT_FALSE(counters.available().available);
  EXPECT_EQ(counters.available().reason, "for a reason");
  EXPECT_EQ(counters.read().host_to_device_bytes, 0U);
  EXPECT_EQ(counters.read().device_to_host_bytes, 0U);
}

TEST(LoadCudaApi, IsCompleteOrSaysWhyNot)
{
  auto const loaded = load_cuda_api();
  EXPECT_EQ(loaded.loaded.reason.empty(), loaded.loaded.available);
  if (!loaded.loaded.available) { return; }
  EXPECT_NE(loaded.api.init, nullptr);
  EXPECT_NE(loaded.api.mem_prefetch_async, nullptr);
}

}  // namespace
}  // namespace rmm_uvm::cuda
