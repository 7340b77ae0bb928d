// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Copies in the own stream, events that are used again, IPC: call by call, and every call failing.
#include "cuda_transfers_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::CudaTransfers;
using tests::fake_cuda;
using tests::user_stream;

// Copies

TEST_F(CudaTransfers, CopiesRunInANonBlockingStreamMadeAtTheFirstUse)
{
  EXPECT_TRUE(transfers->copy(copies).ok());
  EXPECT_EQ(
    take_work(),
    (log{"cuStreamCreate", "cuMemcpyAsync 100 200 8 side", "cuMemcpyAsync 500 600 16 side"}));
  EXPECT_EQ(fake.side_stream_flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_TRUE(transfers->copy(copies).ok());
  EXPECT_EQ(take_work().size(), 2U);
  expect_put_back();
}

TEST_F(CudaTransfers, CopyThatIsRefusedEndsTheBatch)
{
  fake.answers["cuMemcpyAsync"] = CUDA_ERROR_INVALID_VALUE;
  auto const result             = transfers->copy(copies);
  EXPECT_EQ(result.code, status_code::invalid_value);
  EXPECT_STREQ(result.call, "cuMemcpyAsync");
  EXPECT_EQ(take_work().size(), 2U);  // the stream, and the first copy
  EXPECT_STREQ(transfers->error_name(result.native_error), "CUDA_ERROR_OF_THE_TEST");
  EXPECT_STREQ(transfers->error_name(0), "");
  expect_put_back();
}

TEST_F(CudaTransfers, WaitingForAStreamUsesOneEventAgainAndAgain)
{
  EXPECT_TRUE(transfers->wait_for(nullptr).ok());
  EXPECT_EQ(take_work(),
            (log{"cuStreamCreate",
                 "cuEventCreate",
                 "cuEventRecord event1 0",
                 "cuStreamWaitEvent side event1"}));
  EXPECT_TRUE(transfers->wait_for(user_stream).ok());
  EXPECT_EQ(take_work(), (log{"cuEventRecord event1 user", "cuStreamWaitEvent side event1"}));
  EXPECT_EQ(fake.event_flags, std::vector{static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)});
}

