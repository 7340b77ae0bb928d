// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/cupti_api.hpp>

#include <dlfcn.h>

#include <string>

namespace rmm_uvm::cuda {
namespace {

template <typename Function>
bool resolve(void* library, char const* name, Function& function)
{
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/** @brief Fills the table. @return the first function that is missing, or nullptr */
[[nodiscard]] char const* resolve_all(void* library, cupti_api& api)
{
  resolve(library, "cuptiSubscribe_v2", api.subscribe_v2);
  char const* missing = nullptr;
  auto const required = [&](char const* name, auto& function) {
    if (!resolve(library, name, function) && missing == nullptr) { missing = name; }
  };
  required("cuptiGetResultString", api.get_result_string);
  required("cuptiGetDeviceId", api.get_device_id);
  required("cuptiSubscribe", api.subscribe);
  required("cuptiUnsubscribe", api.unsubscribe);
  required("cuptiActivityRegisterCallbacks", api.activity_register_callbacks);
  required("cuptiActivityConfigureUnifiedMemoryCounter", api.configure_unified_memory_counter);
  required("cuptiActivityEnable", api.activity_enable);
  required("cuptiActivityDisable", api.activity_disable);
  required("cuptiActivityFlushAll", api.activity_flush_all);
  required("cuptiActivityGetNextRecord", api.activity_get_next_record);
  required("cuptiActivityGetNumDroppedRecords", api.activity_get_num_dropped_records);
  return missing;
}

/** @brief What the known refusals mean; nullptr for others. Source: cupti_result.h of CUDA 13. */
[[nodiscard]] char const* meaning(CUptiResult result)
{
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another profiler holds CUPTI: end Nsight, cuda-gdb or torch.profiler first";
    case CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED:
      return "CUPTI cannot watch managed memory on this system";
    case CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE:
      return "CUPTI cannot watch managed memory on this device";
    case CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES:
      return "CUPTI cannot watch managed memory of GPUs without peer access: show the process one "
             "of them, by CUDA_VISIBLE_DEVICES";
    case CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS:
      return "CUPTI cannot watch managed memory under MPS";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "CUPTI is kept to administrators here: run as root, or set the NVIDIA kernel module's "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "this libcupti does not fit the NVIDIA driver: install the nvidia-cuda-cupti of the "
             "CUDA version that nvidia-smi shows";
    default: return nullptr;
  }
}

}  // namespace

loaded_cupti_api load_cupti_api(std::vector<std::string> const& candidates)
{
  loaded_cupti_api result;
  std::string why = "nobody named a path";
  for (auto const& candidate : candidates) {
    // Never closed: CUPTI has threads of its own, and may call back when the process ends.
    void* const library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      char const* const error = ::dlerror();
      if (&candidate == &candidates.front()) { why = error == nullptr ? candidate : error; }
      continue;
    }
    if (auto const* const missing = resolve_all(library, result.api); missing != nullptr) {
      result.api    = {};
      result.loaded = availability::no(candidate + " has no " + missing +
                                       ": pip install 'nvidia-cuda-cupti>=13,<14'");
    }
    return result;
  }
  result.loaded = availability::no("libcupti.so.13 cannot be loaded (" + why +
                                   "): pip install 'nvidia-cuda-cupti>=13,<14'");
  return result;
}

std::string cupti_refusal(cupti_api const& api,
                          char const* call,
                          CUptiResult result,
                          std::string const& holder)
{
  char const* name = nullptr;
  // Without a driver CUPTI cannot even tell the name of its answer.
  if (api.get_result_string(result, &name) != CUPTI_SUCCESS || name == nullptr) { name = "error"; }
  auto const answer = std::string{name} + " " + std::to_string(static_cast<int>(result));
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && !holder.empty()) {
    return "another profiler holds CUPTI, \"" + holder + "\": end it first (" + answer + ")";
  }
  auto const* const known = meaning(result);
  if (known != nullptr) { return std::string{known} + " (" + answer + ")"; }
  return std::string{"CUPTI refused: "} + call + " answered " + answer;
}

}  // namespace rmm_uvm::cuda
