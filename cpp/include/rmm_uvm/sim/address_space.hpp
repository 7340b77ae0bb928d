// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rmm_uvm::sim {

/** @brief What stands behind the addresses of an `address_range`. */
enum class backing_kind : std::uint8_t {
  none,    ///< nothing: they cost no memory, and fault when dereferenced
  own,     ///< zeroed host memory of this process, taken page by page as it is written
  shared,  ///< the same, on a descriptor that other processes can map too
};

/**
 * @brief A stretch of this process' address space, 2 MiB aligned; given back when destroyed.
 */
class address_range {
 public:
  address_range() noexcept = default;
  /** @brief Takes `bytes`; `address()` is 0 when the system refuses. */
  address_range(std::size_t bytes, backing_kind backing) noexcept;
  ~address_range();
  address_range(address_range&& other) noexcept
    : range_{std::exchange(other.range_, {})}, descriptor_{std::exchange(other.descriptor_, -1)}
  {
  }
  address_range& operator=(address_range&& other) noexcept
  {
    std::swap(range_, other.range_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  address_range(address_range const&)            = delete;
  address_range& operator=(address_range const&) = delete;

  /**
   * @brief Maps the shared memory of another process.
   * @param descriptor of it; stays the caller's
   * @param bytes at most as many as it has
   * @return a range whose `address()` is 0 when the system refuses
   */
  [[nodiscard]] static address_range of(int descriptor, std::size_t bytes) noexcept;

  /** @brief First byte, or 0. */
  [[nodiscard]] std::uintptr_t address() const noexcept { return range_.address; }
  /** @brief Descriptor of shared memory, closed with the range; -1 for any other. */
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  memory_range range_;
  int descriptor_{-1};
};

}  // namespace rmm_uvm::sim