TEST_F(CudaTransfers, StreamThatIsCapturedIsRefusedAndNothingIssued)
{
  std::shared_ptr<transfer_mark> mark;
  std::shared_ptr<ipc_event> event;
  ASSERT_TRUE(transfers->mark(mark).ok());
  ASSERT_TRUE(transfers->make_ipc_event(event).ok());
  static_cast<void>(fake.take_log());
  fake.capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_EQ(transfers->wait_for(user_stream).code, status_code::not_supported);
  EXPECT_EQ(mark->make_wait(user_stream).code, status_code::not_supported);
  EXPECT_EQ(event->record(user_stream).code, status_code::not_supported);
  EXPECT_EQ(event->make_wait(user_stream).code, status_code::not_supported);
  // Nor is one of which it cannot be known: another stream captures.
  fake.capture                        = CU_STREAM_CAPTURE_STATUS_NONE;
  fake.answers["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  EXPECT_EQ(transfers->wait_for(nullptr).code, status_code::not_supported);
  EXPECT_TRUE(take_work().empty());
}

TEST_F(CudaTransfers, WorkThatFailedBeforeIsTakenForNoCapture)
{
  fake.answers["cuStreamIsCapturing"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  auto const result                   = transfers->wait_for(user_stream);
  EXPECT_EQ(result.code, status_code::driver_error);
  EXPECT_EQ(result.native_error, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(take_work().empty());
}

// Marks

TEST_F(CudaTransfers, MarkIsReachedWhenItsEventIs)
{
  std::shared_ptr<transfer_mark> mark;
  ASSERT_TRUE(transfers->mark(mark).ok());
  EXPECT_EQ(take_work(), (log{"cuStreamCreate", "cuEventCreate", "cuEventRecord event1 side"}));
  bool reached                 = true;
  fake.answers["cuEventQuery"] = CUDA_ERROR_NOT_READY;
  EXPECT_TRUE(mark->done(reached).ok());
  EXPECT_FALSE(reached);
  fake.answers.clear();
  EXPECT_TRUE(mark->done(reached).ok());
  EXPECT_TRUE(reached);
  EXPECT_TRUE(mark->wait().ok());
  EXPECT_TRUE(mark->make_wait(user_stream).ok());
  EXPECT_EQ(take_work(),
            (log{"cuEventQuery event1",
                 "cuEventQuery event1",
                 "cuEventSynchronize event1",
                 "cuStreamWaitEvent user event1"}));
}

TEST_F(CudaTransfers, MarkTellsThatTheWorkFailed)
{
  std::shared_ptr<transfer_mark> mark;
  ASSERT_TRUE(transfers->mark(mark).ok());
  fake.answers = {{"cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS},
                  {"cuEventSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS}};
  bool reached = false;
  EXPECT_EQ(mark->done(reached).native_error, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(reached);
  EXPECT_EQ(mark->wait().code, status_code::driver_error);
}

TEST_F(CudaTransfers, EventOfAMarkServesTheNextOneOnlyAfterItIsGone)
{
  std::shared_ptr<transfer_mark> first;
  std::shared_ptr<transfer_mark> second;
  ASSERT_TRUE(transfers->mark(first).ok());
  ASSERT_TRUE(transfers->mark(second).ok());
  EXPECT_EQ(fake.events, 2U);
  first.reset();
  ASSERT_TRUE(transfers->mark(first).ok());
  EXPECT_EQ(fake.events, 2U);
}

TEST_F(CudaTransfers, MarkThatCouldNotBeMadeLosesNoEvent)
{
  std::shared_ptr<transfer_mark> mark;
  fake.answers["cuEventRecord"] = CUDA_ERROR_UNKNOWN;
  EXPECT_FALSE(transfers->mark(mark).ok());
  EXPECT_EQ(mark, nullptr);
  fake.answers.clear();
  EXPECT_TRUE(transfers->mark(mark).ok());
  EXPECT_EQ(fake.events, 1U);
}

TEST_F(CudaTransfers, MarkOutlivesItsMaker)
{
  std::shared_ptr<transfer_mark> mark;
  ASSERT_TRUE(transfers->mark(mark).ok());
  transfers.reset();
  EXPECT_TRUE(mark->wait().ok());
  static_cast<void>(fake.take_log());
  mark.reset();
  EXPECT_EQ(take_work(), (log{"cuEventDestroy event1", "cuStreamDestroy side"}));
}

// What an address belongs to

TEST_F(CudaTransfers, MemoryIsLookedUpInOneCall)
{
  std::optional<memory_kind> found;
  fake.memory = {{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE},
                 {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 1},
                 {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 0x7F00'0000'0000},
                 {CU_POINTER_ATTRIBUTE_RANGE_SIZE, std::uint64_t{8} << 30U},
                 {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 1}};
  ASSERT_TRUE(transfers->find_memory(7, found).ok());
  EXPECT_EQ(take_work(), (log{"cuPointerGetAttributes 7"}));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->managed);
  EXPECT_TRUE(found->ipc_capable);
  EXPECT_EQ(found->base, 0x7F00'0000'0000U);
  EXPECT_EQ(found->bytes, std::size_t{8} << 30U);
  EXPECT_EQ(found->device_id, 1);
}

TEST_F(CudaTransfers, ManagedMemoryIsNeverIpcCapable)
{
  std::optional<memory_kind> found;
  fake.memory = {{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE},
                 {CU_POINTER_ATTRIBUTE_IS_MANAGED, 1},
                 {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 1}};
  ASSERT_TRUE(transfers->find_memory(7, found).ok());
  EXPECT_TRUE(found->managed);
  EXPECT_FALSE(found->ipc_capable);
}

TEST_F(CudaTransfers, AddressThatCudaDoesNotKnowIsNoError)
{
  std::optional<memory_kind> found{memory_kind{}};
  EXPECT_TRUE(transfers->find_memory(7, found).ok());
  EXPECT_FALSE(found);
}

// IPC

TEST_F(CudaTransfers, IpcMemoryIsOpenedWithPeerAccessAndClosedAsOftenAsOpened)
{
  ipc_handle handle{};
  ASSERT_TRUE(transfers->ipc_memory_handle(4096, handle).ok());
  std::uintptr_t address = 0;
  ASSERT_TRUE(transfers->open_ipc_memory(handle, address).ok());
  EXPECT_EQ(address, 4097U);
  EXPECT_EQ(fake.open_flags, static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  ASSERT_TRUE(transfers->open_ipc_memory(handle, address).ok());
  EXPECT_TRUE(transfers->close_ipc_memory(address).ok());
  EXPECT_TRUE(transfers->close_ipc_memory(address).ok());
  static_cast<void>(fake.take_log());
  EXPECT_EQ(transfers->close_ipc_memory(address).code, status_code::invalid_value);
  EXPECT_TRUE(take_work().empty());
  expect_put_back();
}

TEST_F(CudaTransfers, IpcMemoryThatCannotBeOpenedNeedsNoClosing)
{
  std::uintptr_t address             = 5;
  fake.answers["cuIpcOpenMemHandle"] = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  EXPECT_EQ(transfers->open_ipc_memory({}, address).code, status_code::driver_error);
  EXPECT_EQ(address, 5U);
  static_cast<void>(fake.take_log());
  transfers.reset();
  EXPECT_TRUE(take_work().empty());
}

TEST_F(CudaTransfers, IpcEventIsMadeForOtherProcessesAndOpenedByThem)
{
  std::shared_ptr<ipc_event> made;
  ASSERT_TRUE(transfers->make_ipc_event(made).ok());
  EXPECT_EQ(fake.event_flags.back(),
            static_cast<unsigned>(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  EXPECT_TRUE(made->record(nullptr).ok());
  std::shared_ptr<ipc_event> opened;
  ASSERT_TRUE(transfers->open_ipc_event(made->handle(), opened).ok());
  EXPECT_EQ(opened->handle(), made->handle());
  EXPECT_TRUE(opened->make_wait(user_stream).ok());
  EXPECT_EQ(take_work(),
            (log{"cuEventCreate",
                 "cuIpcGetEventHandle event1",
                 "cuEventRecord event1 0",
                 "cuIpcOpenEventHandle event1",
                 "cuStreamWaitEvent user event1"}));
}

TEST_F(CudaTransfers, IpcEventWithoutAHandleIsDestroyed)
{
  std::shared_ptr<ipc_event> made;
  fake.answers["cuIpcGetEventHandle"] = CUDA_ERROR_MAP_FAILED;
  EXPECT_FALSE(transfers->make_ipc_event(made).ok());
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(take_work().back(), "cuEventDestroy event1");
}

// Every call

TEST_F(CudaTransfers, WithoutItsContextNothingIsCalled)
{
  fake.answers["cuCtxPushCurrent"] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  std::optional<memory_kind> found;
  std::shared_ptr<transfer_mark> mark;
  std::shared_ptr<ipc_event> event;
  ipc_handle handle{};
  std::uintptr_t address = 0;
  std::vector<std::function<status()>> const calls{
    [&] { return transfers->find_memory(7, found); },
    [&] { return transfers->wait_for(user_stream); },
    [&] { return transfers->copy(copies); },
    [&] { return transfers->take_staging(512); },
    [&] { return transfers->mark(mark); },
    [&] { return transfers->ipc_memory_handle(4096, handle); },
    [&] { return transfers->open_ipc_memory(handle, address); },
    [&] { return transfers->make_ipc_event(event); },
    [&] { return transfers->open_ipc_event(handle, event); },
  };
  for (auto const& call : calls) {
    EXPECT_STREQ(call().call, "cuCtxPushCurrent");
    EXPECT_TRUE(take_work().empty());
  }
}

TEST_F(CudaTransfers, GivesBackWhatItHasWhenItGoes)
{
  ipc_handle handle{};
  std::uintptr_t address = 0;
  ASSERT_TRUE(transfers->ipc_memory_handle(4096, handle).ok());
  ASSERT_TRUE(transfers->open_ipc_memory(handle, address).ok());
  ASSERT_TRUE(transfers->open_ipc_memory(handle, address).ok());
  ASSERT_TRUE(transfers->wait_for(nullptr).ok());
  static_cast<void>(fake.take_log());
  transfers.reset();
  EXPECT_EQ(take_work(),
            (log{"cuIpcCloseMemHandle 4097",
                 "cuIpcCloseMemHandle 4097",
                 "cuEventDestroy event1",
                 "cuStreamDestroy side"}));
  expect_put_back();
}

TEST_F(CudaTransfers, GivesNothingBackInAForkedChild)
{
  ASSERT_TRUE(transfers->take_staging(512).ok());
  ASSERT_TRUE(transfers->wait_for(nullptr).ok());
  std::shared_ptr<transfer_mark> mark;
  ASSERT_TRUE(transfers->mark(mark).ok());
  static_cast<void>(fake.take_log());
  auto const child = ::fork();
  if (child == 0) {
    mark.reset();
    transfers.reset();
    ::_exit(fake.take_log().empty() ? 0 : 1);
  }
  int ended = -1;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

TEST(CudaTransfersDeathTest, GivesNothingBackWhileTheProcessExits)
{
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which nothing was made yet
  static fake_cuda* fake                            = nullptr;
  static std::shared_ptr<cuda_transfers>* transfers = nullptr;
  auto const exit_with_both                         = [] {
    // Registered before anything was made, and so run after what that registers.
    std::atexit([] {
      transfers->reset();
      ::_exit(fake->take_log().empty() ? 7 : 1);
    });
    fake      = new fake_cuda;
    transfers = new std::shared_ptr<cuda_transfers>{std::make_shared<cuda_transfers>(
      std::static_pointer_cast<cuda_driver>(cuda_driver::open(fake->api(), 0, false).driver))};
    static_cast<void>((*transfers)->take_staging(512));
    static_cast<void>((*transfers)->wait_for(nullptr));
    static_cast<void>(fake->take_log());
    std::exit(0);
  };
  EXPECT_EXIT(exit_with_both(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace rmm_uvm::cuda
