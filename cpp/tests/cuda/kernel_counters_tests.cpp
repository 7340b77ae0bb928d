// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What can be known about the kernel counters without a GPU: that they say why they are missing.
#include "../support/recording_driver.hpp"

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/kernel_counters.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::cuda {
namespace {

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
