// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Every call of the driver: our context, relaxed capture checks, both put back, errors told apart.
#include "../support/fake_cuda.hpp"
#include "../support/forked.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_cuda;
using tests::user_stream;
using log = std::vector<std::string>;

constexpr memory_range range{0x7F00'0000'0000, va_block_bytes};

/** @brief One call of the seam and the function of libcuda that does its work. */
struct seam_call {
  char const* native;
  std::function<status(uvm_driver&)> make;
};

std::vector<seam_call> const& seam_calls()
{
  static std::vector<seam_call> const calls{
    {"cuMemGetInfo",
     [](uvm_driver& driver) {
       device_memory memory{};
       return driver.memory(memory);
     }},
    {"cuMemAllocManaged",
     [](uvm_driver& driver) {
       std::uintptr_t address = 0;
       return driver.allocate_managed(4096, address);
     }},
    {"cuMemFree", [](uvm_driver& driver) { return driver.free_managed(range.address); }},
    {"cuMemPrefetchAsync",
     [](uvm_driver& driver) { return driver.prefetch(range, location::device(0), user_stream); }},
    {"cuMemAdvise",
     [](uvm_driver& driver) {
       return driver.advise(range, memory_advice::read_mostly, location::host());
     }},
    {"cuMemDiscardBatchAsync",
     [](uvm_driver& driver) { return driver.discard(std::span{&range, 1}, user_stream); }},
    {"cuMemDiscardAndPrefetchBatchAsync",
     [](uvm_driver& driver) {
       return driver.discard_and_prefetch(std::span{&range, 1}, location::device(0), user_stream);
     }},
    {"cuStreamSynchronize", [](uvm_driver& driver) { return driver.synchronize(user_stream); }},
  };
  return calls;
}

class CudaDriver : public testing::Test {
 protected:
  CudaDriver() { static_cast<void>(fake.take_log()); }

