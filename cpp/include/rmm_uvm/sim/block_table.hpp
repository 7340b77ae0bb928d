// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/page_set_store.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rmm_uvm::sim {

/** @brief What was advised about a block. */
struct block_policy {
  static constexpr std::int8_t nowhere = -2;

  std::int8_t preferred{nowhere};  ///< a GPU, -1 for the host, or `nowhere`
  std::uint8_t accessed_by{0};     ///< a bit for each GPU
  bool read_mostly{false};
};

/**
 * @brief All blocks of 2 MiB: where their pages are, and what was advised about them.
 *
 * Blocks have numbers; those of a range lie side by side, and numbers are used again. Which pages
 * are where is kept as `page_set_store` keeps it: in 4 bytes for each place as long as all pages of
 * a block are alike.
 */
class block_table {
 public:
  static constexpr unsigned most_gpus     = 8;
  static constexpr unsigned most_programs = 8;

  explicit block_table(unsigned gpus) : gpus_{gpus} {}

  /** @brief Numbers for so many pages' blocks, side by side. @return the first @throws */
  [[nodiscard]] std::uint32_t take(std::uint64_t pages, std::uintptr_t address, unsigned program);
  /** @brief Gives `count` blocks back, whose pages are forgotten. */
  void give_back(std::uint32_t first, std::uint32_t count) noexcept;
  /** @brief One more than the largest number ever. */
  [[nodiscard]] std::size_t size() const noexcept { return blocks_.size(); }

  [[nodiscard]] page_set whole(std::uint32_t block) const noexcept
  {
    return page_set::range(0, blocks_[block].page_count);
  }
  [[nodiscard]] std::size_t page_count(std::uint32_t block) const noexcept
  {
    return blocks_[block].page_count;
  }
  /** @brief Device bytes that back the block when it has any. */
  [[nodiscard]] std::size_t chunk_bytes(std::uint32_t block) const noexcept
  {
    return page_count(block) * page_bytes;
  }
  [[nodiscard]] std::uintptr_t address(std::uint32_t block) const noexcept
  {
    return std::uintptr_t{blocks_[block].number} << 21U;
  }

  /** @brief The program whose memory it is. */
  [[nodiscard]] unsigned program(std::uint32_t block) const noexcept
  {
    return blocks_[block].program;
  }

  // Pages, by place.
  [[nodiscard]] page_set on_gpu(std::uint32_t block, unsigned gpu) const noexcept
  {
    return sets_.load(on_gpus_[index(block, gpu)], whole(block));
  }
  [[nodiscard]] page_set on_host(std::uint32_t block) const noexcept
  {
    return sets_.load(blocks_[block].on_host, whole(block));
  }
  /** @brief Host memory taken; kept until the range is freed. */
  [[nodiscard]] page_set host_pages(std::uint32_t block) const noexcept
  {
    return sets_.load(blocks_[block].host_pages, whole(block));
  }
  /** @brief Contents dropped, not written since. */
  [[nodiscard]] page_set discarded(std::uint32_t block) const noexcept
  {
    return sets_.load(blocks_[block].discarded, whole(block));
  }
  /** @brief On the host, and not on a third tier behind it. */
  [[nodiscard]] page_set in_host_memory(std::uint32_t block) const noexcept
  {
    return on_host(block) & host_pages(block);
  }
  void set_on_gpu(std::uint32_t block, unsigned gpu, page_set const& pages)
  {
    sets_.store(on_gpus_[index(block, gpu)], pages, whole(block));
  }
  void set_on_host(std::uint32_t block, page_set const& pages)
  {
    sets_.store(blocks_[block].on_host, pages, whole(block));
  }
  void set_host_pages(std::uint32_t block, page_set const& pages)
  {
    sets_.store(blocks_[block].host_pages, pages, whole(block));
  }
  /** @brief Mapped for reading only, wherever they are: of blocks that are read mostly. */
  [[nodiscard]] page_set read_only(std::uint32_t block) const noexcept
  {
    return sets_.load(blocks_[block].read_only, whole(block));
  }
  void set_read_only(std::uint32_t block, page_set const& pages)
  {
    sets_.store(blocks_[block].read_only, pages, whole(block));
  }
  void set_discarded(std::uint32_t block, page_set const& pages)
  {
    sets_.store(blocks_[block].discarded, pages, whole(block));
  }
  [[nodiscard]] bool nothing_discarded(std::uint32_t block) const noexcept
  {
    return blocks_[block].discarded == page_set_store::empty;
  }
  [[nodiscard]] bool all_on_gpu(std::uint32_t block, unsigned gpu) const noexcept
  {
    return on_gpus_[index(block, gpu)] == page_set_store::full;
  }
  [[nodiscard]] bool none_on_host(std::uint32_t block) const noexcept
  {
    return blocks_[block].on_host == page_set_store::empty;
  }

  // What was advised, and how it was discarded.
  [[nodiscard]] block_policy policy(std::uint32_t block) const noexcept
  {
    auto const& from = blocks_[block];
    return {from.preferred, from.accessed_by, from.read_mostly != 0};
  }
  void set_policy(std::uint32_t block, block_policy const& policy) noexcept
  {
    auto& to       = blocks_[block];
    to.preferred   = policy.preferred;
    to.accessed_by = policy.accessed_by;
    to.read_mostly = policy.read_mostly ? 1 : 0;
  }
  /** @brief Whether the latest discard kept the mappings: writes then do not clear the mark. */
  [[nodiscard]] bool keeps_mappings(std::uint32_t block) const noexcept
  {
    return blocks_[block].keeps_mappings != 0;
  }
  void set_keeps_mappings(std::uint32_t block, bool keeps) noexcept
  {
    blocks_[block].keeps_mappings = keeps ? 1 : 0;
  }

  /** @brief Bytes that it takes. */
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  struct entry {
    page_set_store::handle on_host{page_set_store::empty};
    page_set_store::handle host_pages{page_set_store::empty};
    page_set_store::handle discarded{page_set_store::empty};
    page_set_store::handle read_only{page_set_store::empty};
    std::uint32_t number{0};  // of its 2 MiB in the address space
    std::uint16_t page_count     : 10 {pages_per_block};
    std::uint16_t program        : 4 {0};
    std::uint16_t read_mostly    : 1 {0};
    std::uint16_t keeps_mappings : 1 {0};
    std::int8_t preferred{block_policy::nowhere};
    std::uint8_t accessed_by{0};  // a bit for each GPU
  };
  static_assert(sizeof(entry) == 24);  // there are millions of them

  [[nodiscard]] std::size_t index(std::uint32_t number, unsigned gpu) const noexcept
  {
    return std::size_t{number} * gpus_ + gpu;
  }

  unsigned gpus_;
  std::vector<entry> blocks_;
  std::vector<page_set_store::handle> on_gpus_;  // for each block one of each GPU
  page_set_store sets_;
  std::map<std::uint32_t, std::uint32_t> free_;  // first number and count of what was given back
};

}  // namespace rmm_uvm::sim
