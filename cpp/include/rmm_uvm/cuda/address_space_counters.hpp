// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/counter_tracker.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>

#include <atomic>
#include <memory>

namespace rmm_uvm::cuda {

class address_space_counters;

/** @brief Counters, or why there are none. */
struct opened_address_space_counters {
  std::unique_ptr<address_space_counters> counters;  ///< null when not opened
  availability opened;
};

/**
 * @brief What one address space moves: bytes always, faults on request.
 *
 * CPU faults belong to the process and to no GPU, so counters of one GPU take a second tracker for
 * them, and show those of the whole process. `read` is thread-safe, a few memory loads; the rest is
 * not thread-safe.
 */
class address_space_counters {
 public:
  /**
   * @brief Begins to count bytes.
   * @param system kept
   * @param uvm_descriptor of this process, bound to the address space; not kept
   * @param processor a GPU, or all together
   */
  [[nodiscard]] static opened_address_space_counters open(std::shared_ptr<system_calls> system,
                                                          int uvm_descriptor,
                                                          processor_id const& processor);

  /** @brief Totals since they were opened; zeros in a forked child. */
  [[nodiscard]] migration_totals read() const noexcept;
  /** @brief Begins to count faults. @param uvm_descriptor as in `open` */
  [[nodiscard]] availability count_faults(int uvm_descriptor);
  /** @brief Ends it; totals stay. */
  void stop_faults() noexcept;

 private:
  address_space_counters(std::unique_ptr<counter_tracker> tracker,
                         std::shared_ptr<system_calls> system,
                         bool all_processors) noexcept;

  std::shared_ptr<system_calls> system_;
  std::unique_ptr<counter_tracker> tracker_;
  std::unique_ptr<counter_tracker> process_tracker_;  // for CPU faults; none if not asked for
  std::atomic<counter_tracker const*> cpu_{nullptr};  // who has the CPU faults; read without a lock
  bool all_processors_;
};

}  // namespace rmm_uvm::cuda
