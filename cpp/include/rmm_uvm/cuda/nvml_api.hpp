// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>

namespace rmm_uvm::cuda {

/**
 * @brief The functions of libnvidia-ml that we call, by exact version, and what they take.
 *
 * Declared here, so that building takes no header of NVML's. Source: nvml.h of CUDA 13 (package
 * nvidia-nvml-dev 13). Tests fill the table with fakes.
 */
struct nvml_api {
  using result                         = int;    ///< nvmlReturn_t; 0 is success
  using device                         = void*;  ///< nvmlDevice_t, opaque
  static constexpr result success      = 0;      ///< NVML_SUCCESS
  static constexpr result too_small    = 7;      ///< NVML_ERROR_INSUFFICIENT_SIZE
  static constexpr unsigned text_bytes = 96;  ///< NVML_DEVICE_UUID_V2_BUFFER_SIZE, ..._NAME_V2_...
  static constexpr int pcie_sent       = 0;   ///< NVML_PCIE_UTIL_TX_BYTES
  static constexpr int pcie_received   = 1;   ///< NVML_PCIE_UTIL_RX_BYTES

  /** @brief nvmlMemory_t; `used` includes what the driver reserves. */
  struct memory_v1 {
    unsigned long long total{0};
    unsigned long long free{0};
    unsigned long long used{0};
  };
  /** @brief nvmlMemory_v2_t; `used` is without what the driver reserves. */
  struct memory_v2 {
    unsigned version{static_cast<unsigned>(sizeof(memory_v2)) | (2U << 24U)};
    unsigned long long total{0};
    unsigned long long reserved{0};
    unsigned long long free{0};
    unsigned long long used{0};
  };
  /** @brief nvmlProcessInfo_t, version 2. */
  struct process_info {
    unsigned pid{0};
    unsigned long long used{0};  ///< all ones: not told
    unsigned gpu_instance{0};
    unsigned compute_instance{0};
  };

  /** @brief nvmlUtilization_t: percent of the latest sampling period. */
  struct utilization_rates {
    unsigned gpu{0};     ///< in which a kernel ran
    unsigned memory{0};  ///< in which device memory was read or written
  };
  /** @brief nvmlFieldValue_t. */
  struct field_value {
    unsigned field{0};
    unsigned scope{0};
    long long timestamp_us{0};  ///< of the value, since 1970
    long long latency_us{0};
    int type{0};  ///< of `value`: one of the `..._value` below
    result answered{0};
    union {
      double real;
      unsigned narrow;
      unsigned long long wide{0};
    } value;
  };
  static constexpr int unsigned_value           = 1;    ///< NVML_VALUE_TYPE_UNSIGNED_INT
  static constexpr int unsigned_long_value      = 2;    ///< ..._UNSIGNED_LONG
  static constexpr int unsigned_long_long_value = 3;    ///< ..._UNSIGNED_LONG_LONG
  static constexpr unsigned all_links           = ~0U;  ///< as scope: their sum
  static constexpr unsigned link_limit          = 36;   ///< NVML_NVLINK_MAX_LINKS
  static constexpr unsigned link_speed_mbps     = 90;   ///< NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
  static constexpr unsigned link_sent_kib       = 138;  ///< ..._NVLINK_THROUGHPUT_DATA_TX
  static constexpr unsigned link_received_kib   = 139;  ///< ..._NVLINK_THROUGHPUT_DATA_RX

  result (*init)(){};                                     ///< nvmlInit_v2
  result (*shutdown)(){};                                 ///< nvmlShutdown
  char const* (*error_string)(result){};                  ///< nvmlErrorString
  result (*device_count)(unsigned* count){};              ///< nvmlDeviceGetCount_v2
  result (*by_index)(unsigned index, device* found){};    ///< nvmlDeviceGetHandleByIndex_v2
  result (*by_uuid)(char const* uuid, device* found){};   ///< nvmlDeviceGetHandleByUUID
  result (*uuid)(device, char* text, unsigned length){};  ///< nvmlDeviceGetUUID
  result (*name)(device, char* text, unsigned length){};  ///< nvmlDeviceGetName
  result (*memory)(device, memory_v1*){};                 ///< nvmlDeviceGetMemoryInfo
  result (*memory2)(device, memory_v2*){};  ///< nvmlDeviceGetMemoryInfo_v2; null before driver 510
  result (*pcie_throughput)(device, int counter, unsigned* kib_per_second){};
  ///< nvmlDeviceGetPcieThroughput
  result (*processes)(device, unsigned* count, process_info*){};
  ///< nvmlDeviceGetComputeRunningProcesses_v3; null before driver 510
  result (*utilization)(device, utilization_rates*){};         ///< nvmlDeviceGetUtilizationRates
  result (*link_state)(device, unsigned link, int* active){};  ///< nvmlDeviceGetNvLinkState; may be
                                                               ///< null
  result (*field_values)(device, int count, field_value*){};   ///< nvmlDeviceGetFieldValues; may be
                                                               ///< null
};

/** @brief A loaded table, or why there is none. */
struct loaded_nvml_api {
  nvml_api api;
  availability loaded;
};

/** @brief Loads libnvidia-ml.so.1 and resolves the table; initialises nothing. */
[[nodiscard]] loaded_nvml_api load_nvml_api();

}  // namespace rmm_uvm::cuda
