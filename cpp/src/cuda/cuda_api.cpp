// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/cuda_api.hpp>

#include <dlfcn.h>

#include <string>

namespace rmm_uvm::cuda {
namespace {

/** @brief Resolves single functions; remembers the first one that is missing. */
class resolver {
 public:
  explicit resolver(PFN_cuGetProcAddress_v12000 get) noexcept : get_{get} {}

  template <typename Function>
  void required(Function& function, char const* name, int version)
  {
    if (!optional(function, name, version) && missing_.empty()) { missing_ = name; }
  }

  template <typename Function>
  bool optional(Function& function, char const* name, int version)
  {
    void* address = nullptr;
    auto found    = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    // Legacy default stream: what stream 0 means to RMM and cuDF unless they say otherwise.
    auto const result = get_(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (result != CUDA_SUCCESS || found != CU_GET_PROC_ADDRESS_SUCCESS) { return false; }
    function = reinterpret_cast<Function>(address);
    return function != nullptr;
  }

  [[nodiscard]] std::string const& missing() const noexcept { return missing_; }

 private:
  PFN_cuGetProcAddress_v12000 get_;
  std::string missing_;
};

}  // namespace

loaded_cuda_api load_cuda_api()
{
  loaded_cuda_api result;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    result.loaded = availability::no("libcuda.so.1 cannot be loaded: no NVIDIA driver here");
    return result;
  }
  auto const get =
    reinterpret_cast<PFN_cuGetProcAddress_v12000>(::dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    result.loaded = availability::no("the NVIDIA driver is older than CUDA 12.2");
    return result;
  }
  resolver resolve{get};
  auto& api = result.api;
  resolve.required(api.init, "cuInit", 2000);
  resolve.required(api.driver_get_version, "cuDriverGetVersion", 2020);
  resolve.required(api.get_error_name, "cuGetErrorName", 6000);
  resolve.required(api.device_get_count, "cuDeviceGetCount", 2000);
  resolve.required(api.device_get, "cuDeviceGet", 2000);
  resolve.required(api.device_get_name, "cuDeviceGetName", 2000);
  resolve.required(api.device_get_uuid, "cuDeviceGetUuid", 11040);
  resolve.required(api.device_total_mem, "cuDeviceTotalMem", 3020);
  resolve.required(api.device_get_attribute, "cuDeviceGetAttribute", 2000);
  resolve.required(api.device_can_access_peer, "cuDeviceCanAccessPeer", 4000);
  resolve.required(api.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", 7000);
  resolve.required(api.ctx_enable_peer_access, "cuCtxEnablePeerAccess", 4000);
  resolve.required(api.ctx_get_current, "cuCtxGetCurrent", 4000);
  resolve.required(api.ctx_push_current, "cuCtxPushCurrent", 4000);
  resolve.required(api.ctx_pop_current, "cuCtxPopCurrent", 4000);
  resolve.required(api.mem_get_info, "cuMemGetInfo", 3020);
  resolve.required(api.mem_alloc, "cuMemAlloc", 3020);
  resolve.required(api.mem_alloc_managed, "cuMemAllocManaged", 6000);
  resolve.required(api.mem_free, "cuMemFree", 3020);
  resolve.required(api.mem_prefetch_async, "cuMemPrefetchAsync", 12020);
  resolve.required(api.mem_advise, "cuMemAdvise", 12020);
  resolve.required(api.stream_is_capturing, "cuStreamIsCapturing", 10000);
  resolve.required(api.stream_get_capture_info, "cuStreamGetCaptureInfo", 11030);
  resolve.required(api.user_object_create, "cuUserObjectCreate", 11030);
  resolve.required(api.user_object_release, "cuUserObjectRelease", 11030);
  resolve.required(api.graph_retain_user_object, "cuGraphRetainUserObject", 11030);
  resolve.required(api.stream_create, "cuStreamCreate", 2000);
  resolve.required(api.stream_destroy, "cuStreamDestroy", 4000);
  resolve.required(api.stream_query, "cuStreamQuery", 2000);
  resolve.required(api.stream_synchronize, "cuStreamSynchronize", 2000);
  resolve.required(api.stream_wait_event, "cuStreamWaitEvent", 3020);
  resolve.required(api.event_create, "cuEventCreate", 2000);
  resolve.required(api.event_destroy, "cuEventDestroy", 4000);
  resolve.required(api.event_record, "cuEventRecord", 2000);
  resolve.required(api.event_query, "cuEventQuery", 2000);
  resolve.required(api.event_synchronize, "cuEventSynchronize", 2000);
  resolve.required(api.memcpy_async, "cuMemcpyAsync", 4000);
  resolve.required(api.pointer_get_attributes, "cuPointerGetAttributes", 7000);
  resolve.required(api.ipc_get_mem_handle, "cuIpcGetMemHandle", 4010);
  resolve.required(api.ipc_open_mem_handle, "cuIpcOpenMemHandle", 11000);
  resolve.required(api.ipc_close_mem_handle, "cuIpcCloseMemHandle", 4010);
  resolve.required(api.ipc_get_event_handle, "cuIpcGetEventHandle", 4010);
  resolve.required(api.ipc_open_event_handle, "cuIpcOpenEventHandle", 4010);
  resolve.required(
    api.thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  resolve.optional(api.mem_discard_batch_async, "cuMemDiscardBatchAsync", 13000);
  resolve.optional(
    api.mem_discard_and_prefetch_batch_async, "cuMemDiscardAndPrefetchBatchAsync", 13000);
  if (!resolve.missing().empty()) {
    result.loaded = availability::no("the NVIDIA driver has no " + resolve.missing() +
                                     ": update it (CUDA 12.2 or newer)");
  }
  return result;
}

}  // namespace rmm_uvm::cuda
