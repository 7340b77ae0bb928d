// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/chunk_lists.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief Host memory behind managed pages and, where the machine has one, a third tier behind it.
 *
 * When the host is full, a block gives all of its host memory up: one whose pages are all on a GPU,
 * else the one that took memory longest ago, whose pages go to the third tier. A page that counts
 * as on the host and has no host memory is there. What is not noexcept may throw std::bad_alloc.
 */
class host_memory {
 public:
  host_memory(model_config const& config,
              timeline& time,
              block_table& blocks,
              model_account& account) noexcept
    : config_{config}, timeline_{time}, blocks_{blocks}, account_{account}
  {
  }

  /** @brief Whether there is a third tier. */
  [[nodiscard]] bool has_third_tier() const noexcept
  {
    return config_.behind_host.capacity_bytes > 0;
  }
  /** @brief Makes room for blocks numbered below `blocks`. */
  void resize(std::size_t blocks)
  {
    if (has_third_tier()) { order_.resize(blocks); }
  }
  /** @brief Takes memory for pages that have none here. @return false where there is not enough */
  [[nodiscard]] bool take(std::uint32_t block, page_set const& pages);
  /** @brief Has pages come back from the third tier. @return false where the host has no room */
  [[nodiscard]] bool recall(std::uint32_t block, page_set const& pages);
  /** @brief Pages are about to be elsewhere only. @pre there is a third tier */
  void leave(std::uint32_t block, page_set const& pages) noexcept;
  /** @brief A block is no more. */
  void forget(std::uint32_t block) noexcept;
  /** @brief Bytes that it takes. */
  [[nodiscard]] std::size_t bytes() const noexcept { return order_.bytes(); }

 private:
  [[nodiscard]] page_set on_third_tier(std::uint32_t block) const noexcept
  {
    return blocks_.on_host(block) - blocks_.host_pages(block);
  }
  [[nodiscard]] bool make_room(std::uint32_t block, std::size_t bytes);
  [[nodiscard]] bool push_on(std::uint32_t block);
  void add(std::uint32_t block, page_set const& pages);

  model_config const& config_;
  timeline& timeline_;
  block_table& blocks_;
  model_account& account_;
  chunk_lists order_;  // of blocks with host memory, where there is a third tier
};

}  // namespace rmm_uvm::sim
