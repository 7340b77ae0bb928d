// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/residency_manager.hpp>

namespace rmm_uvm::tests {

/** @brief Announces one use of an allocation that begins where `range` does. */
inline void touch(residency_manager& manager, memory_range range, stream_handle stream)
{
  use_event const use{use_kind::touch, range, range.address};
  manager.on_touch({&use, 1}, stream);
}

}  // namespace rmm_uvm::tests
