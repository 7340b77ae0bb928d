// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "context_guard.hpp"

#include <rmm_uvm/cuda/cupti_records.hpp>
#include <rmm_uvm/cuda/cupti_session.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace rmm_uvm::cuda {
namespace {

constexpr std::size_t buffer_bytes          = std::size_t{1} << 20U;
constexpr int most_buffers                  = 64;
constexpr std::uint64_t between_flushes_ns  = 1'000'000'000;
constexpr std::uint32_t completed_records   = 0;  // cuptiActivityFlushAll: not what is under way
constexpr std::uint32_t every_record        = CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
constexpr CUpti_ActivityKind unified_memory = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;

// CUPTI's buffer callbacks carry no user data, and once registered they stay so until the process
// ends, even after a session is gone: whom they serve can only be known statically. The mutex
// guards the listeners too, so that a session cannot go while a buffer is being read.
ranked_mutex<lock_rank::event_records> records_mutex;  // NOLINT
cupti_session* current = nullptr;                      // NOLINT
std::atomic<int> buffers_lent{0};                      // NOLINT

void ignore_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, void const*) {}

/** @brief What is counted: first what every device can tell, then the rest. */
constexpr std::array counter_kinds{CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP,
                                   CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD};
constexpr std::uint32_t basic_kinds = 4;

[[nodiscard]] CUptiResult configure(cupti_api const& api, std::uint32_t count)
{
  std::array<CUpti_ActivityUnifiedMemoryCounterConfig, counter_kinds.size()> configuration{};
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    // Scope and device mean nothing since CUDA 7: every device is counted.
    configuration[i] = {
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE, counter_kinds[i], 0, 1};
  }
  return api.configure_unified_memory_counter(configuration.data(), count);
}

}  // namespace

cupti_session::~cupti_session()
{
  if (forked()) { return; }
  std::lock_guard const control{control_mutex_};
  switch_off();
}

bool cupti_session::forked() const noexcept
{
  auto const process = process_.load(std::memory_order_relaxed);
  return process != 0 && process != ::getpid();
}

availability cupti_session::join(migration_tally& tally, std::vector<int> const& device_ids)
{
  if (forked()) {
    return availability::no("CUPTI was on when this process was forked: start a new process");
  }
  std::lock_guard const control{control_mutex_};
  found_devices found;
  if (auto told = find_devices(device_ids, found); !told.available) { return told; }
  // What is in the buffers belongs to those who listened then.
  if (on_) { flush_records(completed_records); }
  {
    std::lock_guard const records{records_mutex};
    listeners_.push_back({&tally, std::move(found.ids)});
  }
  if (on_) { return availability::yes(); }
  auto result = switch_on(found.contexts.empty() ? nullptr : found.contexts.front());
  if (!result.available) {
    std::lock_guard const records{records_mutex};
    listeners_.clear();
  }
  return result;
}

void cupti_session::leave(migration_tally& tally) noexcept
{
  if (forked()) { return; }
  std::lock_guard const control{control_mutex_};
  auto const is_it = [&](listener const& one) { return one.tally == &tally; };
  if (std::none_of(listeners_.begin(), listeners_.end(), is_it)) { return; }
  if (listeners_.size() == 1) {
    switch_off();
  } else {
    flush_records(every_record);  // those under way will not reach it any more
  }
  std::lock_guard const records{records_mutex};
  std::erase_if(listeners_, is_it);
}

void cupti_session::flush() noexcept
{
  if (forked()) { return; }
  std::unique_lock const control{control_mutex_, std::try_to_lock};
  if (control.owns_lock() && on_ && now_() - flushed_ns_ >= between_flushes_ns) {
    flush_records(every_record);
  }
}

void cupti_session::flush_records(std::uint32_t flag) noexcept
{
  static_cast<void>(cupti_.activity_flush_all(flag));
  flushed_ns_ = now_();
}

availability cupti_session::find_devices(std::vector<int> const& device_ids,
                                         found_devices& found) const
{
  auto const failed = [&](char const* call, CUresult result) {
    char const* name = nullptr;
    cuda_.get_error_name(result, &name);
    return availability::no(std::string{call} + " answered " + (name == nullptr ? "?" : name));
  };
  if (auto const result = cuda_.init(0); result != CUDA_SUCCESS) {
    return failed("cuInit", result);
  }
  int count = 0;
  if (auto const result = cuda_.device_get_count(&count); result != CUDA_SUCCESS) {
    return failed("cuDeviceGetCount", result);
  }
  for (auto const ordinal : device_ids) {
    if (ordinal < 0 || ordinal >= count) {
      return availability::no("there is no device " + std::to_string(ordinal) + ", only " +
                              std::to_string(count));
    }
    CUdevice device{};
    CUcontext context{};
    std::uint32_t id = 0;
    if (auto const result = cuda_.device_get(&device, ordinal); result != CUDA_SUCCESS) {
      return failed("cuDeviceGet", result);
    }
    if (auto const result = cuda_.device_primary_ctx_retain(&context, device);
        result != CUDA_SUCCESS) {
      return failed("cuDevicePrimaryCtxRetain", result);
    }
    // CUPTI numbers devices itself; that its numbers are CUDA's ordinals is nowhere promised.
    auto const known = cupti_.get_device_id(context, &id) == CUPTI_SUCCESS;
    found.ids.push_back(known ? id : static_cast<std::uint32_t>(ordinal));
    found.contexts.push_back(context);
  }
  if (count == 1) { found.ids.clear(); }  // whatever it is called, it can only be this one
  return availability::yes();
}

