// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_nvml.hpp"

#include <rmm_uvm/cuda/nvml.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_nvml;

[[nodiscard]] std::shared_ptr<nvml> opened() { return nvml::open(fake_nvml::api()).library; }

TEST(Nvml, IsShutDownAsOftenAsInitialised)
{
  fake_nvml fake;
  {
    auto const library = opened();
    EXPECT_EQ(fake.users, 1);
  }
  EXPECT_EQ(fake.users, 0);
}

TEST(Nvml, ThatDoesNotInitialiseSaysWhy)
{
  fake_nvml fake;
  fake.failing    = "init";
  auto const none = nvml::open(fake_nvml::api());
  EXPECT_EQ(none.library, nullptr);
  EXPECT_EQ(none.opened.reason, "NVML cannot be initialised: Not Supported");
  EXPECT_EQ(fake.users, 0);
}

TEST(Nvml, ListsDevicesAndPassesOverOnesThatItMayNotSee)
{
  fake_nvml fake;
  auto const library = opened();
  std::vector<nvml_device> found;
  ASSERT_TRUE(library->devices(found).available);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].uuid, "GPU-1");
  EXPECT_EQ(found[1].name, "fake GPU");
  fake.failing = "by_index0";
  ASSERT_TRUE(library->devices(found).available);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].uuid, "GPU-1");
  fake.failing = "device_count";
  EXPECT_FALSE(library->devices(found).available);
  EXPECT_TRUE(found.empty());
}

TEST(Nvml, ReadsMemoryWithoutTheReserveWhereItCan)
{
  fake_nvml fake;
  nvml_memory memory;
  ASSERT_TRUE(opened()->memory("GPU-1", memory).available);
  EXPECT_EQ(memory.used_bytes, 30U);
  EXPECT_EQ(memory.free_bytes, 60U);
  EXPECT_EQ(memory.total_bytes, 100U);
  fake.failing = "memory2";  // an older driver
  ASSERT_TRUE(opened()->memory("GPU-1", memory).available);
  EXPECT_EQ(memory.used_bytes, 40U);
  auto old    = fake_nvml::api();
  old.memory2 = nullptr;
  ASSERT_TRUE(nvml::open(old).library->memory("GPU-1", memory).available);
  EXPECT_EQ(memory.used_bytes, 40U);
}

TEST(Nvml, OfADeviceThatItDoesNotKnowNamesIt)
{
  fake_nvml const fake;
  auto const library = opened();
  nvml_memory memory;
  pcie_throughput pcie;
  std::vector<nvml_process> processes;
  for (auto const& asked : {library->memory("GPU-9", memory),
                            library->pcie("GPU-9", pcie),
                            library->processes("GPU-9", processes)}) {
    EXPECT_NE(asked.reason.find("GPU-9"), std::string::npos);
  }
}

TEST(Nvml, GivesPcieTrafficInBytes)
{
  fake_nvml fake;
  pcie_throughput pcie;
  ASSERT_TRUE(opened()->pcie("GPU-0", pcie).available);
  EXPECT_EQ(pcie.received_bytes_per_second, 2 * 1024U);
  EXPECT_EQ(pcie.sent_bytes_per_second, 3 * 1024U);
  for (auto const* const call : {"received", "sent"}) {
    fake.failing = call;
    EXPECT_EQ(opened()->pcie("GPU-0", pcie).reason, "nvmlDeviceGetPcieThroughput: Not Supported");
  }
}

TEST(Nvml, ListsProcessesHoweverMany)
{
  fake_nvml fake;
  auto const library = opened();
  std::vector<nvml_process> found;
  ASSERT_TRUE(library->processes("GPU-0", found).available);
  EXPECT_TRUE(found.empty());
  for (unsigned pid = 1; pid <= 100; ++pid) {
    fake.running.push_back({pid, 5, 0, 0});
  }
  fake.running.back().used = std::numeric_limits<unsigned long long>::max();
  ASSERT_TRUE(library->processes("GPU-0", found).available);
  ASSERT_EQ(found.size(), 100U);
  EXPECT_EQ(found[0].used_bytes, 5U);
  EXPECT_EQ(found[99].used_bytes, std::nullopt);
  fake.failing = "processes";
  EXPECT_FALSE(library->processes("GPU-0", found).available);
  EXPECT_TRUE(found.empty());
  auto old      = fake_nvml::api();
  old.processes = nullptr;
  EXPECT_NE(nvml::open(old).library->processes("GPU-0", found).reason.find("510"),
            std::string::npos);
}

TEST(NvmlUnmanagedReader, AddsUpWhatIsTold)
{
  fake_nvml fake;
  nvml_unmanaged_reader reader{opened(), "GPU-0"};
  std::size_t bytes = 1;
  EXPECT_FALSE(reader.read(bytes));  // not even this process: in a container that hides them
  fake.running = {{1, std::numeric_limits<unsigned long long>::max(), 0, 0}};
  EXPECT_FALSE(reader.read(bytes));
  EXPECT_EQ(bytes, 1U);
  fake.running = {
    {1, 5, 0, 0}, {2, std::numeric_limits<unsigned long long>::max(), 0, 0}, {3, 7, 0, 0}};
  ASSERT_TRUE(reader.read(bytes));
  EXPECT_EQ(bytes, 12U);
  fake.running.resize(100, {4, 1, 0, 0});  // more than there was room for
  ASSERT_TRUE(reader.read(bytes));
  EXPECT_EQ(bytes, 109U);
  fake.failing = "processes";
  EXPECT_FALSE(reader.read(bytes));
  nvml_unmanaged_reader unknown{opened(), "GPU-9"};
  EXPECT_FALSE(unknown.read(bytes));
  auto old      = fake_nvml::api();
  old.processes = nullptr;
  nvml_unmanaged_reader untold{nvml::open(old).library, "GPU-0"};
  EXPECT_FALSE(untold.read(bytes));
}

TEST(NvmlMemoryReader, ReadsOneDeviceOrAnswersFalse)
{
  fake_nvml fake;
  auto const library = opened();
  device_memory memory;
  nvml_memory_reader reader{library, "GPU-0"};
  ASSERT_TRUE(reader.read(memory));
  EXPECT_EQ(memory.free_bytes, 60U);
  EXPECT_EQ(memory.total_bytes, 100U);
  nvml_memory_reader unknown{library, "GPU-9"};
  EXPECT_FALSE(unknown.read(memory));
  auto old    = fake_nvml::api();
  old.memory2 = nullptr;
  nvml_memory_reader broken{nvml::open(old).library, "GPU-0"};
  fake.failing = "memory";
  EXPECT_FALSE(broken.read(memory));
  EXPECT_EQ(memory.free_bytes, 60U);
}

TEST(LoadNvmlApi, IsCompleteOrSaysWhyNot)
{
  auto const loaded = load_nvml_api();
  EXPECT_EQ(loaded.loaded.reason.empty(), loaded.loaded.available);
  if (!loaded.loaded.available) { return; }
  EXPECT_NE(loaded.api.init, nullptr);
  EXPECT_NE(loaded.api.memory, nullptr);
}

}  // namespace
}  // namespace rmm_uvm::cuda
