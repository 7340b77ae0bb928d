// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::replay {

/**
 * @brief Counts the live bytes of every block, and knows which blocks died.
 *
 * A block is dead when the last live byte in it was freed; one that never held any is not. Ranges
 * are given as the number of their first block and their offset in it.
 */
class live_blocks {
 public:
  /** @param block_count blocks there are, all without a live byte */
  explicit live_blocks(std::size_t block_count) : live_bytes_(block_count), states_(block_count) {}

  /**
   * @brief Notes an allocation.
   * @return false when a block would hold more live bytes than it has: allocations overlap; what
   *         was noted of it stays
   */
  [[nodiscard]] bool allocate(std::size_t first_block, memory_range range) noexcept;

  /**
   * @brief Notes a free; blocks that die are kept for `take_dead`.
   * @return false when a block has fewer live bytes: that was not allocated; what was noted stays
   * @throws std::bad_alloc
   */
  [[nodiscard]] bool free(std::size_t first_block, memory_range range);

  /**
   * @brief The blocks that died, and still are dead, since they were last taken; ascending.
   * @throws std::bad_alloc
   */
  [[nodiscard]] std::vector<std::size_t> take_dead();

  /** @brief The taken blocks of a range, which are none from then on; ascending. @throws
   * std::bad_alloc */
  [[nodiscard]] std::vector<std::size_t> reuse(std::size_t first_block, memory_range range);

  /** @brief Bytes allocated and not freed. */
  [[nodiscard]] std::size_t live_bytes() const noexcept { return total_bytes_; }
  /** @brief The most of them. */
  [[nodiscard]] std::size_t peak_live_bytes() const noexcept { return peak_bytes_; }

 private:
  enum class state : std::uint8_t { counted, listed, taken };

  std::vector<std::uint32_t> live_bytes_;
  std::vector<state> states_;
  std::vector<std::size_t> listed_;  // died since they were last taken; may live again
  std::size_t total_bytes_{0};
  std::size_t peak_bytes_{0};
};

}  // namespace rmm_uvm::replay
