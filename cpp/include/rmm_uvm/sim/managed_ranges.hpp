// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rmm_uvm::sim {

/** @brief What a range covers of a managed one. */
struct block_span {
  std::uint32_t base_block{0};  ///< of the managed range
  std::uint64_t first_page{0};  ///< counted from there
  std::uint64_t last_page{0};   ///< one past
};

/** @brief A managed range's blocks, and whose it is. */
struct managed_range {
  std::size_t bytes{0};
  std::uint32_t first_block{0};
  std::uint32_t block_count{0};
  unsigned program{0};
};

/** @brief The managed ranges of all programs, by address. Touches no block. */
class managed_ranges {
 public:
  /** @brief Whether whole blocks begin there, within bounds, that no range has. */
  [[nodiscard]] bool is_free(memory_range range) const noexcept;
  /** @pre it is free @throws std::bad_alloc */
  void add(std::uintptr_t address, managed_range const& range) { ranges_.emplace(address, range); }
  /** @brief The range of a program that begins there; nullopt for none. */
  [[nodiscard]] std::optional<managed_range> beginning_at(std::uintptr_t address,
                                                          unsigned program) const noexcept;
  /** @brief Forgets the range that begins there. */
  void remove(std::uintptr_t address) noexcept { ranges_.erase(address); }
  /** @brief The range of a program that an address is in; nullopt for none. */
  [[nodiscard]] std::optional<memory_range> range_of(std::uintptr_t address,
                                                     unsigned program) const noexcept;
  /**
   * @brief The pages of a range inside one managed range of a program; nullopt for any other.
   * @param inward leaves out pages that it cuts
   */
  [[nodiscard]] std::optional<block_span> find(memory_range range,
                                               bool inward,
                                               unsigned program) const noexcept;

 private:
  std::map<std::uintptr_t, managed_range> ranges_;
};

}  // namespace rmm_uvm::sim
