// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_api.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

inline auto* const side_stream   = reinterpret_cast<CUstream>(std::uintptr_t{0x51DE});
inline auto* const onward_stream = reinterpret_cast<CUstream>(std::uintptr_t{0x51DF});
inline auto* const user_stream   = reinterpret_cast<CUstream>(std::uintptr_t{0x0A5E});

/** @brief How streams are called in the log. */
[[nodiscard]] inline std::string name_of(CUstream stream)
{
  if (stream == nullptr) { return "0"; }
  if (stream == CU_STREAM_LEGACY) { return "legacy"; }
  if (stream == CU_STREAM_PER_THREAD) { return "per-thread"; }
  if (stream == onward_stream) { return "onward"; }
  return stream == side_stream ? "side" : "user";
}

/** @brief How events are called in the log: event1 is the first that was made. */
[[nodiscard]] inline std::string name_of(CUevent event)
{
  return "event" + std::to_string(reinterpret_cast<std::uintptr_t>(event));
}

/** @brief The primary context of device `ordinal`. */
[[nodiscard]] inline CUcontext context_of(int ordinal)
{
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(0x100 + ordinal));
}

/**
 * @brief A libcuda that the test writes the answers for; it records calls, contexts and streams.
 *
 * The table holds plain functions, so one fake is active at a time. Not thread-safe.
 */
class fake_cuda {
 public:
  using batch_entry = std::pair<CUdeviceptr, std::size_t>;

  fake_cuda() { active = this; }
  ~fake_cuda() { active = nullptr; }
  fake_cuda(fake_cuda const&)            = delete;
  fake_cuda& operator=(fake_cuda const&) = delete;
  fake_cuda(fake_cuda&&)                 = delete;
  fake_cuda& operator=(fake_cuda&&)      = delete;

  /** @brief The table; its functions answer what `answers` says, and success otherwise. */
  [[nodiscard]] static cuda::cuda_api api();

  /** @brief The calls since the last time, in order: their names, for stream work also where. */
  [[nodiscard]] std::vector<std::string> take_log() { return std::exchange(log, {}); }

  /** @brief Records a call. @return the answer for its name */
  CUresult answer(std::string const& call, std::string const& detail = {})
  {
    log.push_back(detail.empty() ? call : call + " " + detail);
    auto const it = answers.find(call);
    if (it == answers.end()) { return CUDA_SUCCESS; }
    if (auto const left = successes.find(call); left != successes.end() && left->second > 0) {
      --left->second;
      return CUDA_SUCCESS;
    }
    return it->second;
  }

  /** @brief As `answer`, for calls that must find our context and relaxed capture checks. */
  CUresult answer_in_context(std::string const& call, std::string const& detail = {})
  {
    called_without_context |= contexts.empty();
    called_in_strict_mode |= mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return answer(call, detail);
  }

  std::map<std::string, CUresult> answers;       ///< by call
  std::map<std::string, std::size_t> successes;  ///< of a call, before its answer is given
  std::vector<std::string> log;                  ///< see `take_log`
  int device_count{2};
  std::set<std::string> apart;  ///< pairs without peer access: "0 1" is that of 0 to 1
  std::map<CUdevice_attribute, int> attributes{{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1}};
  CUstreamCaptureStatus capture{CU_STREAM_CAPTURE_STATUS_NONE};
  CUstreamCaptureMode mode{CU_STREAM_CAPTURE_MODE_GLOBAL};  ///< of the calling thread
  std::vector<CUcontext> contexts;     ///< of the calling thread, the current one last
  bool called_without_context{false};  ///< a call came that found no context
  bool called_in_strict_mode{false};   ///< a call came while capture checks were not relaxed
  std::vector<batch_entry> batch;      ///< ranges of the last batch call
  CUmemLocation target{};              ///< of the last prefetch, single or batch, or advice
  CUmem_advise advice{};               ///< the last one
  unsigned attach_flags{0};            ///< of the last managed allocation
  unsigned side_stream_flags{0};       ///< the side stream was made with
  CUstream next_stream{side_stream};   ///< that is made; each one after the first is onward_stream
  std::uintptr_t events{0};            ///< made so far
  std::vector<unsigned> event_flags;   ///< that they were made with
  std::map<CUpointer_attribute, std::uint64_t> memory;  ///< what every address is; none: unknown
  cuuint64_t capture_number{1};                         ///< of the capture that is under way
  void* graph_object{nullptr};                          ///< that the graph keeps
  CUhostFn end_object{nullptr};                         ///< what ends it
  unsigned open_flags{0};                               ///< IPC memory was last opened with

  static inline fake_cuda* active = nullptr;  ///< the one that the table's functions use
};

