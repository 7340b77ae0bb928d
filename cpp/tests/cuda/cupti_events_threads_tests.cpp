// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A libcupti whose own thread hands buffers over while others start, read and stop.
#include "../support/threads.hpp"

#include <rmm_uvm/cuda/cupti_events.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

namespace rmm_uvm::cuda {
namespace {

std::atomic<CUpti_BuffersCallbackRequestFunc> requested{nullptr};   // NOLINT
std::atomic<CUpti_BuffersCallbackCompleteFunc> completed{nullptr};  // NOLINT

void deliver_one_record()
{
  std::uint8_t* buffer = nullptr;
  std::size_t bytes    = 0;
  std::size_t records  = 0;
  requested.load()(&buffer, &bytes, &records);
  if (buffer == nullptr) { return; }
  CUpti_ActivityUnifiedMemoryCounter3 record{};
  record.kind        = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
  record.counterKind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
  record.value       = 4096;
  std::memcpy(buffer, &record, sizeof record);
  completed.load()(nullptr, 0, buffer, bytes, sizeof record);
}

[[nodiscard]] cupti_api minimal_cupti()
{
  cupti_api api;
  api.get_device_id = [](CUcontext, std::uint32_t* id) {
    *id = 0;
    return CUPTI_SUCCESS;
  };
  api.subscribe = [](CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(std::uintptr_t{1});
    return CUPTI_SUCCESS;
  };
  api.unsubscribe                 = [](CUpti_SubscriberHandle) { return CUPTI_SUCCESS; };
  api.activity_register_callbacks = [](CUpti_BuffersCallbackRequestFunc requested_function,
                                       CUpti_BuffersCallbackCompleteFunc completed_function) {
    requested = requested_function;
    completed = completed_function;
    return CUPTI_SUCCESS;
  };
  api.configure_unified_memory_counter = [](CUpti_ActivityUnifiedMemoryCounterConfig*,
                                            std::uint32_t) { return CUPTI_SUCCESS; };
  api.activity_enable                  = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
  api.activity_disable                 = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
  api.activity_flush_all               = [](std::uint32_t) {
    deliver_one_record();
    return CUPTI_SUCCESS;
  };
  api.activity_get_next_record = [](std::uint8_t* buffer, std::size_t, CUpti_Activity** record) {
    if (*record != nullptr) { return CUPTI_ERROR_MAX_LIMIT_REACHED; }
    *record = reinterpret_cast<CUpti_Activity*>(buffer);
    return CUPTI_SUCCESS;
  };
  api.activity_get_num_dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
  };
  return api;
}

[[nodiscard]] cuda_api minimal_cuda()
{
  cuda_api api;
  api.init             = [](unsigned) { return CUDA_SUCCESS; };
  api.device_get_count = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  api.device_get = [](CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  api.device_primary_ctx_retain = [](CUcontext* context, CUdevice) {
    *context = nullptr;
    return CUDA_SUCCESS;
  };
  return api;
}

TEST(ConcurrentCuptiEvents, BuffersComeWhileEventsStartReadAndStop)
{
  auto const session = std::make_shared<cupti_session>(
    minimal_cuda(), minimal_cupti(), [] { return std::uint64_t{0}; });
  cupti_events steady{session, {0}};
  ASSERT_TRUE(steady.start().available);
  std::atomic<std::uint64_t> delivered{0};
  tests::on_threads(4, [&](std::size_t index) {
    for (int round = 0; round < 200; ++round) {
      if (index == 0) {
        deliver_one_record();
        ++delivered;
        continue;
      }
      cupti_events events{session, {0}};
      EXPECT_TRUE(events.start().available);
      static_cast<void>(events.read());
      static_cast<void>(steady.busiest(1));
      events.stop();
    }
  });
  // Every delivery was counted by the one that listened all the time, those of flushes too.
  EXPECT_GE(steady.read().host_to_device_bytes[0], delivered * 4096U);
  EXPECT_EQ(steady.read().host_to_device_bytes[0] % 4096U, 0U);
}

}  // namespace
}  // namespace rmm_uvm::cuda
