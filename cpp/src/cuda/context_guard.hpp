// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/cuda_use.hpp>

namespace rmm_uvm::cuda {

/**
 * @brief Makes a context current and capture checks relaxed on this thread, for one scope.
 *
 * Relaxed: while another thread captures in global mode, calls such as cuMemAllocManaged from this
 * thread would otherwise fail and invalidate that capture.
 *
 * In a child of the process to which the context belongs, nothing is called: `pushed` answers what
 * CUDA answers there.
 */
class context_guard {
 public:
  context_guard(cuda_api const& api, CUcontext context, cuda_use const& use) noexcept : api_{api}
  {
    if (!use.here()) {
      pushed_ = CUDA_ERROR_NOT_INITIALIZED;
      return;
    }
    pushed_  = api_.ctx_push_current(context);
    relaxed_ = api_.thread_exchange_stream_capture_mode(&mode_) == CUDA_SUCCESS;
  }
  ~context_guard()
  {
    if (relaxed_) { static_cast<void>(api_.thread_exchange_stream_capture_mode(&mode_)); }
    CUcontext popped = nullptr;
    if (pushed_ == CUDA_SUCCESS) { static_cast<void>(api_.ctx_pop_current(&popped)); }
  }
  context_guard(context_guard const&)            = delete;
  context_guard& operator=(context_guard const&) = delete;
  context_guard(context_guard&&)                 = delete;
  context_guard& operator=(context_guard&&)      = delete;

  /** @brief What pushing the context answered. */
  [[nodiscard]] CUresult pushed() const noexcept { return pushed_; }

 private:
  cuda_api const& api_;
  CUresult pushed_{CUDA_SUCCESS};
  bool relaxed_{false};
  CUstreamCaptureMode mode_{CU_STREAM_CAPTURE_MODE_RELAXED};
};

}  // namespace rmm_uvm::cuda
