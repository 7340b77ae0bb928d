// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/page_mover.hpp>
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Faults of one access, on one block. */
struct page_faults {
  std::uint32_t block{0};
  page_set pages;
  bool write{false};
};

/**
 * @brief What the kernel driver does about page faults, of GPUs by the batch, and of the CPU.
 *
 * Has pages moved, writes what a fault changes of blocks' mappings and marks, and spends its time.
 * What is not noexcept may throw std::bad_alloc.
 */
class fault_service {
 public:
  fault_service(model_config const& config,
                timeline& time,
                program_clocks const& clocks,
                block_table& blocks,
                model_account& account,
                page_mover& mover) noexcept;

  /**
   * @brief The pages that an access of a GPU faults on.
   * @param[in,out] remote with those that it reads where they are, through a mapping
   */
  [[nodiscard]] page_set missing_for(std::uint32_t block,
                                     unsigned gpu,
                                     page_set const& pages,
                                     bool write,
                                     page_set& remote) const noexcept;
  /** @brief Serves a batch of those that wait, which leave `waiting`; others may come again. */
  status serve_batch(std::vector<page_faults>& waiting, unsigned gpu);
  /** @brief The CPU accesses pages of a block, upwards. */
  status serve_cpu(std::uint32_t block, page_set const& pages, bool write);

 private:
  struct block_faults {  // all of a batch on one block
    std::uint32_t block{0};
    page_set reads;
    page_set writes;
  };

  status serve_block(block_faults const& asked, unsigned gpu);
  [[nodiscard]] page_set missing_of(block_faults const& asked,
                                    unsigned gpu,
                                    page_set& writes) const noexcept;
  void ask_again(unsigned gpu, std::vector<page_faults>& waiting) const;
  void spend_on_unmapping(std::uint32_t block,
                          unsigned gpu,
                          page_set const& coming,
                          page_set const& writes) noexcept;
  status share(std::uint32_t block,
               unsigned gpu,
               page_set const& coming,
               page_set const& faulted,
               page_set const& writes);

  model_config const& config_;
  timeline& timeline_;
  program_clocks const& clocks_;
  block_table& blocks_;
  model_account& account_;
  page_mover& mover_;
  std::vector<block_faults> served_;  // of the present batch
};

}  // namespace rmm_uvm::sim
