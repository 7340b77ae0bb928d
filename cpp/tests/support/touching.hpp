// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/managed_residency.hpp>

namespace rmm_uvm::tests {

/** @brief Tells a manager, or what asks one, of one use of the allocation at `range`'s beginning.
 */
template <typename Told>
void touch(Told& told, memory_range range, stream_handle stream)
{
  use_event const use{use_kind::touch, range, range.address};
  told.on_touch({&use, 1}, stream);
}

}  // namespace rmm_uvm::tests
