// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "context_guard.hpp"
#include "cuda_values.hpp"
#include "ipc_handles.hpp"
#include "staged_copies.hpp"

#include <rmm_uvm/cuda/cuda_transfers.hpp>

#include <array>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

/** @brief Refuses a stream that is being captured: whatever it waits for would be captured too. */
[[nodiscard]] status refuse_captured(cuda_api const& api, stream_handle stream) noexcept
{
  CUstreamCaptureStatus state{};
  auto const asked = api.stream_is_capturing(as_cuda(stream), &state);
  // Implicit: another stream captures, whose capture a call here would spoil.
  if (asked != CUDA_SUCCESS && asked != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    return as_status(asked, "cuStreamIsCapturing");  // of a kernel that failed, say
  }
  if (asked == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_NONE) { return {}; }
  return {status_code::not_supported, 0, "cuStreamIsCapturing"};
}

}  // namespace

/** @brief Runs calls in our context. @return what pushing it answered, if that failed */
template <typename Call>
status cuda_transfers::in_context(Call const& call) const noexcept
{
  context_guard const guard{driver_->api(), driver_->context(), driver_->use()};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  return call(driver_->api());
}

/** @brief A pooled event; recorded once, asked and waited for any number of times. */
// Made before its event, so that running out of memory in between loses none.
class cuda_transfers::event_mark final : public transfer_mark {
 public:
  explicit event_mark(std::shared_ptr<cuda_transfers> maker) noexcept : maker_{std::move(maker)} {}
  ~event_mark() override
  {
    if (event_ != nullptr) { maker_->give_back(event_); }
  }
  event_mark(event_mark const&)            = delete;
  event_mark& operator=(event_mark const&) = delete;
  event_mark(event_mark&&)                 = delete;
  event_mark& operator=(event_mark&&)      = delete;

  /** @brief Takes an event and records it in the own stream. */
  status record() noexcept
  {
    return maker_->in_context([&](cuda_api const& api) {
      if (auto const stream = maker_->make_stream(); !stream.ok()) { return stream; }
      if (auto const taken = maker_->take_event(event_); !taken.ok()) { return taken; }
      return as_status(api.event_record(event_, maker_->last_stream()), "cuEventRecord");
    });
  }
  status done(bool& reached) noexcept override
  {
    return maker_->in_context([&](cuda_api const& api) {
      auto const result = api.event_query(event_);
      if (result == CUDA_ERROR_NOT_READY) {
        reached = false;
        return status{};
      }
      if (result == CUDA_SUCCESS) { reached = true; }
      return as_status(result, "cuEventQuery");
    });
  }
  status wait() noexcept override
  {
    return maker_->in_context([&](cuda_api const& api) {
      return as_status(api.event_synchronize(event_), "cuEventSynchronize");
    });
  }
  status make_wait(stream_handle stream) noexcept override
  {
    return maker_->in_context([&](cuda_api const& api) {
      if (auto const refused = refuse_captured(api, stream); !refused.ok()) { return refused; }
      return as_status(api.stream_wait_event(as_cuda(stream), event_, 0), "cuStreamWaitEvent");
    });
  }

 private:
  std::shared_ptr<cuda_transfers> maker_;
  CUevent event_{nullptr};
};

/** @brief An event made here, or opened; either way it is destroyed here. */
class cuda_transfers::shared_event final : public ipc_event {
 public:
  explicit shared_event(std::shared_ptr<cuda_transfers> maker) noexcept : maker_{std::move(maker)}
  {
  }
  ~shared_event() override
  {
    if (event_ == nullptr || !maker_->use_.allowed()) { return; }
    static_cast<void>(maker_->in_context(
      [&](cuda_api const& api) { return as_status(api.event_destroy(event_), "cuEventDestroy"); }));
  }
  shared_event(shared_event const&)            = delete;
  shared_event& operator=(shared_event const&) = delete;
  shared_event(shared_event&&)                 = delete;
  shared_event& operator=(shared_event&&)      = delete;

