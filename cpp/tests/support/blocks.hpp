// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm::tests {

inline constexpr std::uintptr_t slab_address = std::uintptr_t{1} << 40U;  ///< of made-up slabs
inline constexpr std::size_t page_of_pool    = 256;  ///< what RMM's pool aligns to

/** @brief Bytes of `count` VA blocks. */
[[nodiscard]] constexpr std::size_t blocks(std::size_t count) noexcept
{
  return count * va_block_bytes;
}

/** @brief Blocks [first, first + count) counted from `base`. */
[[nodiscard]] constexpr memory_range block_range(std::uintptr_t base,
                                                 std::size_t first,
                                                 std::size_t count) noexcept
{
  return {base + blocks(first), blocks(count)};
}

}  // namespace rmm_uvm::tests
