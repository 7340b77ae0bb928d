// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/nvml_api.hpp>

#include <dlfcn.h>

#include <string>

namespace rmm_uvm::cuda {
namespace {

/** @brief Resolves single functions; remembers the first one that is missing. */
class resolver {
 public:
  explicit resolver(void* library) noexcept : library_{library} {}

  template <typename Function>
  void optional(Function& function, char const* name) noexcept
  {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
  }
  template <typename Function>
  void required(Function& function, char const* name)
  {
    optional(function, name);
    if (function == nullptr && missing_.empty()) { missing_ = name; }
  }
  [[nodiscard]] std::string const& missing() const noexcept { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

loaded_nvml_api load_nvml_api()
{
  loaded_nvml_api result;
  // Never unloaded, as libcuda: others in the process may use it.
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    result.loaded = availability::no(
      "libnvidia-ml.so.1 cannot be loaded: no NVIDIA driver here, or a container without its "
      "\"utility\" capability");
    return result;
  }
  resolver resolve{library};
  auto& api = result.api;
  resolve.required(api.init, "nvmlInit_v2");
  resolve.required(api.shutdown, "nvmlShutdown");
  resolve.required(api.error_string, "nvmlErrorString");
  resolve.required(api.device_count, "nvmlDeviceGetCount_v2");
  resolve.required(api.by_index, "nvmlDeviceGetHandleByIndex_v2");
  resolve.required(api.by_uuid, "nvmlDeviceGetHandleByUUID");
  resolve.required(api.uuid, "nvmlDeviceGetUUID");
  resolve.required(api.name, "nvmlDeviceGetName");
  resolve.required(api.memory, "nvmlDeviceGetMemoryInfo");
  resolve.required(api.pcie_throughput, "nvmlDeviceGetPcieThroughput");
  resolve.optional(api.memory2, "nvmlDeviceGetMemoryInfo_v2");
  resolve.optional(api.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  resolve.required(api.utilization, "nvmlDeviceGetUtilizationRates");
  resolve.optional(api.link_state, "nvmlDeviceGetNvLinkState");
  resolve.optional(api.field_values, "nvmlDeviceGetFieldValues");
  if (!resolve.missing().empty()) {
    result.loaded =
      availability::no("libnvidia-ml.so.1 has no " + resolve.missing() + ": update the driver");
  }
  return result;
}

}  // namespace rmm_uvm::cuda
