// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rmm_uvm::sim {

/** @brief What lies behind the host's memory, such as an SSD. */
struct third_tier {
  std::size_t capacity_bytes{0};   ///< 0: there is none
  double read_bytes_per_ns{1.0};   ///< to the host's memory
  double write_bytes_per_ns{1.0};  ///< from it
  double operation_ns{0.0};        ///< each read or write, before its bytes
};

}  // namespace rmm_uvm::sim
