// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace rmm_uvm::cuda {

/**
 * @brief Cuts the CPU's mapping of managed memory into several, so that threads evict in parallel.
 *
 * What goes to the host is mapped there page by page, each under a lock of its mapping (the UVM
 * kernel driver's `uvm_cpu_insert_page`), and an allocation is one mapping. So threads that evict
 * from one allocation wait for each other: on an H100 eight of them evict at 18 GB/s, and at 39
 * where each has mappings of its own (benchmarks/driver/migration_threads.py).
 *
 * The operating system cuts a mapping where advice differs. The advice here says what is left out
 * of a core dump, in which managed memory is not by default. Where it refuses, or a process has as
 * many mappings of this kind as it may, memory works as before, and evicts slower. Thread-safe.
 */
class mapping_cuts {
 public:
  static constexpr std::size_t least_bytes = std::size_t{4} << 20U;  ///< of a mapping
  /** @brief Mappings of one process; Linux allows it 65,530, which its other parts need as well. */
  static constexpr std::size_t most = 32'768;

  /** @param system kept */
  explicit mapping_cuts(std::shared_ptr<system_calls> system) noexcept;
  ~mapping_cuts();
  mapping_cuts(mapping_cuts const&)            = delete;
  mapping_cuts& operator=(mapping_cuts const&) = delete;
  mapping_cuts(mapping_cuts&&)                 = delete;
  mapping_cuts& operator=(mapping_cuts&&)      = delete;

  /**
   * @brief Cuts memory that was just allocated, and that nobody else has yet.
   *
   * Into at most half as many mappings as the process has left, of `least_bytes` or that times a
   * power of two. Memory that does not begin with a block of the driver stays whole.
   */
  void cut(memory_range memory) noexcept;
  /** @brief Says that memory is about to be freed; of memory that was not cut, nothing. */
  void forget(std::uintptr_t address) noexcept;

 private:
  static inline std::atomic<std::size_t> of_process_{0};  // mappings, of all devices
  std::shared_ptr<system_calls> system_;
  ranked_mutex<lock_rank::mappings> mutex_;
  std::map<std::uintptr_t, std::size_t> counts_;  // of mappings, by begin of the memory
};

}  // namespace rmm_uvm::cuda
