// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace rmm_uvm::replay {

/** @brief A recorded range, found on the device that it is replayed on. */
struct located_range {
  memory_range range;          ///< addresses of the device
  std::size_t first_block{0};  ///< number of the block that holds its first byte
  std::size_t slab{0};         ///< which one, from 0 upwards
};

/**
 * @brief Says where a recorded address lies on the device that the recording is replayed on.
 *
 * Recorded slabs begin at block boundaries and so do those of the device: what shared a block then
 * shares one now. Blocks of all slabs are numbered through, so that they can index flat arrays.
 */
class slab_map {
 public:
  /**
   * @brief Looks whether a slab could be added.
   * @throws std::invalid_argument if it is empty, not of whole blocks, or not above the last
   */
  void check(memory_range recorded) const;

  /**
   * @brief Adds a slab above those there are.
   * @param recorded of whole blocks
   * @param address of the slab that stands for it, at a block boundary
   * @throws std::invalid_argument as `check` does, or if `address` is not at a block boundary
   */
  void add(memory_range recorded, std::uintptr_t address);

  /** @brief Where a recorded range lies; nullopt for one that no slab holds as a whole. */
  [[nodiscard]] std::optional<located_range> locate(memory_range recorded) const noexcept;

  /** @brief Slabs that there are. */
  [[nodiscard]] std::size_t size() const noexcept { return slabs_.size(); }
  /** @brief The whole of a slab, as it lies on the device. @pre there is such a slab */
  [[nodiscard]] memory_range slab_range(std::size_t which) const noexcept
  {
    return {slabs_[which].address, slabs_[which].recorded.bytes};
  }

  /** @brief Blocks of all slabs. */
  [[nodiscard]] std::size_t block_count() const noexcept { return block_count_; }

  /** @brief Address on the device of a block. @pre there is such a block */
  [[nodiscard]] std::uintptr_t address_of(std::size_t block) const noexcept;

  /** @brief Whether a block is the first of its slab. */
  [[nodiscard]] bool begins_slab(std::size_t block) const noexcept;

 private:
  struct slab {
    memory_range recorded;
    std::uintptr_t address{0};
    std::size_t first_block{0};
  };

  std::vector<slab> slabs_;
  std::size_t block_count_{0};
};

}  // namespace rmm_uvm::replay
