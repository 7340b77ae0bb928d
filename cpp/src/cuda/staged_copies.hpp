// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/driver/device_transfers.hpp>

#include <array>
#include <cstddef>

namespace rmm_uvm::cuda {

/**
 * @brief Copies by way of device memory that is not managed, two halves in turn.
 *
 * Each piece is copied into a half by one stream, and out of it by another, so that the next piece
 * comes in meanwhile. Why: docs/understand/decisions/0016-copied-activations.md. Not thread-safe;
 * every call needs the context of the device.
 */
class staged_copies {
 public:
  /**
   * @brief Takes memory, a stream and events. What was taken before a failure is given back.
   * @param first the stream that pieces come in by; what it has to do already comes first
   * @param bytes of both halves
   */
  [[nodiscard]] status make(cuda_api const& api, CUstream first, std::size_t bytes) noexcept;
  /** @brief Gives everything back, once copies are over. */
  void destroy(cuda_api const& api) noexcept;
  /** @brief Issues one copy. @param first as for `make` */
  [[nodiscard]] status copy(cuda_api const& api, CUstream first, transfer const& one) noexcept;
  /** @brief The stream that copies come to an end in. */
  [[nodiscard]] CUstream onward() const noexcept { return onward_; }

 private:
  struct half {
    CUdeviceptr address{0};
    CUevent filled{nullptr};
    CUevent emptied{nullptr};
  };

  [[nodiscard]] status take(cuda_api const& api, CUstream first) noexcept;
  [[nodiscard]] status copy_piece(cuda_api const& api,
                                  CUstream first,
                                  transfer const& piece) noexcept;

  std::size_t half_bytes_{0};
  CUdeviceptr memory_{0};
  CUstream onward_{nullptr};
  std::array<half, 2> halves_{};
  std::size_t next_{0};  // of the halves
};

}  // namespace rmm_uvm::cuda
