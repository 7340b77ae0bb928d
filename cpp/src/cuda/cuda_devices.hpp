// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is asked of any device: the driver's own, and its neighbours.
#pragma once

#include "context_guard.hpp"
#include "cuda_values.hpp"

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace rmm_uvm::cuda {

/** @brief Why something is not available: what failed, and CUDA's name for the error. */
[[nodiscard]] inline availability refused(cuda_api const& api,
                                          CUresult result,
                                          std::string const& what)
{
  char const* name = "?";
  static_cast<void>(api.get_error_name(result, &name));
  return availability::no(what + ": " + name);
}

/** @brief The answer about a device that is not among `count`. */
[[nodiscard]] inline availability no_such_device(int device_id, int count)
{
  return availability::no(
    "device " + std::to_string(device_id) + " does not exist: there " +
    (count == 1 ? "is 1 device" : "are " + std::to_string(count) + " devices") +
    ", counted from 0");
}

/** @brief A device's attribute; 0 where it cannot be read. */
[[nodiscard]] inline int attribute_of(cuda_api const& api,
                                      CUdevice device,
                                      CUdevice_attribute which) noexcept
{
  int value = 0;
  return api.device_get_attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/** @brief A device's UUID; zeros where it cannot be read. */
[[nodiscard]] inline std::array<std::uint8_t, 16> uuid_of(cuda_api const& api,
                                                          CUdevice device) noexcept
{
  std::array<std::uint8_t, 16> found{};
  CUuuid uuid{};
  if (api.device_get_uuid(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(found.data(), uuid.bytes, found.size());
  }
  return found;
}

/** @brief Reads the memory of a context's device. @param[out] memory set on success */
[[nodiscard]] inline status read_memory(cuda_api const& api,
                                        CUcontext context,
                                        cuda_use const& use,
                                        device_memory& memory) noexcept
{
  context_guard const guard{api, context, use};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  return as_status(api.mem_get_info(&memory.free_bytes, &memory.total_bytes), "cuMemGetInfo");
}

}  // namespace rmm_uvm::cuda
