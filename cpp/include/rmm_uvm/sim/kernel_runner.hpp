// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/access_pattern.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/copy_waits.hpp>
#include <rmm_uvm/sim/fault_service.hpp>
#include <rmm_uvm/sim/managed_ranges.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstdint>
#include <span>

namespace rmm_uvm::sim {

/** @brief What a kernel does with one range. */
struct kernel_access {
  memory_range range;      ///< inside one managed range
  access_pattern pattern;  ///< in what order
  bool write{false};       ///< whether it writes what it reads
};

/** @brief A kernel. */
struct kernel_launch {
  std::span<kernel_access const> accesses{};  ///< go forward together, run by run
  double compute_ns{0};                 ///< time with all pages resident, besides reading them
  unsigned gpu{0};                      ///< where it runs
  std::uint64_t stream{0};              ///< waits for what was issued there before
  std::uint32_t outstanding_faults{0};  ///< pages it faults on before it stalls; 0: the machine's
  /// Asked every few thousand accesses: true ends the kernel there, with `driver_error`.
  bool (*shall_stop)(void* asker){nullptr};
  void* asker{nullptr};  ///< what it is asked with
};

/**
 * @brief Kernels: what they access, in which order, and where they stall on page faults.
 *
 * Looks at blocks and changes none; faults are served by `fault_service`. What is not noexcept may
 * throw std::bad_alloc.
 */
class kernel_runner {
 public:
  kernel_runner(model_config const& config,
                timeline& time,
                program_clocks& clocks,
                managed_ranges const& ranges,
                block_table const& blocks,
                model_account& account,
                copy_waits const& waits,
                fault_service& faults) noexcept;

  /** @brief Runs a kernel to its end, on its stream. */
  status launch(kernel_launch const& kernel);

 private:
  class progress;         // of a kernel through one of its accesses
  struct running_kernel;  // a kernel, and how far it is

  // Whether any access finds all that it needs: the usual case, told without looking at pages.
  [[nodiscard]] bool hits(std::uint32_t block, unsigned gpu) const noexcept;
  [[nodiscard]] status prepare(running_kernel& running) const;
  void ask_for_pages(running_kernel& running);
  void access_pages(running_kernel& running, page_faults& given);

  model_config const& config_;
  timeline& timeline_;
  program_clocks& clocks_;
  managed_ranges const& ranges_;
  block_table const& blocks_;
  model_account& account_;
  copy_waits const& waits_;
  fault_service& faults_;
};

}  // namespace rmm_uvm::sim
