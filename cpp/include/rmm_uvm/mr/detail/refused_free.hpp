// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace rmm_uvm::mr::detail {

/**
 * @brief Says on standard error that a free was refused; `deallocate` must not throw.
 * @param live_bytes size of the live allocation at that address, if there is one
 */
inline void report_refused_free(char const* resource,
                                std::uintptr_t address,
                                std::size_t bytes,
                                std::optional<std::size_t> live_bytes) noexcept
{
  if (live_bytes) {
    std::fprintf(stderr,
                 "rmm_uvm: %s refused to free 0x%zx with %zu bytes: it was allocated with %zu\n",
                 resource,
                 static_cast<std::size_t>(address),
                 bytes,
                 *live_bytes);
  } else {
    std::fprintf(stderr,
                 "rmm_uvm: %s refused to free 0x%zx (%zu bytes): not allocated, or freed before\n",
                 resource,
                 static_cast<std::size_t>(address),
                 bytes);
  }
}

}  // namespace rmm_uvm::mr::detail
