// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>

#include <cuda.h>
#include <cudaTypedefs.h>

namespace rmm_uvm::cuda {

/**
 * @brief The functions of libcuda that we call, by exact version.
 *
 * A name alone is not enough: plain `dlsym("cuMemPrefetchAsync")` gives the version of CUDA 8,
 * which would read the location argument as a device ordinal and the flags as the stream. Functions
 * that only newer drivers have are null on older ones. Tests fill the table with fakes.
 */
struct cuda_api {
  PFN_cuInit_v2000 init{};
  PFN_cuDriverGetVersion_v2020 driver_get_version{};
  PFN_cuGetErrorName_v6000 get_error_name{};
  PFN_cuDeviceGetCount_v2000 device_get_count{};
  PFN_cuDeviceGet_v2000 device_get{};
  PFN_cuDeviceGetName_v2000 device_get_name{};
  PFN_cuDeviceGetUuid_v11040 device_get_uuid{};
  PFN_cuDeviceTotalMem_v3020 device_total_mem{};
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute{};
  PFN_cuDeviceCanAccessPeer_v4000 device_can_access_peer{};
  PFN_cuDevicePrimaryCtxRetain_v7000 device_primary_ctx_retain{};
  PFN_cuCtxEnablePeerAccess_v4000 ctx_enable_peer_access{};
  PFN_cuCtxGetCurrent_v4000 ctx_get_current{};
  PFN_cuCtxPushCurrent_v4000 ctx_push_current{};
  PFN_cuCtxPopCurrent_v4000 ctx_pop_current{};
  PFN_cuMemGetInfo_v3020 mem_get_info{};
  PFN_cuMemAlloc_v3020 mem_alloc{};
  PFN_cuMemAllocManaged_v6000 mem_alloc_managed{};
  PFN_cuMemFree_v3020 mem_free{};
  PFN_cuMemPrefetchAsync_v12020 mem_prefetch_async{};
  PFN_cuMemAdvise_v12020 mem_advise{};
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing{};
  PFN_cuStreamGetCaptureInfo_v11030 stream_get_capture_info{};
  PFN_cuUserObjectCreate_v11030 user_object_create{};
  PFN_cuUserObjectRelease_v11030 user_object_release{};
  PFN_cuGraphRetainUserObject_v11030 graph_retain_user_object{};
  PFN_cuStreamCreate_v2000 stream_create{};
  PFN_cuStreamDestroy_v4000 stream_destroy{};
  PFN_cuStreamQuery_v2000 stream_query{};
  PFN_cuStreamSynchronize_v2000 stream_synchronize{};
  PFN_cuStreamWaitEvent_v3020 stream_wait_event{};
  PFN_cuEventCreate_v2000 event_create{};
  PFN_cuEventDestroy_v4000 event_destroy{};
  PFN_cuEventRecord_v2000 event_record{};
  PFN_cuEventQuery_v2000 event_query{};
  PFN_cuEventSynchronize_v2000 event_synchronize{};
  PFN_cuMemcpyAsync_v4000 memcpy_async{};
  PFN_cuPointerGetAttributes_v7000 pointer_get_attributes{};
  PFN_cuIpcGetMemHandle_v4010 ipc_get_mem_handle{};
  PFN_cuIpcOpenMemHandle_v11000 ipc_open_mem_handle{};
  PFN_cuIpcCloseMemHandle_v4010 ipc_close_mem_handle{};
  PFN_cuIpcGetEventHandle_v4010 ipc_get_event_handle{};
  PFN_cuIpcOpenEventHandle_v4010 ipc_open_event_handle{};
  PFN_cuThreadExchangeStreamCaptureMode_v10010 thread_exchange_stream_capture_mode{};
  PFN_cuMemDiscardBatchAsync_v13000 mem_discard_batch_async{};  ///< null before CUDA 13
  PFN_cuMemDiscardAndPrefetchBatchAsync_v13000
    mem_discard_and_prefetch_batch_async{};  ///< null before CUDA 13
};

/** @brief A loaded table, or why there is none. */
struct loaded_cuda_api {
  cuda_api api;
  availability loaded;
};

/**
 * @brief Loads libcuda.so.1 and resolves the table; initialises nothing.
 *
 * Not available, with the reason, when there is no libcuda or it is older than CUDA 12.2.
 */
[[nodiscard]] loaded_cuda_api load_cuda_api();

}  // namespace rmm_uvm::cuda
