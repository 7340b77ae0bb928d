// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_transfers.hpp>

#include <cuda.h>

#include <cstring>

namespace rmm_uvm::cuda {

static_assert(sizeof(CUipcMemHandle) == ipc_handle_bytes);
static_assert(sizeof(CUipcEventHandle) == ipc_handle_bytes);

/** @brief A handle of the seam as CUDA takes it. */
template <typename Native>
[[nodiscard]] Native as_native(ipc_handle const& handle) noexcept
{
  Native native{};
  std::memcpy(&native, handle.data(), handle.size());
  return native;
}

/** @brief A handle of CUDA as the seam has it. */
template <typename Native>
[[nodiscard]] ipc_handle from_native(Native const& native) noexcept
{
  ipc_handle handle{};
  std::memcpy(handle.data(), &native, handle.size());
  return handle;
}

}  // namespace rmm_uvm::cuda
