// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/** @brief A mark in a stream, behind the work of all uses before `tick`. */
struct placed_mark {
  use_tick tick;
  std::size_t number;
};

/** @brief A mark in the stream that waits for frees, behind the first `frees` of them. */
struct fenced_frees {
  std::uint64_t frees;
  std::size_t number;
};

}  // namespace rmm_uvm
