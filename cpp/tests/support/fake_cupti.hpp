// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cupti_api.hpp>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

using unified_memory_record = CUpti_ActivityUnifiedMemoryCounter3;

/** @brief A record of `bytes` at `address` that moved; only what the tests look at is set. */
[[nodiscard]] inline unified_memory_record moved(CUpti_ActivityUnifiedMemoryCounterKind kind,
                                                 std::uint64_t address,
                                                 std::uint64_t bytes,
                                                 std::uint32_t cause,
                                                 std::uint32_t device = 0)
{
  unified_memory_record record{};
  record.kind        = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
  record.counterKind = kind;
  record.address     = address;
  record.value       = bytes;
  record.flags       = cause;
  bool const there   = kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
  record.srcId       = there ? CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID : device;
  record.dstId       = there ? device : CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID;
  return record;
}

/**
 * @brief A libcupti that the test writes the answers for; it records calls.
 *
 * What `pending` holds is delivered at the next flush, as CUPTI does it. The table holds plain
 * functions, so one fake is active at a time.
 */
class fake_cupti {
 public:
  fake_cupti() { active = this; }
  ~fake_cupti() { active = nullptr; }
  fake_cupti(fake_cupti const&)            = delete;
  fake_cupti& operator=(fake_cupti const&) = delete;
  fake_cupti(fake_cupti&&)                 = delete;
  fake_cupti& operator=(fake_cupti&&)      = delete;

  /** @brief The table; its functions answer what `answers` says, and success otherwise. */
  [[nodiscard]] static cuda::cupti_api api();

  /** @brief The calls since the last time, in order. */
  [[nodiscard]] std::vector<std::string> take_log() { return std::exchange(log, {}); }

  /** @brief Records a call. @return the answer for its name */
  CUptiResult answer(std::string const& call, std::string const& detail = {})
  {
    log.push_back(detail.empty() ? call : call + " " + detail);
    auto const it = answers.find(call);
    return it == answers.end() ? CUPTI_SUCCESS : it->second;
  }

  /** @brief Hands all pending records over in one buffer; without a buffer they are dropped. */
  void deliver()
  {
    if (pending.empty() || requested == nullptr) { return; }
    std::uint8_t* buffer = nullptr;
    std::size_t bytes    = 0;
    std::size_t most     = 0;
    requested(&buffer, &bytes, &most);
    auto const valid = pending.size() * sizeof(unified_memory_record);
    if (buffer == nullptr || bytes < valid) {
      dropped += pending.size();
    } else {
      std::memcpy(buffer, pending.data(), valid);
    }
    pending.clear();
    if (buffer != nullptr) { completed(nullptr, 0, buffer, bytes, bytes < valid ? 0 : valid); }
  }

  std::map<std::string, CUptiResult> answers;  ///< by call
  std::vector<std::string> log;                ///< see `take_log`
  std::vector<unified_memory_record> pending;  ///< not delivered yet
  std::size_t dropped{0};                      ///< records, since CUPTI was last asked
  std::uint32_t first_device_id{0};            ///< CUPTI's number of the first context
  std::uint32_t configured{0};                 ///< counters, at the last configuration
  bool only_basic_counters{false};             ///< refuse to configure more than four
  std::string_view holder;                     ///< name that the other client goes by
  CUpti_BuffersCallbackRequestFunc requested{nullptr};
  CUpti_BuffersCallbackCompleteFunc completed{nullptr};

  static inline fake_cupti* active = nullptr;  ///< the one that the table's functions use
};

inline cuda::cupti_api fake_cupti::api()
{
  cuda::cupti_api api;
  api.get_result_string = [](CUptiResult, char const** name) {
    *name = "CUPTI_ERROR_OF_THE_TEST";
    return CUPTI_SUCCESS;
  };
  api.get_device_id = [](CUcontext context, std::uint32_t* id) {
    // Contexts of the fake libcuda are numbered from 0x100.
    auto const ordinal = reinterpret_cast<std::uintptr_t>(context) - 0x100;
    *id                = active->first_device_id + static_cast<std::uint32_t>(ordinal);
    return active->answer("cuptiGetDeviceId");
  };
  api.subscribe = [](CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(std::uintptr_t{1});
    return active->answer("cuptiSubscribe");
  };
  api.subscribe_v2 =
    [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, CUpti_SubscriberParams* parameters) {
      active->holder.copy(parameters->oldSubscriberName, parameters->oldSubscriberSize);
      return active->answer("cuptiSubscribe_v2");
    };
  api.unsubscribe = [](CUpti_SubscriberHandle) { return active->answer("cuptiUnsubscribe"); };
  api.activity_register_callbacks = [](CUpti_BuffersCallbackRequestFunc requested_function,
                                       CUpti_BuffersCallbackCompleteFunc completed_function) {
    active->requested = requested_function;
    active->completed = completed_function;
    return active->answer("cuptiActivityRegisterCallbacks");
  };
  api.configure_unified_memory_counter = [](CUpti_ActivityUnifiedMemoryCounterConfig*,
                                            std::uint32_t count) {
    active->configured = count;
    auto const result  = active->answer("configure", std::to_string(count));
    return active->only_basic_counters && count > 4 ? CUPTI_ERROR_INVALID_PARAMETER : result;
  };
  api.activity_enable  = [](CUpti_ActivityKind) { return active->answer("cuptiActivityEnable"); };
  api.activity_disable = [](CUpti_ActivityKind) { return active->answer("cuptiActivityDisable"); };
  api.activity_flush_all = [](std::uint32_t flag) {
    auto const result = active->answer("flush", flag == 0 ? "completed" : "all");
    active->deliver();
    return result;
  };
  api.activity_get_next_record =
    [](std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
      auto* const next = *record == nullptr ? buffer
                                            : reinterpret_cast<std::uint8_t*>(*record) +
                                                sizeof(unified_memory_record);
      if (next + sizeof(unified_memory_record) > buffer + bytes) {
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
      }
      *record = reinterpret_cast<CUpti_Activity*>(next);
      return CUPTI_SUCCESS;
    };
  api.activity_get_num_dropped_records = [](CUcontext, std::uint32_t, std::size_t* count) {
    *count = std::exchange(active->dropped, 0);
    return CUPTI_SUCCESS;
  };
  return api;
}

}  // namespace rmm_uvm::tests