  /** @brief The caller's context and capture mode are as before, and no call came without ours. */
  void expect_put_back()
  {
    EXPECT_EQ(fake.contexts, callers_contexts);
    EXPECT_EQ(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_FALSE(fake.called_in_strict_mode);
  }

  fake_cuda fake;
  std::shared_ptr<uvm_driver> driver{cuda_driver::open(fake.api(), 0, false).driver};
  std::vector<CUcontext> const callers_contexts{tests::context_of(1)};  // on another device
};

TEST_F(CudaDriver, StreamIsIdleOnlyWhereTheDriverSaysSo)
{
  EXPECT_TRUE(driver->idle(user_stream));
  for (auto const answer : {CUDA_ERROR_NOT_READY, CUDA_ERROR_ILLEGAL_ADDRESS}) {
    fake.answers["cuStreamQuery"] = answer;
    EXPECT_FALSE(driver->idle(user_stream));
  }
}

TEST_F(CudaDriver, EveryCallRunsInOurContextAndPutsBackTheCallers)
{
  fake.contexts = callers_contexts;
  for (auto const& call : seam_calls()) {
    EXPECT_TRUE(call.make(*driver).ok()) << call.native;
    auto const calls = fake.take_log();
    ASSERT_EQ(calls.size(), 5U) << call.native;
    EXPECT_EQ(calls[0], "cuCtxPushCurrent");
    EXPECT_EQ(calls[1], "cuThreadExchangeStreamCaptureMode");
    EXPECT_EQ(calls[2].substr(0, calls[2].find(' ')), call.native);
    EXPECT_EQ(calls[3], "cuThreadExchangeStreamCaptureMode");
    EXPECT_EQ(calls[4], "cuCtxPopCurrent");
    expect_put_back();
  }
}

TEST_F(CudaDriver, FailedCallIsMappedAndPutsBackTheCallers)
{
  fake.contexts = callers_contexts;
  std::vector<std::pair<CUresult, status_code>> const mapping{
    {CUDA_ERROR_OUT_OF_MEMORY, status_code::out_of_memory},
    {CUDA_ERROR_INVALID_VALUE, status_code::invalid_value},
    {CUDA_ERROR_NOT_SUPPORTED, status_code::not_supported},
    {CUDA_ERROR_ILLEGAL_ADDRESS, status_code::driver_error},
  };
  for (auto const& call : seam_calls()) {
    for (auto const& [native, code] : mapping) {
      fake.answers[call.native] = native;
      auto const result         = call.make(*driver);
      EXPECT_EQ(result.code, code) << call.native;
      EXPECT_EQ(result.native_error, native);
      EXPECT_STREQ(result.call, call.native);
      expect_put_back();
    }
    fake.answers.clear();
  }
}

TEST_F(CudaDriver, WithoutItsContextNothingIsCalled)
{
  fake.contexts                    = callers_contexts;
  fake.answers["cuCtxPushCurrent"] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  for (auto const& call : seam_calls()) {
    auto const result = call.make(*driver);
    EXPECT_EQ(result.code, status_code::driver_error);
    EXPECT_STREQ(result.call, "cuCtxPushCurrent");
    for (auto const& made : fake.take_log()) {
      EXPECT_NE(made.substr(0, made.find(' ')), call.native);
    }
    expect_put_back();
  }
  EXPECT_EQ(driver->capturing(user_stream), capture_state::unknown);
  expect_put_back();
}

TEST_F(CudaDriver, InAForkedChildEveryCommandFailsAndNothingIsCalled)
{
  stream_handle own{};
  ASSERT_TRUE(driver->own_stream(own_stream_use::discards, own).ok());
  ASSERT_TRUE(driver->mark(0, user_stream).ok());
  ASSERT_TRUE(driver->discard(std::span{&range, 1}, nullptr).ok());  // makes the side stream
  static_cast<void>(fake.take_log());
  EXPECT_TRUE(tests::in_child([&] {
    bool refused = true;
    for (auto const& call : seam_calls()) {
      refused = refused && call.make(*driver).code == status_code::driver_error;
    }
    stream_handle again{};
    device_memory memory{};
    neighbor_load load;
    link_rates rates;
    refused = refused && !driver->own_stream(own_stream_use::discards, again).ok() &&
              !driver->mark(0, user_stream).ok() && !driver->passed(0) &&
              !driver->order(user_stream, own).ok() && !driver->open_neighbor(1).available &&
              !driver->neighbor_memory(1, memory).ok() &&
              !driver->read_neighbor_load(0, load).ok() &&
              !driver->measure_links(location::host_id, va_block_bytes, rates).ok() &&
              !driver->migrate(range, location::host()).ok() && driver->device_count() == 0 &&
              driver->capturing(user_stream) == capture_state::unknown;
    driver.reset();
    return refused && fake.take_log().empty();
  }));
  for (auto const& call : seam_calls()) {  // in the parent all goes on
    EXPECT_TRUE(call.make(*driver).ok()) << call.native;
  }
}

TEST_F(CudaDriver, ThatWasOpenedInAChildWorksThere)
{
  EXPECT_TRUE(tests::in_child([&] {
    auto const own = cuda_driver::open(fake.api(), 0, false).driver;
    bool well      = true;
    for (auto const& call : seam_calls()) {
      well = well && call.make(*own).ok();
    }
    return well;
  }));
}

TEST_F(CudaDriver, CaptureModeThatCannotBeChangedIsNotPutBack)
{
  fake.answers["cuThreadExchangeStreamCaptureMode"] = CUDA_ERROR_UNKNOWN;
  EXPECT_TRUE(driver->free_managed(range.address).ok());
  EXPECT_EQ(
    fake.take_log(),
    (log{"cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode", "cuMemFree", "cuCtxPopCurrent"}));
}

TEST_F(CudaDriver, ManagedMemoryIsAttachedGlobally)
{
  std::uintptr_t address = 0;
  EXPECT_TRUE(driver->allocate_managed(4096, address).ok());
  EXPECT_EQ(address, 0x7F00'0000'0000U);
  EXPECT_EQ(fake.attach_flags, static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL));
}

TEST_F(CudaDriver, FailedAllocationLeavesTheAddressAlone)
{
  fake.answers["cuMemAllocManaged"] = CUDA_ERROR_OUT_OF_MEMORY;
  std::uintptr_t address            = 7;
  EXPECT_FALSE(driver->allocate_managed(4096, address).ok());
  EXPECT_EQ(address, 7U);
}

