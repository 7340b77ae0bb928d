// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The batch calls refuse the legacy default stream: their detour, call by call.
#include "../support/fake_cuda.hpp"
#include "../support/traffic_sums.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_cuda;
using log = std::vector<std::string>;

constexpr std::array<memory_range, 2> ranges{
  {{0x7F00'0000'0000, va_block_bytes}, {0x7F00'1000'0000, 2 * va_block_bytes}}};

class SideStream : public testing::Test {
 protected:
  /** @brief The calls between the guard's first two and its last two. */
  [[nodiscard]] log take_work()
  {
    auto calls = fake.take_log();
    if (calls.size() < 4) { return {"no guard"}; }
    return {calls.begin() + 2, calls.end() - 2};
  }
  status discard(stream_handle stream) { return driver->discard(ranges, stream); }
  status discard_and_prefetch(stream_handle stream)
  {
    return driver->discard_and_prefetch(ranges, location::device(0), stream);
  }
  void expect_put_back()
  {
    EXPECT_TRUE(fake.contexts.empty());
    EXPECT_EQ(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_FALSE(fake.called_without_context);
    EXPECT_FALSE(fake.called_in_strict_mode);
  }

  fake_cuda fake;
  std::shared_ptr<uvm_driver> driver = [this] {
    auto opened = cuda_driver::open(fake.api(), 0, false).driver;
    static_cast<void>(fake.take_log());
    return opened;
  }();
};

TEST_F(SideStream, ADiscardIsToldWithWhereItPrefetches)
{
  auto const sums = std::make_shared<tests::traffic_sums>();
  driver->traffic_observers().set_account(sums);
  EXPECT_TRUE(discard(tests::user_stream).ok());
  EXPECT_TRUE(discard_and_prefetch(tests::user_stream).ok());
  EXPECT_EQ(sums->bytes,
            (tests::traffic_bytes{{traffic::dropped, 3 * va_block_bytes},
                                  {traffic::renewed, 3 * va_block_bytes}}));
}

/** @brief What a batch call in `stream` looks like once the side stream is there. */
log detour(std::string const& stream, std::string const& call)
{
  return {"cuEventRecord event1 " + stream,
          "cuStreamWaitEvent side event1",
          call + " side",
          "cuEventRecord event2 side",
          "cuStreamWaitEvent " + stream + " event2"};
}

TEST_F(SideStream, LegacyStreamsTakeTheDetourInThisOrder)
{
  EXPECT_TRUE(discard(nullptr).ok());
  auto first = log{"cuEventCreate", "cuEventCreate", "cuStreamCreate"};
  std::ranges::copy(detour("0", "cuMemDiscardBatchAsync"), std::back_inserter(first));
  EXPECT_EQ(take_work(), first);
  EXPECT_EQ(fake.side_stream_flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));

  EXPECT_TRUE(discard(CU_STREAM_LEGACY).ok());
  EXPECT_EQ(take_work(), detour("legacy", "cuMemDiscardBatchAsync"));
  EXPECT_TRUE(discard_and_prefetch(nullptr).ok());
  EXPECT_EQ(take_work(), detour("0", "cuMemDiscardAndPrefetchBatchAsync"));
  expect_put_back();
}

TEST_F(SideStream, OtherStreamsAreUsedDirectly)
{
  EXPECT_TRUE(discard(CU_STREAM_PER_THREAD).ok());
  EXPECT_EQ(take_work(), (log{"cuMemDiscardBatchAsync per-thread"}));
  EXPECT_TRUE(discard(tests::user_stream).ok());
  EXPECT_EQ(take_work(), (log{"cuMemDiscardBatchAsync user"}));
  EXPECT_TRUE(discard_and_prefetch(tests::user_stream).ok());
  EXPECT_EQ(take_work(), (log{"cuMemDiscardAndPrefetchBatchAsync user"}));
  expect_put_back();
}

TEST_F(SideStream, AllRangesReachTheBatchCall)
{
  EXPECT_TRUE(discard_and_prefetch(nullptr).ok());
  EXPECT_EQ(fake.batch,
            (std::vector<fake_cuda::batch_entry>{{ranges[0].address, ranges[0].bytes},
                                                 {ranges[1].address, ranges[1].bytes}}));
  EXPECT_EQ(fake.target.type, CU_MEM_LOCATION_TYPE_DEVICE);
}

TEST_F(SideStream, PrefetchNeedsNoDetour)
{
  EXPECT_TRUE(driver->prefetch(ranges[0], location::device(0), nullptr).ok());
  EXPECT_EQ(take_work(), (log{"cuMemPrefetchAsync 0"}));
}

TEST_F(SideStream, StreamWaitsEvenForABatchThatFailed)
{
  EXPECT_TRUE(discard(nullptr).ok());
  static_cast<void>(fake.take_log());
  fake.answers["cuMemDiscardBatchAsync"] = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(discard(nullptr).code, status_code::invalid_value);
  EXPECT_EQ(take_work(), detour("0", "cuMemDiscardBatchAsync"));
  expect_put_back();
}

TEST_F(SideStream, FailureOfTheDetourBeforeTheCallIssuesNothing)
{
  for (auto const* call :
       {"cuEventCreate", "cuStreamCreate", "cuEventRecord", "cuStreamWaitEvent"}) {
    fake.answers      = {{call, CUDA_ERROR_UNKNOWN}};
    auto const result = discard(nullptr);
    EXPECT_EQ(result.code, status_code::driver_error) << call;
    EXPECT_STREQ(result.call, call);
    auto const work = take_work();
    EXPECT_EQ(std::ranges::count(work, "cuMemDiscardBatchAsync side"), 0) << call;
    expect_put_back();
  }
}

TEST_F(SideStream, IsMadeAtTheNextCallWhenItCouldNotBeMadeBefore)
{
  fake.answers["cuStreamCreate"] = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(discard(nullptr).code, status_code::out_of_memory);
  fake.answers.clear();
  static_cast<void>(fake.take_log());
  EXPECT_TRUE(discard(nullptr).ok());
  auto const work = take_work();
  EXPECT_EQ(std::ranges::count(work, "cuEventCreate"), 0);  // those of the first try serve
  EXPECT_EQ(std::ranges::count(work, "cuStreamCreate"), 1);
}

TEST_F(SideStream, IsDestroyedWithTheDriverInItsContext)
{
  EXPECT_TRUE(discard(nullptr).ok());
  static_cast<void>(fake.take_log());
  driver.reset();
  EXPECT_EQ(take_work(),
            (log{"cuEventDestroy event1", "cuEventDestroy event2", "cuStreamDestroy side"}));
  expect_put_back();
}

TEST_F(SideStream, IsNeverMadeWithoutABatchOnTheLegacyStream)
{
  EXPECT_TRUE(discard(tests::user_stream).ok());
  static_cast<void>(fake.take_log());
  driver.reset();
  EXPECT_TRUE(take_work().empty());
}

}  // namespace
}  // namespace rmm_uvm::cuda
