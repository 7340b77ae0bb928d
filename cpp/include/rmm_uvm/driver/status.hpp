// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm {

/** @brief What became of a driver call; the seam never throws. */
enum class status_code : std::uint8_t {
  success = 0,
  out_of_memory,  ///< device or host memory is exhausted
  invalid_value,  ///< an argument does not fit the call (unknown pointer, wrong size, ...)
  not_supported,  ///< the device or the kernel driver lacks the feature
  driver_error    ///< anything else; see `native_error`
};

/**
 * @brief Result of one driver call: a code of ours and, where there is one, CUDA's own.
 *
 * A plain value: cheap to copy, safe to keep. `call` points to a string literal.
 */
struct [[nodiscard]] status {
  status_code code{status_code::success};  ///< our classification
  int native_error{0};                     ///< CUresult of the call, 0 if CUDA was not asked
  char const* call{""};                    ///< name of the call that answered

  /** @brief True when the call did what it was asked to do. */
  [[nodiscard]] constexpr bool ok() const noexcept { return code == status_code::success; }
};

/** @brief A failure of `call` that CUDA was not asked about. */
[[nodiscard]] constexpr status failed(status_code code, char const* call) noexcept
{
  return {code, 0, call};
}

/** @brief Short text for a code, for messages. */
[[nodiscard]] constexpr char const* to_string(status_code code) noexcept
{
  switch (code) {
    case status_code::success: return "success";
    case status_code::out_of_memory: return "out of memory";
    case status_code::invalid_value: return "invalid value";
    case status_code::not_supported: return "not supported";
    case status_code::driver_error: return "driver error";
  }
  return "unknown";
}

}  // namespace rmm_uvm
