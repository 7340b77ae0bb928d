// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief Bytes in one VA block, the UVM kernel driver's unit of eviction.
 *
 * Source: NVIDIA/open-gpu-kernel-modules 580.142, `UVM_VA_BLOCK_BITS` = 21 in uvm_va_block_types.h.
 */
inline constexpr std::size_t va_block_bytes = std::size_t{1} << 21U;

/**
 * @brief Bytes in one page, the unit of residency on x86-64.
 *
 * Source: the same driver keeps one residency bit per system page (4 KiB).
 */
inline constexpr std::size_t page_bytes = 4096;

/** @brief So many whole blocks, in bytes. */
[[nodiscard]] constexpr std::size_t bytes_of_blocks(std::size_t blocks) noexcept
{
  return blocks * va_block_bytes;
}

/** @brief A half-open range of addresses, [address, address + bytes). */
struct memory_range {
  std::uintptr_t address{0};  ///< first byte
  std::size_t bytes{0};       ///< length in bytes

  /** @brief One past the last byte. */
  [[nodiscard]] constexpr std::uintptr_t end() const noexcept { return address + bytes; }
  /** @brief True when `part` lies wholly in this range. */
  [[nodiscard]] constexpr bool covers(memory_range part) const noexcept
  {
    return address <= part.address && part.end() <= end();
  }
  /** @brief True when both ranges are the same. */
  friend constexpr bool operator==(memory_range const&, memory_range const&) noexcept = default;
};

/** @brief Bytes that lie in both ranges. */
[[nodiscard]] constexpr std::size_t bytes_in_common(memory_range a, memory_range b) noexcept
{
  auto const begin = a.address > b.address ? a.address : b.address;
  auto const end   = a.end() < b.end() ? a.end() : b.end();
  return end > begin ? end - begin : 0;
}

/** @brief The same address or the nearest VA block boundary below it. */
[[nodiscard]] constexpr std::uintptr_t va_block_floor(std::uintptr_t address) noexcept
{
  return address & ~(va_block_bytes - 1);
}

/** @brief The same address or the nearest VA block boundary above it. */
[[nodiscard]] constexpr std::uintptr_t va_block_ceil(std::uintptr_t address) noexcept
{
  return va_block_floor(address + va_block_bytes - 1);
}

/** @brief Bytes of all VA blocks that a range touches. */
[[nodiscard]] constexpr std::size_t bytes_of_blocks(memory_range range) noexcept
{
  return va_block_ceil(range.end()) - va_block_floor(range.address);
}

/** @brief Free and total bytes of one device, of all processes together. */
struct device_memory {
  std::size_t free_bytes{0};   ///< bytes that nobody holds now
  std::size_t total_bytes{0};  ///< bytes the card has
};

/** @brief Where a prefetch shall put pages. */
struct location {
  static constexpr int host_id = -1;  ///< `device_id` of host memory

  int device_id{host_id};  ///< CUDA ordinal, or `host_id`

  /** @brief Host memory. */
  [[nodiscard]] static constexpr location host() noexcept { return {host_id}; }
  /** @brief The memory of device `id`. */
  [[nodiscard]] static constexpr location device(int id) noexcept { return {id}; }
  /** @brief True for host memory. */
  [[nodiscard]] constexpr bool is_host() const noexcept { return device_id == host_id; }
};

}  // namespace rmm_uvm
