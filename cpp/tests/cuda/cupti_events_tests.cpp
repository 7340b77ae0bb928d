// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The session and the events over it, against a libcupti and a libcuda that are fakes.
#include "../support/fake_cuda.hpp"
#include "../support/fake_cupti.hpp"

#include <rmm_uvm/cuda/cupti_events.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace rmm_uvm::cuda {
namespace {

using tests::moved;

constexpr auto to_device          = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
constexpr std::uint64_t somewhere = std::uint64_t{1} << 40U;
constexpr std::uint64_t second_ns = 1'000'000'000;

std::uint64_t fake_now = 0;  // NOLINT: what the injected time source tells

class CuptiEvents : public testing::Test {
 protected:
  CuptiEvents() { fake_now = 10 * second_ns; }

  [[nodiscard]] std::shared_ptr<cupti_session> make_session()
  {
    return std::make_shared<cupti_session>(
      tests::fake_cuda::api(), tests::fake_cupti::api(), [] { return fake_now; });
  }

  [[nodiscard]] std::ptrdiff_t calls(std::string const& name)
  {
    return std::count(cupti.log.begin(), cupti.log.end(), name);
  }

  tests::fake_cuda cuda;
  tests::fake_cupti cupti;
  std::shared_ptr<cupti_session> session{make_session()};
};

[[nodiscard]] bool contains(std::string const& text, std::string const& part)
{
  return text.find(part) != std::string::npos;
}

TEST_F(CuptiEvents, AreOffUntilStartedAndOffAfterTheStop)
{
  cupti_events events{session, {0}};
  EXPECT_TRUE(cupti.log.empty());
  ASSERT_TRUE(events.start().available);
  EXPECT_EQ(cupti.take_log(),
            (std::vector<std::string>{"cuptiGetDeviceId",
                                      "cuptiSubscribe",
                                      "cuptiActivityRegisterCallbacks",
                                      "configure 8",
                                      "cuptiActivityEnable"}));
  ASSERT_TRUE(events.start().available);
  EXPECT_TRUE(cupti.take_log().empty());
  events.stop();
  EXPECT_EQ(cupti.take_log(),
            (std::vector<std::string>{
              "flush all", "cuptiActivityDisable", "flush all", "cuptiUnsubscribe"}));
  events.stop();
  EXPECT_TRUE(cupti.take_log().empty());
}

TEST_F(CuptiEvents, RecordsThatComeWithTheStopAreCounted)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1), moved(to_device, somewhere, 8192, 2)};
  events.stop();
  EXPECT_EQ(events.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(events.read().host_to_device_bytes[2], 8192U);
  EXPECT_EQ(events.busiest(5).size(), 1U);
  EXPECT_EQ(events.read().dropped_records, 0U);
}

TEST_F(CuptiEvents, SecondStartBeginsAtZero)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1)};
  events.stop();
  ASSERT_TRUE(events.start().available);
  EXPECT_EQ(events.read().host_to_device_bytes[1], 0U);
}

TEST_F(CuptiEvents, WakeCuptiByAManagedAllocationOnceItIsOn)
{
  cupti_events events{session, {0}};
  static_cast<void>(cuda.take_log());
  ASSERT_TRUE(events.start().available);
  auto const log   = cuda.take_log();
  auto const taken = std::find(log.begin(), log.end(), "cuMemAllocManaged");
  ASSERT_NE(taken, log.end());
  EXPECT_NE(std::find(taken, log.end(), "cuMemFree"), log.end());
  EXPECT_FALSE(cuda.called_without_context);
  EXPECT_TRUE(cuda.contexts.empty());
}

TEST_F(CuptiEvents, WithoutManagedMemoryToWakeItGoOn)
{
  cuda.answers["cuMemAllocManaged"] = CUDA_ERROR_OUT_OF_MEMORY;
  cupti_events events{session, {0}};
  EXPECT_TRUE(events.start().available);
}

TEST_F(CuptiEvents, ReadingFlushesOnceASecondWhatIsPartlyFilledToo)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1)};
  static_cast<void>(cupti.take_log());
  EXPECT_EQ(events.read().host_to_device_bytes[1], 0U);
  fake_now += second_ns;
  EXPECT_EQ(events.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(events.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(cupti.take_log(), (std::vector<std::string>{"flush all"}));
}

TEST_F(CuptiEvents, OfTwoDevicesShareOneSessionAndKeepApart)
{
  cupti.first_device_id = 4;  // CUPTI's own numbering
  cupti_events first{session, {0}};
  cupti_events second{session, {1}};
  ASSERT_TRUE(first.start().available);
  ASSERT_TRUE(second.start().available);
  EXPECT_EQ(calls("cuptiActivityEnable"), 1);
  cupti.pending = {moved(to_device, somewhere, 4096, 1, 4),
                   moved(to_device, somewhere, 8192, 1, 5)};
  first.stop();
  EXPECT_EQ(calls("cuptiActivityDisable"), 0);
  EXPECT_EQ(first.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(second.read().host_to_device_bytes[1], 8192U);
  cupti.pending = {moved(to_device, somewhere, 4096, 1, 4),
                   moved(to_device, somewhere, 8192, 1, 5)};
  second.stop();
  EXPECT_EQ(calls("cuptiActivityDisable"), 1);
  EXPECT_EQ(first.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(second.read().host_to_device_bytes[1], 16384U);
}

TEST_F(CuptiEvents, RecordsFromBeforeAnotherListenerCameAreNotItsOwn)
{
  cupti_events early{session, {0}};
  cupti_events late{session, {0}};
  ASSERT_TRUE(early.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1, 0)};
  ASSERT_TRUE(late.start().available);
  late.stop();
  EXPECT_EQ(early.read().host_to_device_bytes[1], 4096U);
  EXPECT_EQ(late.read().host_to_device_bytes[1], 0U);
}

TEST_F(CuptiEvents, OfTheOnlyDeviceTakeRecordsWhateverItIsCalled)
{
  cuda.device_count = 1;
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1, 7)};
  events.stop();
  EXPECT_EQ(events.read().host_to_device_bytes[1], 4096U);
}

