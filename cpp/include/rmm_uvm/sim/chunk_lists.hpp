// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Which of the kernel driver's lists a block's chunk of device memory is on. */
enum class chunk_list_id : std::uint8_t {
  none,       ///< no device memory behind the block
  unused,     ///< memory kept, but no page of the block resides in it
  discarded,  ///< every page's contents were dropped, mappings kept
  used,       ///< the rest
};

/**
 * @brief The chunks of one GPU: first-in-first-out lists of blocks, by the blocks' numbers.
 *
 * Victims are taken from the head of the first list that is not empty, in the order of
 * `chunk_list_id`. Source: `pick_root_chunk_to_evict` in uvm_pmm_gpu.c.
 */
class chunk_lists {
 public:
  static constexpr std::uint32_t nobody = 0xFFFF'FFFF;

  /** @brief Makes room for blocks numbered below `count`. @throws std::bad_alloc */
  void resize(std::size_t count) { nodes_.resize(count); }

  /** @brief The list that a block's chunk is on. */
  [[nodiscard]] chunk_list_id list_of(std::uint32_t block) const noexcept
  {
    return nodes_[block].list;
  }

  /** @brief Takes a block's chunk off its list and appends it to another, or to none. */
  void move_to(std::uint32_t block, chunk_list_id list) noexcept
  {
    auto& node = nodes_[block];
    if (node.list != chunk_list_id::none) {
      auto& ends = ends_[static_cast<std::size_t>(node.list)];
      (node.previous == nobody ? ends.head : nodes_[node.previous].next) = node.next;
      (node.next == nobody ? ends.tail : nodes_[node.next].previous)     = node.previous;
    }
    node = {nobody, nobody, list};
    if (list == chunk_list_id::none) { return; }
    auto& ends    = ends_[static_cast<std::size_t>(list)];
    node.previous = ends.tail;
    (ends.tail == nobody ? ends.head : nodes_[ends.tail].next) = block;
    ends.tail                                                  = block;
  }

  /** @brief The block whose chunk goes next; `nobody` if there is none. */
  [[nodiscard]] std::uint32_t victim() const noexcept
  {
    for (auto const& ends : ends_) {
      if (ends.head != nobody) { return ends.head; }
    }
    return nobody;
  }

  /** @brief Bytes that it takes. */
  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.capacity() * sizeof(link); }

 private:
  struct link {
    std::uint32_t previous{nobody};  // towards the next victim
    std::uint32_t next{nobody};      // towards the most recent
    chunk_list_id list{chunk_list_id::none};
  };
  struct list_ends {
    std::uint32_t head{nobody};
    std::uint32_t tail{nobody};
  };

  std::vector<link> nodes_;
  std::array<list_ends, 4> ends_;
};

}  // namespace rmm_uvm::sim