std::string cupti_session::holder() const noexcept
{
  if (cupti_.subscribe_v2 == nullptr) { return {}; }
  std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1> name{};
  CUpti_SubscriberParams parameters{};
  parameters.structSize        = sizeof parameters;
  parameters.oldSubscriberName = name.data();
  parameters.oldSubscriberSize = CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN;
  CUpti_SubscriberHandle other = nullptr;
  if (cupti_.subscribe_v2(&other, ignore_callback, nullptr, &parameters) == CUPTI_SUCCESS) {
    static_cast<void>(cupti_.unsubscribe(other));
    return {};
  }
  return name.data();
}

void cupti_session::wake(CUcontext context) noexcept
{
  if (context == nullptr) { return; }
  context_guard const guard{cuda_, context, cuda_use{}};
  CUdeviceptr address = 0;
  if (cuda_.mem_alloc_managed(&address, page_bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
    static_cast<void>(cuda_.mem_free(address));
  }
}

availability cupti_session::switch_on(CUcontext context)
{
  {
    std::lock_guard const records{records_mutex};
    if (current != nullptr) {
      return availability::no("this process holds CUPTI already, through another libcupti");
    }
    current = this;
  }
  auto const refused = [&](char const* call, CUptiResult result) {
    auto reason = cupti_refusal(
      cupti_,
      call,
      result,
      result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? holder() : std::string{});
    switch_off();
    return availability::no(std::move(reason));
  };
  // No callback is wanted: subscribing is how CUPTI's clients keep out of each other's way.
  if (auto const result = cupti_.subscribe(&subscriber_, ignore_callback, nullptr);
      result != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    return refused("cuptiSubscribe", result);
  }
  process_.store(::getpid(), std::memory_order_relaxed);
  if (auto const result = cupti_.activity_register_callbacks(buffer_requested, buffer_completed);
      result != CUPTI_SUCCESS) {
    return refused("cuptiActivityRegisterCallbacks", result);
  }
  if (configure(cupti_, counter_kinds.size()) != CUPTI_SUCCESS) {
    if (auto const result = configure(cupti_, basic_kinds); result != CUPTI_SUCCESS) {
      return refused("cuptiActivityConfigureUnifiedMemoryCounter", result);
    }
  }
  if (auto const result = cupti_.activity_enable(unified_memory); result != CUPTI_SUCCESS) {
    return refused("cuptiActivityEnable", result);
  }
  on_         = true;
  flushed_ns_ = now_();
  // Measured on an H200 (CUPTI 13.0): not one record comes before managed memory was allocated
  // while this was on, however much moves, and switching off then takes 2 s instead of 0.03 s.
  wake(context);
  return availability::yes();
}

void cupti_session::switch_off() noexcept
{
  if (on_) {
    flush_records(every_record);
    static_cast<void>(cupti_.activity_disable(unified_memory));
    flush_records(every_record);
  }
  if (subscriber_ != nullptr) { static_cast<void>(cupti_.unsubscribe(subscriber_)); }
  subscriber_ = nullptr;
  on_         = false;
  std::lock_guard const records{records_mutex};
  if (current == this) { current = nullptr; }
}

void cupti_session::buffer_requested(std::uint8_t** buffer,
                                     std::size_t* bytes,
                                     std::size_t* records)
{
  *buffer  = nullptr;  // CUPTI then drops records, and counts them
  *bytes   = 0;
  *records = 0;  // as many as fit
  if (buffers_lent.fetch_add(1, std::memory_order_relaxed) < most_buffers) {
    *buffer = static_cast<std::uint8_t*>(std::malloc(buffer_bytes));  // NOLINT
  }
  if (*buffer == nullptr) {
    buffers_lent.fetch_sub(1, std::memory_order_relaxed);
  } else {
    *bytes = buffer_bytes;
  }
}

void cupti_session::buffer_completed(CUcontext /*context*/,
                                     std::uint32_t /*stream*/,
                                     std::uint8_t* buffer,
                                     std::size_t /*bytes*/,
                                     std::size_t valid_bytes)
{
  {
    std::lock_guard const records{records_mutex};
    if (current != nullptr && buffer != nullptr) { current->take(buffer, valid_bytes); }
  }
  if (buffer == nullptr) { return; }
  std::free(buffer);  // NOLINT
  buffers_lent.fetch_sub(1, std::memory_order_relaxed);
}

void cupti_session::take(std::uint8_t* buffer, std::size_t bytes) noexcept
{
  CUpti_Activity* record = nullptr;
  while (bytes > 0 && cupti_.activity_get_next_record(buffer, bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind != unified_memory) { continue; }
    auto const& counter = *reinterpret_cast<CUpti_ActivityUnifiedMemoryCounter3 const*>(record);
    for (auto const& one : listeners_) {
      count_record(counter, one.devices, *one.tally);
    }
  }
  std::size_t dropped = 0;
  if (cupti_.activity_get_num_dropped_records(nullptr, 0, &dropped) != CUPTI_SUCCESS) { return; }
  for (auto const& one : listeners_) {
    one.tally->count(&cause_totals::dropped_records, dropped);
  }
}

}  // namespace rmm_uvm::cuda
