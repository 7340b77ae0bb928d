// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../../src/cuda/host_available.hpp"
#include "../support/fake_cuda.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
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

TEST(CudaDriverOpen, CardOfItsOwnMemoryIsNoNodeAndNotIntegrated)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_NUMA_ID] = 5;  // means nothing without the configuration
  auto const opened                            = cuda_driver::open(fake.api(), 0, false);
  ASSERT_NE(opened.driver, nullptr);
  EXPECT_EQ(opened.driver->info().numa_node, std::nullopt);
  EXPECT_FALSE(opened.driver->info().integrated);
  EXPECT_FALSE(opened.driver->info().host_page_tables);
  device_memory memory;
  ASSERT_TRUE(opened.driver->memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, 3U);
}

TEST(CudaDriverOpen, CoherentDeviceTellsItsNodeAndTheHostsPageTables)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_NUMA_CONFIG] = CU_DEVICE_NUMA_CONFIG_NUMA_NODE;
  fake.attributes[CU_DEVICE_ATTRIBUTE_NUMA_ID]     = 1;
  fake.attributes[CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES] = 1;
  auto const opened = cuda_driver::open(fake.api(), 0, false);
  ASSERT_NE(opened.driver, nullptr);
  EXPECT_EQ(opened.driver->info().numa_node, 1);
  EXPECT_TRUE(opened.driver->info().host_page_tables);
}

TEST(CudaDriverOpen, NodeThatCannotBeToldIsNone)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_NUMA_CONFIG] = CU_DEVICE_NUMA_CONFIG_NUMA_NODE;
  auto api                                         = fake.api();
  api.device_get_attribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = fake_cuda::active->attributes[which];
    return which == CU_DEVICE_ATTRIBUTE_NUMA_ID ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  auto const opened = cuda_driver::open(api, 0, false);
  ASSERT_NE(opened.driver, nullptr);
  EXPECT_EQ(opened.driver->info().numa_node, std::nullopt);
}

TEST(CudaDriverOpen, IntegratedDeviceWithoutConcurrentAccessIsNotSaidToBeACard)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_INTEGRATED]                = 1;
  fake.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 0;
  auto const opened = cuda_driver::open(fake.api(), 0, false);
  ASSERT_NE(opened.driver, nullptr);
  auto const& reason = opened.driver->info().concurrent_managed_access.reason;
  EXPECT_NE(reason.find("device memory is host memory"), std::string::npos);
  EXPECT_EQ(reason.find("card"), std::string::npos);
}

TEST(CudaDriverOpen, IntegratedDeviceHasFreeWhatTheHostHasAndMigratesNothing)
{
  fake_cuda fake;
  fake.attributes[CU_DEVICE_ATTRIBUTE_INTEGRATED] = 1;
  auto const opened                               = cuda_driver::open(fake.api(), 0, true);
  ASSERT_NE(opened.driver, nullptr);
  auto const& info = opened.driver->info();
  EXPECT_TRUE(info.integrated);
  EXPECT_NE(info.direct_migration.reason.find("nothing migrates"), std::string::npos);
  EXPECT_NE(info.host_pages.reason.find("nothing migrates"), std::string::npos);
  EXPECT_NE(info.discard.reason.find("it would free nothing"), std::string::npos);
  device_memory memory;
  ASSERT_TRUE(opened.driver->memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, memory.total_bytes);  // 3 of 4 bytes by CUDA, and the host has more
}

TEST(CudaDriverOpen, AvailableHostMemoryIsReadFromItsLine)
{
  std::istringstream usual{"MemTotal: 8 kB\nMemFree: 2 kB\nMemAvailable:   5 kB\nSwapFree: 1 kB\n"};
  EXPECT_EQ(available_bytes_in(usual), 5U << 10U);
  std::istringstream old{"MemTotal: 8 kB\nMemFree: 2 kB\n"};
  EXPECT_EQ(available_bytes_in(old), 0U);
  std::istringstream broken{"MemAvailable: lots kB\n"};
  EXPECT_EQ(available_bytes_in(broken), 0U);
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
