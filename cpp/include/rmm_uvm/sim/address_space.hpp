// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rmm_uvm::sim {

/**
 * @brief A stretch of this process' address space, 2 MiB aligned; given back when destroyed.
 *
 * Without backing it is a reservation that costs no memory and faults when dereferenced. With
 * backing it is real, zeroed host memory, taken page by page as it is written.
 */
class address_range {
 public:
  address_range() noexcept = default;
  /** @brief Reserves `bytes`; `address()` is 0 when the system refuses. */
  address_range(std::size_t bytes, bool backing) noexcept;
  ~address_range();
  address_range(address_range&& other) noexcept : range_{std::exchange(other.range_, {})} {}
  address_range& operator=(address_range&& other) noexcept
  {
    std::swap(range_, other.range_);
    return *this;
  }
  address_range(address_range const&)            = delete;
  address_range& operator=(address_range const&) = delete;

  /** @brief First byte, or 0. */
  [[nodiscard]] std::uintptr_t address() const noexcept { return range_.address; }

 private:
  memory_range range_;
};

}  // namespace rmm_uvm::sim