inline cuda::cuda_api fake_cuda::api()
{
  cuda::cuda_api api;
  api.init               = [](unsigned) { return active->answer("cuInit"); };
  api.driver_get_version = [](int* version) {
    *version = 13000;
    return active->answer("cuDriverGetVersion");
  };
  api.get_error_name = [](CUresult, char const** name) {
    *name = "CUDA_ERROR_OF_THE_TEST";
    return CUDA_SUCCESS;
  };
  api.device_get_count = [](int* count) {
    *count = active->device_count;
    return active->answer("cuDeviceGetCount");
  };
  api.device_get = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return active->answer("cuDeviceGet");
  };
  api.device_get_name = [](char* name, int length, CUdevice) {
    std::strncpy(name, "fake GPU", static_cast<std::size_t>(length));
    return active->answer("cuDeviceGetName");
  };
  api.device_get_uuid = [](CUuuid* uuid, CUdevice) {
    std::memset(uuid->bytes, 0x11, sizeof uuid->bytes);
    return active->answer("cuDeviceGetUuid");
  };
  api.device_total_mem = [](std::size_t* bytes, CUdevice) {
    *bytes = std::size_t{1} << 30U;
    return active->answer("cuDeviceTotalMem");
  };
  api.device_get_attribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = active->attributes[which];
    return active->answer("cuDeviceGetAttribute");
  };
  api.device_can_access_peer = [](int* can, CUdevice device, CUdevice peer) {
    auto const pair = std::to_string(device) + " " + std::to_string(peer);
    *can            = active->apart.contains(pair) ? 0 : 1;
    return active->answer("cuDeviceCanAccessPeer", pair);
  };
  api.ctx_enable_peer_access = [](CUcontext peer, unsigned) {
    auto const name = [](CUcontext context) {
      return std::to_string(reinterpret_cast<std::uintptr_t>(context) - 0x100);
    };
    return active->answer_in_context("cuCtxEnablePeerAccess",
                                     name(active->contexts.back()) + " " + name(peer));
  };
  api.device_primary_ctx_retain = [](CUcontext* context, CUdevice device) {
    *context = context_of(device);
    return active->answer("cuDevicePrimaryCtxRetain", std::to_string(device));
  };
  api.ctx_get_current = [](CUcontext* context) {
    *context = active->contexts.empty() ? nullptr : active->contexts.back();
    return active->answer("cuCtxGetCurrent");
  };
  api.ctx_push_current = [](CUcontext context) {
    auto const result = active->answer("cuCtxPushCurrent");
    if (result == CUDA_SUCCESS) { active->contexts.push_back(context); }
    return result;
  };
  api.ctx_pop_current = [](CUcontext* context) {
    *context = active->contexts.back();
    active->contexts.pop_back();
    return active->answer("cuCtxPopCurrent");
  };
  api.thread_exchange_stream_capture_mode = [](CUstreamCaptureMode* mode) {
    auto const result = active->answer("cuThreadExchangeStreamCaptureMode");
    if (result == CUDA_SUCCESS) { std::swap(*mode, active->mode); }
    return result;
  };
  api.mem_get_info = [](std::size_t* free_bytes, std::size_t* total_bytes) {
    *free_bytes  = 3;
    *total_bytes = 4;
    return active->answer_in_context("cuMemGetInfo");
  };
  api.mem_alloc = [](CUdeviceptr* address, std::size_t bytes) {
    auto const result = active->answer_in_context("cuMemAlloc", std::to_string(bytes));
    if (result == CUDA_SUCCESS) { *address = 0x10000; }
    return result;
  };
  api.mem_alloc_managed = [](CUdeviceptr* address, std::size_t, unsigned flags) {
    *address             = 0x7F00'0000'0000;
    active->attach_flags = flags;
    return active->answer_in_context("cuMemAllocManaged");
  };
  api.mem_free = [](CUdeviceptr) { return active->answer_in_context("cuMemFree"); };
  api.mem_prefetch_async =
    [](CUdeviceptr address, std::size_t bytes, CUmemLocation where, unsigned, CUstream stream) {
      active->batch  = {{address, bytes}};
      active->target = where;
      return active->answer_in_context("cuMemPrefetchAsync", name_of(stream));
    };
  api.mem_advise =
    [](CUdeviceptr address, std::size_t bytes, CUmem_advise what, CUmemLocation where) {
      active->batch  = {{address, bytes}};
      active->target = where;
      active->advice = what;
      return active->answer_in_context("cuMemAdvise");
    };
  api.stream_is_capturing = [](CUstream stream, CUstreamCaptureStatus* state) {
    *state = active->capture;
    return active->answer_in_context("cuStreamIsCapturing", name_of(stream));
  };
  api.stream_get_capture_info = [](CUstream stream,
                                   CUstreamCaptureStatus* state,
                                   cuuint64_t* number,
                                   CUgraph*,
                                   CUgraphNode const**,
                                   std::size_t*) {
    *state  = active->capture;
    *number = active->capture_number;
    return active->answer_in_context("cuStreamGetCaptureInfo", name_of(stream));
  };
  api.user_object_create = [](CUuserObject*, void* object, CUhostFn end, unsigned, unsigned) {
    auto const result = active->answer_in_context("cuUserObjectCreate");
    if (result == CUDA_SUCCESS) {
      active->graph_object = object;
      active->end_object   = end;
    }
    return result;
  };
  api.user_object_release = [](CUuserObject, unsigned) {
    active->end_object(active->graph_object);
    return active->answer_in_context("cuUserObjectRelease");
  };
  api.graph_retain_user_object = [](CUgraph, CUuserObject, unsigned, unsigned) {
    return active->answer_in_context("cuGraphRetainUserObject");
  };
  api.stream_create = [](CUstream* stream, unsigned flags) {
    auto const result = active->answer_in_context("cuStreamCreate");
    if (result == CUDA_SUCCESS) { *stream = std::exchange(active->next_stream, onward_stream); }
    active->side_stream_flags = flags;
    return result;
  };
  api.stream_destroy = [](CUstream stream) {
    return active->answer_in_context("cuStreamDestroy", name_of(stream));
  };
  api.stream_query = [](CUstream stream) {
    return active->answer_in_context("cuStreamQuery", name_of(stream));
  };
  api.stream_synchronize = [](CUstream stream) {
    return active->answer_in_context("cuStreamSynchronize", name_of(stream));
  };
  api.stream_wait_event = [](CUstream stream, CUevent event, unsigned) {
    return active->answer_in_context("cuStreamWaitEvent", name_of(stream) + " " + name_of(event));
  };
  api.event_create = [](CUevent* event, unsigned flags) {
    auto const result = active->answer_in_context("cuEventCreate");
    if (result == CUDA_SUCCESS) {
      *event = reinterpret_cast<CUevent>(++active->events);
      active->event_flags.push_back(flags);
    }
    return result;
  };
  api.event_destroy = [](CUevent event) {
    return active->answer_in_context("cuEventDestroy", name_of(event));
  };
  api.event_record = [](CUevent event, CUstream stream) {
    return active->answer_in_context("cuEventRecord", name_of(event) + " " + name_of(stream));
  };
  api.event_query = [](CUevent event) {
    return active->answer_in_context("cuEventQuery", name_of(event));
  };
  api.event_synchronize = [](CUevent event) {
    return active->answer_in_context("cuEventSynchronize", name_of(event));
  };
  api.memcpy_async = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return active->answer_in_context("cuMemcpyAsync",
                                     std::to_string(to) + " " + std::to_string(from) + " " +
                                       std::to_string(bytes) + " " + name_of(stream));
  };
  api.pointer_get_attributes =
    [](unsigned count, CUpointer_attribute* which, void** values, CUdeviceptr address) {
      for (unsigned i = 0; i < count; ++i) {
        auto const it = active->memory.find(which[i]);
        if (it == active->memory.end()) { continue; }
        bool const wide = which[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                          which[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
        std::memcpy(values[i], &it->second, wide ? sizeof(std::uint64_t) : sizeof(unsigned));
      }
      return active->answer_in_context("cuPointerGetAttributes", std::to_string(address));
    };
  api.ipc_get_mem_handle = [](CUipcMemHandle* handle, CUdeviceptr address) {
    std::memcpy(handle->reserved, &address, sizeof address);
    return active->answer_in_context("cuIpcGetMemHandle", std::to_string(address));
  };
  api.ipc_open_mem_handle = [](CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    std::memcpy(address, handle.reserved, sizeof *address);
    *address += 1;  // mapped elsewhere
    active->open_flags = flags;
    return active->answer_in_context("cuIpcOpenMemHandle");
  };
  api.ipc_close_mem_handle = [](CUdeviceptr address) {
    return active->answer_in_context("cuIpcCloseMemHandle", std::to_string(address));
  };
  api.ipc_get_event_handle = [](CUipcEventHandle* handle, CUevent event) {
    std::memcpy(handle->reserved, &event, sizeof event);
    return active->answer_in_context("cuIpcGetEventHandle", name_of(event));
  };
  api.ipc_open_event_handle = [](CUevent* event, CUipcEventHandle handle) {
    std::memcpy(event, handle.reserved, sizeof *event);
    return active->answer_in_context("cuIpcOpenEventHandle", name_of(*event));
  };
  api.mem_discard_batch_async =
    [](CUdeviceptr* addresses, std::size_t* sizes, std::size_t count, auto, CUstream stream) {
      active->batch.clear();
      for (std::size_t i = 0; i < count; ++i) {
        active->batch.emplace_back(addresses[i], sizes[i]);
      }
      return active->answer_in_context("cuMemDiscardBatchAsync", name_of(stream));
    };
  api.mem_discard_and_prefetch_batch_async = [](CUdeviceptr* addresses,
                                                std::size_t* sizes,
                                                std::size_t count,
                                                CUmemLocation* where,
                                                std::size_t*,
                                                std::size_t,
                                                auto,
                                                CUstream stream) {
    active->batch.clear();
    for (std::size_t i = 0; i < count; ++i) {
      active->batch.emplace_back(addresses[i], sizes[i]);
    }
    active->target = *where;
    return active->answer_in_context("cuMemDiscardAndPrefetchBatchAsync", name_of(stream));
  };
  return api;
}

}  // namespace rmm_uvm::tests
