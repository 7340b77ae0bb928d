// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/chunk_lists.hpp>
#include <rmm_uvm/sim/copy_waits.hpp>
#include <rmm_uvm/sim/host_memory.hpp>
#include <rmm_uvm/sim/link_engine.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief How pages move: chunks of device memory, who leaves them, and the copies.
 *
 * Changes where blocks' pages are, spends time, and enters it into the account. Why anything moves,
 * commands and faults know. What is not noexcept may throw std::bad_alloc.
 */
class page_mover {
 public:
  page_mover(model_config const& config,
             timeline& time,
             program_clocks const& clocks,
             block_table& blocks,
             model_account& account,
             copy_waits& waits);

  /** @brief Makes room for blocks numbered below `blocks`. */
  void resize(std::size_t blocks);
  /** @brief A block is no more: its memory on GPUs and on the host is free. */
  void forget(std::uint32_t block) noexcept;
  /** @brief Device memory that nobody holds. @pre there is such a GPU */
  [[nodiscard]] std::size_t free_bytes(unsigned gpu) const noexcept
  {
    auto const& used = account_.levels(gpu);
    return config_.device_bytes - used.device_bytes - used.resident_bytes;
  }
  /** @brief Evicts until so much is free. @param keep a block that does not leave for it */
  status make_room(unsigned gpu, std::size_t bytes, std::uint32_t keep = chunk_lists::nobody);
  /** @brief Whether a `migrate` is under way: others of the program work beside it. */
  void set_direct(bool direct) noexcept { direct_ = direct; }

  /**
   * @brief Pages of a block come to a GPU.
   * @param asked those of them that `cause` is about; others are the driver's prefetch
   * @param duplicate they stay where they are, too
   */
  status to_device(std::uint32_t block,
                   unsigned gpu,
                   page_set const& pages,
                   page_set const& asked,
                   migration_cause cause,
                   bool duplicate);
  /** @brief The same, to the host. */
  status to_host(std::uint32_t block,
                 page_set const& pages,
                 page_set const& asked,
                 migration_cause cause,
                 bool duplicate);
  /** @brief Pages are in one place at most from now on. @param stays that; -2 for none */
  void leave_others(std::uint32_t block, page_set const& pages, int stays);
  /** @brief All that a block's chunks hold was discarded: they are the next that leave. */
  void drop_chunks(std::uint32_t block) noexcept;
  [[nodiscard]] page_set resident_anywhere(std::uint32_t block) const noexcept;
  /** @brief Bytes that it takes. */
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  /** @brief Makes some bytes free, or all that a block has. */
  status evict(std::uint32_t block, unsigned gpu, std::size_t bytes);
  /** @brief Room for a block's chunk or, page by page, for pages of it. */
  status take_memory(std::uint32_t block, unsigned gpu, page_set const& pages);
  void release_chunk(std::uint32_t block, unsigned gpu) noexcept;
  /** @brief Device memory that a block with a chunk takes. */
  [[nodiscard]] std::size_t held_bytes(std::uint32_t block, unsigned gpu) const noexcept
  {
    return config_.driver.evict_pages ? blocks_.on_gpu(block, gpu).bytes()
                                      : blocks_.chunk_bytes(block);
  }
  void leave_gpu(std::uint32_t block, unsigned gpu, page_set const& pages);
  /** @brief What pages on their way to the host take of the driver's thread. */
  [[nodiscard]] double to_host_ns(page_set const& pages, page_set const& discarded) const noexcept;
  void spend_to_host(double ns);
  [[nodiscard]] bool copy_from_gpus(
    std::uint32_t block, unsigned gpu, page_set& rest, bool duplicate, bool direct);
  [[nodiscard]] bool copy_from_host(std::uint32_t block,
                                    unsigned gpu,
                                    page_set const& copied,
                                    page_set const& asked,
                                    migration_cause cause);

  model_config const& config_;
  timeline& timeline_;
  program_clocks const& clocks_;
  block_table& blocks_;
  model_account& account_;
  copy_waits& waits_;
  host_memory host_;
  std::vector<chunk_lists> chunks_;         // by GPU
  std::vector<link_engine> to_host_alone_;  // by program: work of one thread of it at a time
  bool direct_{false};
};

}  // namespace rmm_uvm::sim
