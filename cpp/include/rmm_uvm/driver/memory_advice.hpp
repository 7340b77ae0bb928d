// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm {

/** @brief What a program can tell the driver about managed pages, as `cuMemAdvise`. */
enum class memory_advice : std::uint8_t {
  read_mostly,               ///< readers get copies; a write takes all other copies away
  unset_read_mostly,         ///< one copy stays
  preferred_location,        ///< where pages belong: a fault elsewhere maps them, where it can
  unset_preferred_location,  ///< pages go to who faults on them
  accessed_by,               ///< a device maps pages wherever they are, and does not fetch them
  unset_accessed_by          ///< it faults on them, and they come
};

}  // namespace rmm_uvm