TEST_F(CuptiEvents, WithoutCuptisNumberTheOrdinalIsTaken)
{
  cupti.answers["cuptiGetDeviceId"] = CUPTI_ERROR_INVALID_CONTEXT;
  cupti_events events{session, {1}};
  ASSERT_TRUE(events.start().available);
  cupti.pending = {moved(to_device, somewhere, 4096, 1, 1)};
  events.stop();
  EXPECT_EQ(events.read().host_to_device_bytes[1], 4096U);
}

TEST_F(CuptiEvents, AnotherProfilerIsNamedAndNothingIsLeftOn)
{
  cupti.answers["cuptiSubscribe"]    = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  cupti.answers["cuptiSubscribe_v2"] = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  cupti.holder                       = "Nsight Systems";
  cupti_events events{session, {0}};
  auto const refused = events.start();
  EXPECT_TRUE(contains(refused.reason, "Nsight Systems")) << refused.reason;
  EXPECT_TRUE(contains(refused.reason, "39")) << refused.reason;
  EXPECT_EQ(calls("cuptiActivityEnable") + calls("cuptiUnsubscribe"), 0);
  cupti.answers.clear();  // it ended
  EXPECT_TRUE(events.start().available);
}

TEST_F(CuptiEvents, EveryCallThatFailsIsAReasonAndSwitchesOff)
{
  for (auto const* const call :
       {"cuptiSubscribe", "cuptiActivityRegisterCallbacks", "configure", "cuptiActivityEnable"}) {
    cupti.answers = {{call, CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE}};
    cupti_events events{session, {0}};
    auto const refused = events.start();
    EXPECT_FALSE(refused.available) << call;
    EXPECT_TRUE(contains(refused.reason, "this device")) << refused.reason;
    auto const log = cupti.take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), "cuptiUnsubscribe"),
              std::string{call} == "cuptiSubscribe" ? 0 : 1);
    cupti.answers.clear();
    EXPECT_TRUE(events.start().available) << call;
    events.stop();
    static_cast<void>(cupti.take_log());
  }
}

TEST_F(CuptiEvents, WithBasicCountersOnlyTheyStart)
{
  cupti.only_basic_counters = true;
  cupti_events events{session, {0}};
  EXPECT_TRUE(events.start().available);
  EXPECT_EQ(cupti.configured, 4U);
}

TEST_F(CuptiEvents, WithoutADeviceOrDriverTheySayWhy)
{
  cupti_events beyond{session, {2}};
  EXPECT_TRUE(contains(beyond.start().reason, "there is no device 2, only 2"));
  cuda.answers["cuInit"] = CUDA_ERROR_NO_DEVICE;
  cupti_events events{session, {0}};
  EXPECT_EQ(events.start().reason, "cuInit answered CUDA_ERROR_OF_THE_TEST");
  EXPECT_EQ(calls("cuptiSubscribe"), 0);
}

TEST_F(CuptiEvents, OfASecondSessionAreRefusedWhileTheFirstIsOn)
{
  cupti_events events{session, {0}};
  cupti_events others{make_session(), {0}};
  ASSERT_TRUE(events.start().available);
  EXPECT_TRUE(contains(others.start().reason, "this process holds CUPTI already"));
  events.stop();
  EXPECT_TRUE(others.start().available);
}

TEST_F(CuptiEvents, GoneEventsSwitchOffAndLateBuffersAreFreed)
{
  {
    cupti_events events{session, {0}};
    ASSERT_TRUE(events.start().available);
  }
  EXPECT_EQ(calls("cuptiActivityDisable"), 1);
  cupti.pending = {moved(to_device, somewhere, 4096, 1)};
  cupti.deliver();  // the callbacks stay registered; the address sanitizer watches
}

TEST_F(CuptiEvents, BuffersAreBoundedAndDroppedRecordsCounted)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  std::vector<std::uint8_t*> lent;
  for (;;) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes    = 0;
    std::size_t records  = 0;
    cupti.requested(&buffer, &bytes, &records);
    if (buffer == nullptr) { break; }
    lent.push_back(buffer);
  }
  EXPECT_EQ(lent.size(), 64U);
  cupti.pending = {moved(to_device, somewhere, 4096, 1)};
  cupti.deliver();  // no buffer left
  for (auto* const buffer : lent) {
    cupti.completed(nullptr, 0, buffer, std::size_t{1} << 20U, 0);
  }
  EXPECT_EQ(events.read().dropped_records, 1U);
  EXPECT_EQ(events.read().host_to_device_bytes[1], 0U);
}

TEST_F(CuptiEvents, RecordsOfOtherKindsAreSkipped)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  auto kernel   = moved(to_device, somewhere, 4096, 1);
  kernel.kind   = CUPTI_ACTIVITY_KIND_KERNEL;
  cupti.pending = {kernel, moved(to_device, somewhere, 8192, 1)};
  events.stop();
  EXPECT_EQ(events.read().host_to_device_bytes[1], 8192U);
}

TEST_F(CuptiEvents, InAForkedChildNothingIsCalled)
{
  cupti_events events{session, {0}};
  ASSERT_TRUE(events.start().available);
  static_cast<void>(cupti.take_log());
  auto const child = ::fork();
  if (child == 0) {
    events.stop();
    static_cast<void>(events.read());
    bool const refused = !events.start().available;
    ::_exit(cupti.log.empty() && refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rmm_uvm::cuda
