// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace rmm_uvm::mr::detail {

[[noreturn]] inline void refuse_alignment(std::size_t alignment)
{
  throw rmm::bad_alloc{"an alignment of " + std::to_string(alignment) +
                       " bytes asked: powers of two to 256 are kept, and "
                       "rmm::mr::aligned_resource_adaptor gives larger ones"};
}

/** @brief Refuses what is no power of two. @throws rmm::bad_alloc */
inline void check_alignment(std::size_t alignment)
{
  // Not std::has_single_bit, which counts all bits where the compiler may not ask the processor.
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) [[unlikely]] {
    refuse_alignment(alignment);
  }
}

/**
 * @brief Gives memory back that does not lie as it was asked for: RMM's pool does not look at the
 * alignment, and nobody would notice.
 * @throws rmm::bad_alloc in that case
 */
template <typename GiveBack>
void keep_aligned(void const* ptr, std::size_t alignment, GiveBack const& give_back)
{
  if ((reinterpret_cast<std::uintptr_t>(ptr) & (alignment - 1)) == 0) [[likely]] { return; }
  give_back();
  refuse_alignment(alignment);
}

}  // namespace rmm_uvm::mr::detail
