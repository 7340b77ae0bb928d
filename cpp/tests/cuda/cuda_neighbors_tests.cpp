// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_cuda.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_cuda;

class CudaNeighbours : public testing::Test {
 protected:
  fake_cuda fake;
  std::shared_ptr<uvm_driver> driver{cuda_driver::open(fake_cuda::api(), 0, false).driver};

  /** @brief Calls of a name, with what they were given. */
  [[nodiscard]] std::vector<std::string> calls(std::string const& name)
  {
    auto log = fake.take_log();
    std::erase_if(log, [&](auto const& call) { return !call.starts_with(name); });
    return log;
  }
  /** @brief Opens a neighbour that cannot be had. @return why */
  [[nodiscard]] std::string refusal(int device_id)
  {
    auto const opened = driver->open_neighbor(device_id);
    EXPECT_FALSE(opened.available);
    device_memory memory{};
    EXPECT_FALSE(driver->neighbor_memory(device_id, memory).ok());
    return opened.reason;
  }
};

TEST_F(CudaNeighbours, PeerAccessIsEnabledBothWaysInTheContextsOfTheRuntime)
{
  static_cast<void>(fake.take_log());
  ASSERT_TRUE(driver->open_neighbor(1).available);
  EXPECT_EQ(calls("cuCtxEnablePeerAccess"),
            (std::vector<std::string>{"cuCtxEnablePeerAccess 0 1", "cuCtxEnablePeerAccess 1 0"}));
  EXPECT_TRUE(fake.contexts.empty());
  device_memory memory{};
  EXPECT_TRUE(driver->neighbor_memory(1, memory).ok());
}

TEST_F(CudaNeighbours, OpenedTwiceAsksTheDriverOnce)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  static_cast<void>(fake.take_log());
  EXPECT_TRUE(driver->open_neighbor(1).available);
  EXPECT_TRUE(fake.take_log().empty());
}

TEST_F(CudaNeighbours, AccessThatAnotherLibraryEnabledIsNoError)
{
  fake.answers["cuCtxEnablePeerAccess"] = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  EXPECT_TRUE(driver->open_neighbor(1).available);
}

TEST_F(CudaNeighbours, ItselfAndDevicesThatAreNotThereAreRefused)
{
  EXPECT_EQ(refusal(0), "device 0 is the device itself");
  EXPECT_EQ(refusal(2), "device 2 does not exist: there are 2 devices, counted from 0");
  EXPECT_EQ(refusal(-1), "device -1 does not exist: there are 2 devices, counted from 0");
}

TEST_F(CudaNeighbours, WithoutPeerAccessOneWayTheReasonNamesThePair)
{
  for (auto const* pair : {"0 1", "1 0"}) {
    fake.apart = {pair};
    EXPECT_EQ(refusal(1), "no peer access between device 0 and device 1") << pair;
  }
}

TEST_F(CudaNeighbours, CudaErrorsAreReasons)
{
  fake.answers["cuCtxEnablePeerAccess"] = CUDA_ERROR_INVALID_DEVICE;
  EXPECT_EQ(refusal(1), "no peer access with device 1: CUDA_ERROR_OF_THE_TEST");
  fake.answers = {{"cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY}};
  EXPECT_EQ(refusal(1), "no context on device 1: CUDA_ERROR_OF_THE_TEST");
  fake.answers    = {};
  fake.attributes = {};
  EXPECT_EQ(refusal(1), "device 1 has no concurrent managed access");
}

TEST_F(CudaNeighbours, MorePeersThanADeviceCanHaveAreAReasonThatSaysSo)
{
  fake.answers["cuCtxEnablePeerAccess"] = CUDA_ERROR_TOO_MANY_PEERS;
  EXPECT_EQ(refusal(1),
            "no peer access with device 1: device 0 or it has as many peers as it can have, 8 "
            "without NVSwitch");
}

TEST_F(CudaNeighbours, MemoryOfANeighbourIsReadInItsContext)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  fake.answers["cuMemGetInfo"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  device_memory memory{};
  EXPECT_EQ(driver->neighbor_memory(1, memory).code, status_code::driver_error);
  EXPECT_FALSE(fake.called_without_context);
}

TEST_F(CudaNeighbours, BytesThatGoToANeighbourAreNeitherToTheDeviceNorToTheHost)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  ASSERT_TRUE(driver->prefetch({0x1000, 4096}, location::device(1), nullptr).ok());
  auto const totals = driver->commands();
  EXPECT_EQ(totals.prefetched_to_device_bytes + totals.prefetched_to_host_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::cuda
