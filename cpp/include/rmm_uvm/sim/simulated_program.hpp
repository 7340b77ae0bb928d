// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/migrating_threads.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>
#include <rmm_uvm/sim/simulated_allocations.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rmm_uvm::sim {

/**
 * @brief The program on a simulated device: its kernels, its CPU code, its cudaMalloc.
 *
 * It lets the model run kernels, and allocates device memory. It calls no command of the seam.
 * Thread-safe: every call is a turn of the node.
 */
class simulated_program {
 public:
  simulated_program(node_gpu const& gpu,
                    planned_answers& answers,
                    simulated_allocations& allocations,
                    migrating_threads& threads,
                    bool integrated = false) noexcept
    : gpu_{gpu},
      answers_{answers},
      allocations_{allocations},
      threads_{threads},
      integrated_{integrated}
  {
  }

  /** @brief A kernel reads, or reads and writes, every byte of a managed range. */
  status touch(memory_range range, bool write) noexcept;
  /** @brief The CPU reads, or reads and writes, every byte of a managed range. */
  status cpu_touch(memory_range range, bool write) noexcept;
  /** @brief A kernel computes for so long, and accesses no memory to speak of. */
  status compute(double ns) noexcept;
  /** @brief Tells an observer of every touch from now on; null for none. @throws std::bad_alloc */
  void observe(std::shared_ptr<memory_observer> observer) { observer_.set(std::move(observer)); }
  /** @brief The observer of touches, to attach and detach one that must not replace another. */
  [[nodiscard]] observer_slot& observers() noexcept { return observer_; }
  /**
   * @brief Whose thread migrates from now on: one beside the program, or the program's own again.
   *
   * What a budget's thread would do is asked for by the only thread that there is. On a node, a
   * kernel waits for what that moves where it uses it; without lanes it is the program's time.
   */
  void migrate_beside(bool beside) noexcept;
  /** @brief cudaMalloc: never evicted, evicts managed memory, refuses when that is not enough. */
  status allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept;
  /** @brief cudaFree of `allocate_device` memory. */
  status free_device(std::uintptr_t address) noexcept;

 private:
  node_gpu const& gpu_;
  planned_answers& answers_;
  simulated_allocations& allocations_;
  migrating_threads& threads_;
  bool integrated_;
  observer_slot observer_;
};

}  // namespace rmm_uvm::sim
