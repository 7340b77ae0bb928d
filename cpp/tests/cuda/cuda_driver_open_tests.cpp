// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_cuda.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_cuda;

TEST(CudaDriverOpen, ReadsTheFactsOfItsDevice)
{
  fake_cuda fake;
  auto const opened = cuda_driver::open(fake.api(), 1, false);
  ASSERT_TRUE(opened.opened.available) << opened.opened.reason;
  auto const& info = opened.driver->info();
  EXPECT_EQ(info.device_id, 1);
  EXPECT_EQ(info.name, "fake GPU");
  EXPECT_EQ(info.uuid[0], 0x11);
  EXPECT_EQ(info.total_bytes, std::size_t{1} << 30U);
  EXPECT_EQ(info.driver_version, 13000);
  EXPECT_TRUE(info.concurrent_managed_access.available);
  EXPECT_TRUE(info.discard.available);
  EXPECT_FALSE(info.simulated);
}

TEST(CudaDriverOpen, RetainsTheContextOfItsOwnDeviceOnly)
{
  fake_cuda fake;
  auto const opened = cuda_driver::open(fake.api(), 1, false);
  auto const log    = fake.take_log();
  EXPECT_EQ(std::ranges::count(log, "cuDevicePrimaryCtxRetain 1"), 1);
  EXPECT_EQ(std::ranges::count(log, "cuDevicePrimaryCtxRetain 0"), 0);
}

TEST(CudaDriverOpen, DeviceThatDoesNotExistIsNamedWithWhatThereIs)
{
  for (auto const device_id : {-1, 2, 99}) {
    fake_cuda fake;
    auto const opened = cuda_driver::open(fake.api(), device_id, false);
    EXPECT_EQ(opened.driver, nullptr);
    EXPECT_FALSE(opened.opened.available);
    EXPECT_NE(opened.opened.reason.find(std::to_string(device_id)), std::string::npos);
    EXPECT_NE(opened.opened.reason.find("2 devices"), std::string::npos);
  }
}

TEST(CudaDriverOpen, MachineWithOneDeviceSaysSo)
{
  fake_cuda fake;
  fake.device_count = 1;
  auto const opened = cuda_driver::open(fake.api(), 1, false);
  EXPECT_NE(opened.opened.reason.find("is 1 device,"), std::string::npos) << opened.opened.reason;
}

/** @brief The calls without which there is no driver. */
class CudaDriverOpenFailure : public testing::TestWithParam<char const*> {};

TEST_P(CudaDriverOpenFailure, GivesNoDriverAndTheReason)
{
  fake_cuda fake;
  fake.answers[GetParam()] = CUDA_ERROR_UNKNOWN;
  auto const opened        = cuda_driver::open(fake.api(), 0, false);
  EXPECT_EQ(opened.driver, nullptr);
  EXPECT_NE(opened.opened.reason.find("CUDA_ERROR_OF_THE_TEST"), std::string::npos)
    << opened.opened.reason;
}

INSTANTIATE_TEST_SUITE_P(
  Calls,
  CudaDriverOpenFailure,
  testing::Values("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain"));

TEST(CudaDriverOpen, WithoutDiscardCallsSaysSoAndRefusesThem)
{
  fake_cuda fake;
  auto api                                 = fake.api();
  api.mem_discard_and_prefetch_batch_async = nullptr;
  auto const opened                        = cuda_driver::open(api, 0, false);
  ASSERT_NE(opened.driver, nullptr);
  EXPECT_NE(opened.driver->info().discard.reason.find("CUDA 13"), std::string::npos);
  memory_range const range{va_block_bytes, va_block_bytes};
  static_cast<void>(fake.take_log());
  EXPECT_EQ(opened.driver->discard(std::span{&range, 1}, nullptr).code, status_code::not_supported);
  EXPECT_EQ(
    opened.driver->discard_and_prefetch(std::span{&range, 1}, location::device(0), nullptr).code,
    status_code::not_supported);
  EXPECT_TRUE(fake.take_log().empty());
}

TEST(CudaDriverOpen, WithoutConcurrentAccessThereIsNoDiscardEither)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 0;
  auto const opened = cuda_driver::open(fake.api(), 0, false);
  ASSERT_NE(opened.driver, nullptr);
  EXPECT_FALSE(opened.driver->info().concurrent_managed_access.available);
  EXPECT_FALSE(opened.driver->info().discard.available);
}

TEST(CudaDriverOpen, SwitchedOffCountersSaySo)
{
  fake_cuda fake;
  auto const opened = cuda_driver::open(fake.api(), 0, false);
  auto const state  = opened.driver->counters().available();
  EXPECT_FALSE(state.available);
  EXPECT_NE(state.reason.find("RMM_UVM_COUNTERS"), std::string::npos);
  EXPECT_EQ(opened.driver->counters().read().device_to_host_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::cuda