  /** @brief Makes the event, and what others open it with. */
  status make() noexcept
  {
    return maker_->in_context([&](cuda_api const& api) {
      auto const created =
        api.event_create(&event_, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
      if (created != CUDA_SUCCESS) { return as_status(created, "cuEventCreate"); }
      CUipcEventHandle native{};
      auto const asked = api.ipc_get_event_handle(&native, event_);
      handle_          = from_native(native);
      return as_status(asked, "cuIpcGetEventHandle");
    });
  }
  /** @brief Opens an event of another process. */
  status open(ipc_handle const& handle) noexcept
  {
    handle_ = handle;
    return maker_->in_context([&](cuda_api const& api) {
      return as_status(api.ipc_open_event_handle(&event_, as_native<CUipcEventHandle>(handle)),
                       "cuIpcOpenEventHandle");
    });
  }
  [[nodiscard]] ipc_handle const& handle() const noexcept override { return handle_; }
  status record(stream_handle stream) noexcept override
  {
    return maker_->in_context([&](cuda_api const& api) {
      if (auto const refused = refuse_captured(api, stream); !refused.ok()) { return refused; }
      return as_status(api.event_record(event_, as_cuda(stream)), "cuEventRecord");
    });
  }
  status make_wait(stream_handle stream) noexcept override
  {
    return maker_->in_context([&](cuda_api const& api) {
      if (auto const refused = refuse_captured(api, stream); !refused.ok()) { return refused; }
      return as_status(api.stream_wait_event(as_cuda(stream), event_, 0), "cuStreamWaitEvent");
    });
  }

 private:
  std::shared_ptr<cuda_transfers> maker_;
  CUevent event_{nullptr};
  ipc_handle handle_{};
};

cuda_transfers::cuda_transfers(std::shared_ptr<cuda_driver> driver) : driver_{std::move(driver)} {}

cuda_transfers::~cuda_transfers()
{
  if (!use_.allowed()) { return; }
  static_cast<void>(in_context([&](cuda_api const& api) {
    for (auto const& [address, openings] : opened_) {
      for (std::size_t i = 0; i < openings; ++i) {
        static_cast<void>(api.ipc_close_mem_handle(address));
      }
    }
    for (auto* const event : spare_events_) {
      static_cast<void>(api.event_destroy(event));
    }
    if (stream_ != nullptr) { static_cast<void>(api.stream_destroy(stream_)); }
    if (staged_ != nullptr) { staged_->destroy(api); }
    return status{};
  }));
}

char const* cuda_transfers::error_name(int native_error) const noexcept
{
  char const* name  = nullptr;
  auto const result = driver_->api().get_error_name(static_cast<CUresult>(native_error), &name);
  return native_error != 0 && result == CUDA_SUCCESS && name != nullptr ? name : "";
}

status cuda_transfers::find_memory(std::uintptr_t address,
                                   std::optional<memory_kind>& found) noexcept
{
  // Not one attribute at a time: that refuses an address that CUDA does not know, with an error
  // which tools report; this way its type is 0.
  unsigned type        = 0;
  unsigned managed     = 0;
  unsigned ipc_capable = 0;
  CUdeviceptr base     = 0;
  std::size_t bytes    = 0;
  int device_id        = 0;
  std::array<CUpointer_attribute, 6> attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                                CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                                CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                                CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                                CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 6> values{&type, &managed, &ipc_capable, &base, &bytes, &device_id};
  auto const asked = in_context([&](cuda_api const& api) {
    return as_status(
      api.pointer_get_attributes(
        static_cast<unsigned>(attributes.size()), attributes.data(), values.data(), address),
      "cuPointerGetAttributes");
  });
  if (!asked.ok()) { return asked; }
  found.reset();
  if (type != 0) {
    found = memory_kind{managed != 0, ipc_capable != 0 && managed == 0, base, bytes, device_id};
  }
  return {};
}

status cuda_transfers::make_stream() noexcept
{
  std::lock_guard const lock{mutex_};
  if (stream_ != nullptr) { return {}; }
  return as_status(driver_->api().stream_create(&stream_, CU_STREAM_NON_BLOCKING),
                   "cuStreamCreate");
}

/** @brief The stream in which copies come to an end. */
CUstream cuda_transfers::last_stream() const noexcept
{
  auto* const onward = onward_.load();
  return onward != nullptr ? onward : stream_;
}

status cuda_transfers::take_event(CUevent& event) noexcept
{
  {
    std::lock_guard const lock{mutex_};
    if (!spare_events_.empty()) {
      event = spare_events_.back();
      spare_events_.pop_back();
      return {};
    }
  }
  return as_status(driver_->api().event_create(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

/** @brief Keeps an event for the next one who needs one; work that waits for it is not disturbed.*/
void cuda_transfers::give_back(CUevent event) noexcept
{
  if (!use_.allowed()) { return; }
  try {
    std::lock_guard const lock{mutex_};
    spare_events_.push_back(event);
  } catch (...) {
    static_cast<void>(in_context(
      [&](cuda_api const& api) { return as_status(api.event_destroy(event), "cuEventDestroy"); }));
  }
}

status cuda_transfers::wait_for(stream_handle stream) noexcept
{
  return in_context([&](cuda_api const& api) {
    if (auto const refused = refuse_captured(api, stream); !refused.ok()) { return refused; }
    if (auto const made = make_stream(); !made.ok()) { return made; }
    CUevent event = nullptr;
    if (auto const taken = take_event(event); !taken.ok()) { return taken; }
    auto result = as_status(api.event_record(event, as_cuda(stream)), "cuEventRecord");
    if (result.ok()) {
      result = as_status(api.stream_wait_event(stream_, event, 0), "cuStreamWaitEvent");
    }
    // Marks, too, stand for what was waited for.
    if (auto* const onward = onward_.load(); result.ok() && onward != nullptr) {
      result = as_status(api.stream_wait_event(onward, event, 0), "cuStreamWaitEvent");
    }
    // May be recorded anew as soon as the wait is issued.
    give_back(event);
    return result;
  });
}

status cuda_transfers::copy(std::span<transfer const> copies) noexcept
{
  return in_context([&](cuda_api const& api) {
    if (auto const made = make_stream(); !made.ok()) { return made; }
    std::unique_lock lock{staging_, std::defer_lock};  // a full queue is waited for: not for direct
    if (onward_.load() != nullptr) { lock.lock(); }
    auto* const staged = lock.owns_lock() ? staged_.get() : nullptr;
    for (auto const& one : copies) {
      if (one.bytes == 0) { continue; }
      auto const result =
        staged != nullptr
          ? staged->copy(api, stream_, one)
          : as_status(api.memcpy_async(one.to, one.from, one.bytes, stream_), "cuMemcpyAsync");
      if (!result.ok()) { return result; }
    }
    return status{};
  });
}

status cuda_transfers::take_staging(std::size_t bytes) noexcept
try {
  auto fresh = std::make_unique<staged_copies>();  // before anything is taken
  return in_context([&](cuda_api const& api) {
    if (auto const made = make_stream(); !made.ok()) { return made; }
    std::lock_guard const lock{staging_};
    if (staged_ != nullptr) { return status{status_code::invalid_value, 0, "take_staging"}; }
    auto const made = fresh->make(api, stream_, bytes);
    if (made.ok()) {
      onward_ = fresh->onward();
      staged_ = std::move(fresh);
    }
    return made;
  });
} catch (...) {
  return {status_code::out_of_memory, 0, "take_staging"};
}

status cuda_transfers::mark(std::shared_ptr<transfer_mark>& made) noexcept
try {
  auto fresh          = std::make_shared<event_mark>(shared_from_this());
  auto const recorded = fresh->record();
  if (recorded.ok()) { made = std::move(fresh); }
  return recorded;
} catch (...) {
  return {status_code::out_of_memory, 0, "cuEventRecord"};
}

status cuda_transfers::ipc_memory_handle(std::uintptr_t base, ipc_handle& handle) noexcept
{
  CUipcMemHandle native{};
  auto const asked = in_context([&](cuda_api const& api) {
    return as_status(api.ipc_get_mem_handle(&native, base), "cuIpcGetMemHandle");
  });
  if (asked.ok()) { handle = from_native(native); }
  return asked;
}

status cuda_transfers::open_ipc_memory(ipc_handle const& handle, std::uintptr_t& address) noexcept
{
  CUdeviceptr found = 0;
  auto const asked  = in_context([&](cuda_api const& api) {
    return as_status(
      api.ipc_open_mem_handle(
        &found, as_native<CUipcMemHandle>(handle), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
      "cuIpcOpenMemHandle");
  });
  if (!asked.ok()) { return asked; }
  try {
    std::lock_guard const lock{mutex_};
    ++opened_[found];
  } catch (...) {
    static_cast<void>(in_context([&](cuda_api const& api) {
      return as_status(api.ipc_close_mem_handle(found), "cuIpcCloseMemHandle");
    }));
    return {status_code::out_of_memory, 0, "cuIpcOpenMemHandle"};
  }
  address = found;
  return {};
}

status cuda_transfers::close_ipc_memory(std::uintptr_t address) noexcept
{
  {
    std::lock_guard const lock{mutex_};
    auto const it = opened_.find(address);
    if (it == opened_.end()) { return {status_code::invalid_value, 0, "cuIpcCloseMemHandle"}; }
    if (--it->second == 0) { opened_.erase(it); }
  }
  return in_context([&](cuda_api const& api) {
    return as_status(api.ipc_close_mem_handle(address), "cuIpcCloseMemHandle");
  });
}

status cuda_transfers::make_ipc_event(std::shared_ptr<ipc_event>& made) noexcept
try {
  auto fresh       = std::make_shared<shared_event>(shared_from_this());
  auto const asked = fresh->make();
  if (asked.ok()) { made = std::move(fresh); }
  return asked;
} catch (...) {
  return {status_code::out_of_memory, 0, "cuEventCreate"};
}

status cuda_transfers::open_ipc_event(ipc_handle const& handle,
                                      std::shared_ptr<ipc_event>& opened) noexcept
try {
  auto fresh       = std::make_shared<shared_event>(shared_from_this());
  auto const asked = fresh->open(handle);
  if (asked.ok()) { opened = std::move(fresh); }
  return asked;
} catch (...) {
  return {status_code::out_of_memory, 0, "cuIpcOpenEventHandle"};
}

}  // namespace rmm_uvm::cuda
