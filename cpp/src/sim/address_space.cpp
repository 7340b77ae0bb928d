// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/address_space.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

namespace rmm_uvm::sim {
namespace {

/** @brief Reserves aligned addresses, a multiple of the block size; nothing stands behind them. */
[[nodiscard]] memory_range reserve(std::size_t bytes, int protection) noexcept
{
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * va_block_bytes) { return {}; }
  // mmap aligns to a page: take one block more and give the ends back.
  auto const wanted = va_block_ceil(bytes);
  auto const taken  = wanted + va_block_bytes;
  void* const base =
    ::mmap(nullptr, taken, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) { return {}; }  // NOLINT: the macro is a C cast
  auto const begin = reinterpret_cast<std::uintptr_t>(base);
  auto const first = va_block_ceil(begin);
  if (first > begin) { ::munmap(base, first - begin); }
  auto const tail = begin + taken - (first + wanted);
  if (tail > 0) { ::munmap(reinterpret_cast<void*>(first + wanted), tail); }
  return {first, wanted};
}

/** @brief A descriptor of shared memory that can be neither grown nor shrunk, or -1. */
[[nodiscard]] int make_shared_memory(std::size_t bytes) noexcept
{
  int const made = ::memfd_create("rmm-uvm-simulated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) { return -1; }
  if (::ftruncate(made, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(made, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    ::close(made);
    return -1;
  }
  return made;
}

}  // namespace

address_range::address_range(std::size_t bytes, backing_kind backing) noexcept
{
  if (backing != backing_kind::shared) {
    range_ = reserve(bytes, backing == backing_kind::own ? PROT_READ | PROT_WRITE : PROT_NONE);
    return;
  }
  if (bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) { return; }
  auto const made = make_shared_memory(bytes);
  if (made < 0) { return; }
  *this       = of(made, bytes);
  descriptor_ = made;
}

address_range address_range::of(int descriptor, std::size_t bytes) noexcept
{
  address_range result;
  result.range_ = reserve(bytes, PROT_NONE);
  if (result.range_.address == 0) { return result; }
  auto* const where = reinterpret_cast<void*>(result.range_.address);
  void* const mapped =
    ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
  return mapped == where ? std::move(result) : address_range{};
}

address_range::~address_range()
{
  if (range_.address != 0) { ::munmap(reinterpret_cast<void*>(range_.address), range_.bytes); }
  if (descriptor_ >= 0) { ::close(descriptor_); }
}

}  // namespace rmm_uvm::sim
