// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/managed_ranges.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/page_mover.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

/** @brief Advice about where pages belong, as `cuMemAdvise`. */
enum class advice : std::uint8_t {
  read_mostly,
  unset_read_mostly,
  preferred_location,
  unset_preferred_location,
  accessed_by,
  unset_accessed_by
};

/**
 * @brief What programs ask of the kernel driver: prefetch, discard, advice.
 *
 * Has pages moved, writes what was discarded and advised into blocks, and spends the time of calls.
 * What is asked for, `uvm_model` documents. May throw std::bad_alloc.
 */
class page_commands {
 public:
  page_commands(model_config const& config,
                timeline& time,
                program_clocks& clocks,
                managed_ranges const& ranges,
                block_table& blocks,
                model_account& account,
                page_mover& mover) noexcept;

  status prefetch(memory_range range, int where, std::uint64_t stream);
  status migrate(memory_range range, int where);
  status discard(memory_range range, bool unmap);
  status discard_and_prefetch(memory_range range, int where, std::uint64_t stream);
  status advise(memory_range range, advice what, int where);

 private:
  status prefetch_blocks(block_span const& span, int where, bool deferred);
  status prefetch_block(std::uint32_t block, page_set pages, int where);
  void finish_deferred(std::size_t to_device_bytes);
  void discard_blocks(block_span const& span, bool unmap, bool with_prefetch);
  void leave_one_copy(std::uint32_t block);
  [[nodiscard]] bool begin_call(std::uint64_t stream);
  void end_call(std::uint64_t stream, bool deferred);

  model_config const& config_;
  timeline& timeline_;
  program_clocks& clocks_;
  managed_ranges const& ranges_;
  block_table& blocks_;
  model_account& account_;
  page_mover& mover_;
};

}  // namespace rmm_uvm::sim
