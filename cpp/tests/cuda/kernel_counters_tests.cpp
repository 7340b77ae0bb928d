// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The kernel counters of this process, on a kernel driver that the tests play.
#include "../support/fake_system.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/kernel_counters.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_system;

constexpr fake_system::uuid gpu{1};
constexpr int space = 1;

/** @brief A driver whose prefetches move bytes on the fake kernel driver. */
class moving_driver final : public uvm_driver {
 public:
  explicit moving_driver(std::shared_ptr<fake_system> moved) : system{std::move(moved)}
  {
    facts.uuid = gpu;
  }
  std::shared_ptr<fake_system> system;
  device_info facts;
  std::vector<std::size_t> strangers;  ///< bytes that others move during the coming prefetches
  status moves{};                      ///< what `prefetch` answers
  std::size_t allocations{0};          ///< live

  [[nodiscard]] device_info const& info() const noexcept override { return facts; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return none_; }
  status memory(device_memory&) noexcept override { return {}; }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(va_block_bytes, bytes));
    ++allocations;
    return {};
  }
  status free_managed(std::uintptr_t address) noexcept override
  {
    std::free(reinterpret_cast<void*>(address));  // NOLINT
    --allocations;
    return {};
  }
  status prefetch(memory_range range, location where, stream_handle) noexcept override
  {
    auto bytes = range.bytes;
    if (!strangers.empty()) {
      bytes += strangers.back();
      strangers.pop_back();
    }
    system->migrate(space, gpu, where.is_host() ? 0 : bytes, where.is_host() ? bytes : 0);
    return moves;
  }
  status discard(std::span<memory_range const>, stream_handle) noexcept override { return {}; }
  status discard_and_prefetch(std::span<memory_range const>,
                              location,
                              stream_handle) noexcept override
  {
    return {};
  }
  [[nodiscard]] capture_state capturing(stream_handle) noexcept override { return {}; }
  status synchronize(stream_handle) noexcept override { return {}; }

 private:
  no_counters none_{"not needed"};
};

/** @brief A machine where this process uses CUDA. */
struct machine {
  std::shared_ptr<fake_system> system{std::make_shared<fake_system>()};
  moving_driver driver{system};

  machine()
  {
    system->open_uvm(fake_system::own_pid, 5, -1);
    system->open_uvm(fake_system::own_pid, 6, space);
  }
  [[nodiscard]] std::unique_ptr<migration_counters> open()
  {
    return open_kernel_counters(driver, system);
  }
};

TEST(KernelCounters, OfAWorkingDriverPassTheirSelfTestAndCount)
{
  machine here;
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
  machine here;
  here.driver.strangers = {va_block_bytes};
  EXPECT_TRUE(here.open()->available().available);
}

TEST(KernelCounters, ThatDisagreeWithTheSelfTestAreNotUsed)
{
  machine here;
  here.driver.strangers.assign(100, 4096);
  auto const counters = here.open();
  EXPECT_NE(counters->available().reason.find("unknown layout"), std::string::npos);
  EXPECT_EQ(here.system->held(), 0U);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelCounters, WhoseSelfTestCannotMoveMemoryAreNotUsed)
{
  machine here;
  here.driver.moves   = {status_code::driver_error, 1, "prefetch"};
  auto const counters = here.open();
  EXPECT_NE(counters->available().reason.find("could not move"), std::string::npos);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelCounters, CountFaultsWhileAnyRequestStands)
{
  machine here;
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
  machine here;
  auto const counters          = here.open();
  here.system->answers["open"] = EMFILE;
  EXPECT_FALSE(counters->request_faults().available);
  EXPECT_TRUE(counters->available().available);
  here.system->answers.clear();
  EXPECT_TRUE(counters->request_faults().available);
}

TEST(KernelCounters, InAForkedChildAreUnavailableAndLeaveTheParentAlone)
{
  machine here;
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
  machine healthy;
  static_cast<void>(healthy.open());
  for (int call = 1; call <= healthy.system->calls; ++call) {
    machine here;
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
