// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>

#include <cuda.h>

namespace rmm_uvm::cuda {

/** @brief What CUDA answered to `call`, a string literal, as the seam says it. */
[[nodiscard]] inline status as_status(CUresult result, char const* call) noexcept
{
  switch (result) {
    case CUDA_SUCCESS: return {};
    case CUDA_ERROR_OUT_OF_MEMORY: return {status_code::out_of_memory, result, call};
    case CUDA_ERROR_INVALID_VALUE: return {status_code::invalid_value, result, call};
    case CUDA_ERROR_NOT_SUPPORTED: return {status_code::not_supported, result, call};
    default: return {status_code::driver_error, result, call};
  }
}

/** @brief A stream of the seam as CUDA takes it. */
[[nodiscard]] inline CUstream as_cuda(stream_handle stream) noexcept
{
  return static_cast<CUstream>(stream);
}

}  // namespace rmm_uvm::cuda
