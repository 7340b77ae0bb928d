// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/address_space.hpp>

#include <sys/mman.h>

#include <limits>

namespace rmm_uvm::sim {

address_range::address_range(std::size_t bytes, bool backing) noexcept
{
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * va_block_bytes) { return; }
  // mmap aligns to a page: take one block more and give the ends back.
  auto const wanted     = va_block_ceil(bytes);
  auto const taken      = wanted + va_block_bytes;
  auto const protection = backing ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* const base =
    ::mmap(nullptr, taken, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) { return; }  // NOLINT: the macro is a C cast
  auto const begin = reinterpret_cast<std::uintptr_t>(base);
  auto const first = va_block_ceil(begin);
  if (first > begin) { ::munmap(base, first - begin); }
  auto const tail = begin + taken - (first + wanted);
  if (tail > 0) { ::munmap(reinterpret_cast<void*>(first + wanted), tail); }
  range_ = {first, wanted};
}

address_range::~address_range()
{
  if (range_.address != 0) { ::munmap(reinterpret_cast<void*>(range_.address), range_.bytes); }
}

}  // namespace rmm_uvm::sim
