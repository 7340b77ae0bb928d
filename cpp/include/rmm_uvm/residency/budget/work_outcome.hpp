// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm {

/** @brief What came of a piece of the migration thread's work. */
enum class work_outcome : std::uint8_t {
  nothing,  ///< there was nothing to do
  again,    ///< something was done, and there may be more
  later     ///< what could be done waits for kernels: look again soon
};

}  // namespace rmm_uvm
