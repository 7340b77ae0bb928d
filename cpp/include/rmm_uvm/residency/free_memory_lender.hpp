// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/neighbor_lender.hpp>

#include <algorithm>

namespace rmm_uvm {

/** @brief Lends what is free on a device, less a reserve; knows nothing of its owners. */
class free_memory_lender final : public neighbor_lender {
 public:
  [[nodiscard]] std::size_t claim(int /*device_id*/,
                                  std::size_t bytes,
                                  std::size_t free_bytes,
                                  std::size_t reserve_bytes) noexcept override
  {
    auto const room = free_bytes - std::min(free_bytes, reserve_bytes);
    return va_block_floor(std::min(bytes, room));
  }
  void placed(int /*device_id*/, std::size_t /*bytes*/) noexcept override {}
  void release(int /*device_id*/, std::size_t /*bytes*/) noexcept override {}
  [[nodiscard]] std::size_t excess(int /*device_id*/) noexcept override { return 0; }
  [[nodiscard]] bool busy(int /*device_id*/) noexcept override { return false; }
};

}  // namespace rmm_uvm
