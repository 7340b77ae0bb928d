// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Copies by way of memory of their own: call by call, and every call failing.
#include "cuda_transfers_fixture.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::CudaTransfers;
using tests::user_stream;

// Memory begins at 0x10000, which is 65536; halves of 512 bytes.

TEST_F(CudaTransfers, StagedCopiesGoThroughTwoHalvesInTurnByTwoStreams)
{
  ASSERT_TRUE(transfers->take_staging(1200).ok());
  EXPECT_EQ(take_work(),
            (log{"cuStreamCreate",
                 "cuMemAlloc 1024",
                 "cuStreamCreate",
                 "cuEventCreate",
                 "cuEventCreate",
                 "cuEventCreate",
                 "cuEventCreate",
                 "cuEventRecord event1 side",
                 "cuStreamWaitEvent onward event1"}));
  EXPECT_EQ(fake.side_stream_flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));  // the last one
  EXPECT_EQ(fake.event_flags,
            std::vector<unsigned>(4, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)));
  std::array<transfer, 2> const two{{{1000, 9000, 600}, {7, 8, 1}}};
  ASSERT_TRUE(transfers->copy(two).ok());
  EXPECT_EQ(take_work(),
            (log{"cuStreamWaitEvent side event2",
                 "cuMemcpyAsync 65536 9000 512 side",
                 "cuEventRecord event1 side",
                 "cuStreamWaitEvent onward event1",
                 "cuMemcpyAsync 1000 65536 512 onward",
                 "cuEventRecord event2 onward",
                 "cuStreamWaitEvent side event4",
                 "cuMemcpyAsync 66048 9512 88 side",
                 "cuEventRecord event3 side",
                 "cuStreamWaitEvent onward event3",
                 "cuMemcpyAsync 1512 66048 88 onward",
                 "cuEventRecord event4 onward",
                 "cuStreamWaitEvent side event2",
                 "cuMemcpyAsync 65536 8 1 side",
                 "cuEventRecord event1 side",
                 "cuStreamWaitEvent onward event1",
                 "cuMemcpyAsync 7 65536 1 onward",
                 "cuEventRecord event2 onward"}));
  expect_put_back();
}

TEST_F(CudaTransfers, MarkOfStagedCopiesStandsAtTheirEndAndForWhatWasWaitedFor)
{
  ASSERT_TRUE(transfers->take_staging(512).ok());
  static_cast<void>(take_work());
  EXPECT_TRUE(transfers->wait_for(user_stream).ok());
  EXPECT_EQ(take_work(),
            (log{"cuEventCreate",
                 "cuEventRecord event5 user",
                 "cuStreamWaitEvent side event5",
                 "cuStreamWaitEvent onward event5"}));
  std::shared_ptr<transfer_mark> mark;
  ASSERT_TRUE(transfers->mark(mark).ok());
  EXPECT_EQ(take_work(), (log{"cuEventRecord event5 onward"}));
}

TEST_F(CudaTransfers, StagingIsTakenOnceAndOfSomeSize)
{
  EXPECT_EQ(transfers->take_staging(511).code, status_code::invalid_value);
  EXPECT_EQ(take_work(), (log{"cuStreamCreate"}));
  ASSERT_TRUE(transfers->take_staging(512).ok());
  static_cast<void>(take_work());
  EXPECT_EQ(transfers->take_staging(512).code, status_code::invalid_value);
  EXPECT_TRUE(take_work().empty());
}

TEST_F(CudaTransfers, StagingThatCannotBeHadTakesNothingAndCopiesAreDirect)
{
  ASSERT_TRUE(transfers->copy(copies).ok());
  for (auto const* call :
       {"cuMemAlloc", "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"}) {
    static_cast<void>(take_work());
    auto const events = fake.events;
    fake.answers      = {{call, CUDA_ERROR_OUT_OF_MEMORY}};
    EXPECT_EQ(transfers->take_staging(512).code, status_code::out_of_memory) << call;
    auto const work   = take_work();
    auto const counts = [&](char const* name) {
      return std::count_if(
        work.begin(), work.end(), [&](auto const& one) { return one.starts_with(name); });
    };
    std::string const failed = call;
    EXPECT_EQ(counts("cuMemFree"), failed == "cuMemAlloc" ? 0 : 1) << call;
    EXPECT_EQ(counts("cuStreamDestroy onward"), counts("cuEventCreate") > 0 ? 1 : 0) << call;
    EXPECT_EQ(counts("cuEventDestroy"), static_cast<std::ptrdiff_t>(fake.events - events)) << call;
  }
  fake.answers   = {{"cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY}};
  fake.successes = {{"cuEventCreate", 3}};
  EXPECT_EQ(transfers->take_staging(512).code, status_code::out_of_memory);
  auto const work = take_work();
  EXPECT_EQ(
    std::count_if(
      work.begin(), work.end(), [](auto const& one) { return one.starts_with("cuEventDestroy"); }),
    3);
  fake.answers.clear();
  ASSERT_TRUE(transfers->copy(copies).ok());
  EXPECT_EQ(take_work().size(), 2U);
  EXPECT_TRUE(transfers->take_staging(512).ok());
}

TEST_F(CudaTransfers, StagedCopyEndsAtTheCallThatIsRefusedAndTheNextOneIsWhole)
{
  ASSERT_TRUE(transfers->take_staging(512).ok());
  std::array<transfer, 1> const one{{{1000, 9000, 100}}};
  // By how many calls of that name succeed before: how many calls there are in all.
  std::map<std::string, std::array<std::size_t, 2>> const issued{
    {"cuStreamWaitEvent", {1, 4}}, {"cuMemcpyAsync", {2, 5}}, {"cuEventRecord", {3, 6}}};
  for (auto const& [call, calls] : issued) {
    for (std::size_t before = 0; before < calls.size(); ++before) {
      static_cast<void>(take_work());
      fake.answers   = {{call, CUDA_ERROR_ILLEGAL_ADDRESS}};
      fake.successes = {{call, before}};
      EXPECT_EQ(transfers->copy(one).native_error, CUDA_ERROR_ILLEGAL_ADDRESS);
      EXPECT_EQ(take_work().size(), calls.at(before)) << call;
      fake.answers.clear();
      EXPECT_TRUE(transfers->copy(one).ok());
      EXPECT_EQ(take_work().size(), 6U);
    }
  }
  expect_put_back();
}

TEST_F(CudaTransfers, StagingGoesWithItsOwner)
{
  ASSERT_TRUE(transfers->take_staging(512).ok());
  static_cast<void>(take_work());
  transfers.reset();
  EXPECT_EQ(take_work(),
            (log{"cuStreamDestroy side",
                 "cuEventDestroy event1",
                 "cuEventDestroy event2",
                 "cuEventDestroy event3",
                 "cuEventDestroy event4",
                 "cuStreamDestroy onward",
                 "cuMemFree"}));
}

}  // namespace
}  // namespace rmm_uvm::cuda