TEST_F(CudaDriver, MemoryPassesOnFreeAndTotal)
{
  device_memory memory{};
  EXPECT_TRUE(driver->memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, 3U);
  EXPECT_EQ(memory.total_bytes, 4U);
}

TEST_F(CudaDriver, PrefetchNamesDeviceOrHost)
{
  EXPECT_TRUE(driver->prefetch(range, location::device(0), user_stream).ok());
  EXPECT_EQ(fake.target.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(fake.target.id, 0);
  EXPECT_TRUE(driver->prefetch(range, location::host(), user_stream).ok());
  EXPECT_EQ(fake.target.type, CU_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(fake.batch, (std::vector<fake_cuda::batch_entry>{{range.address, range.bytes}}));
}

TEST_F(CudaDriver, AdviceNamesWhatAndWhere)
{
  std::vector<std::pair<memory_advice, CUmem_advise>> const names{
    {memory_advice::read_mostly, CU_MEM_ADVISE_SET_READ_MOSTLY},
    {memory_advice::unset_read_mostly, CU_MEM_ADVISE_UNSET_READ_MOSTLY},
    {memory_advice::preferred_location, CU_MEM_ADVISE_SET_PREFERRED_LOCATION},
    {memory_advice::unset_preferred_location, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION},
  };
  for (auto const& [ours, cudas] : names) {
    EXPECT_TRUE(driver->advise(range, ours, location::device(0)).ok());
    EXPECT_EQ(fake.advice, cudas);
    EXPECT_EQ(fake.target.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(fake.batch, (std::vector<fake_cuda::batch_entry>{{range.address, range.bytes}}));
  }
  EXPECT_TRUE(driver->advise(range, memory_advice::preferred_location, location::host()).ok());
  EXPECT_EQ(fake.target.type, CU_MEM_LOCATION_TYPE_HOST);
}

TEST_F(CudaDriver, CaptureStatesAreToldApart)
{
  EXPECT_EQ(driver->capturing(user_stream), capture_state::none);
  for (auto const state : {CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_INVALIDATED}) {
    fake.capture = state;
    EXPECT_EQ(driver->capturing(user_stream), capture_state::capturing);
  }
  fake.answers["cuStreamIsCapturing"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  EXPECT_EQ(driver->capturing(nullptr), capture_state::implied);
  fake.answers["cuStreamIsCapturing"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(driver->capturing(nullptr), capture_state::unknown);
}

TEST_F(CudaDriver, GraphEndsWithTheObjectThatItKeeps)
{
  std::shared_ptr<captured_graph const> first;
  EXPECT_EQ(driver->graph_of(user_stream, first).code, status_code::not_supported);
  fake.capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ASSERT_TRUE(driver->graph_of(user_stream, first).ok());
  auto* const object = fake.graph_object;
  std::shared_ptr<captured_graph const> again;
  ASSERT_TRUE(driver->graph_of(user_stream, again).ok());
  EXPECT_EQ(again, first);
  EXPECT_EQ(fake.graph_object, object);  // one for each capture
  auto const end      = fake.end_object;
  fake.capture_number = 2;
  ASSERT_TRUE(driver->graph_of(user_stream, again).ok());
  EXPECT_NE(again, first);
  end(object);
  EXPECT_TRUE(first->ended());
  EXPECT_FALSE(again->ended());
  fake.end_object(fake.graph_object);
}

TEST_F(CudaDriver, GraphThatKeepsNoObjectIsNotTold)
{
  fake.capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  for (auto const* const call :
       {"cuStreamGetCaptureInfo", "cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    fake.answers = {{call, CUDA_ERROR_UNKNOWN}};
    std::shared_ptr<captured_graph const> graph;
    auto const result = driver->graph_of(user_stream, graph);
    EXPECT_EQ(result.code, status_code::driver_error);
    EXPECT_STREQ(result.call, call);
    EXPECT_EQ(graph, nullptr);
  }
}

}  // namespace
}  // namespace rmm_uvm::cuda
