// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/copy_waits.hpp>
#include <rmm_uvm/sim/fault_service.hpp>
#include <rmm_uvm/sim/kernel_runner.hpp>
#include <rmm_uvm/sim/managed_ranges.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/page_commands.hpp>
#include <rmm_uvm/sim/page_mover.hpp>
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace rmm_uvm::sim {

/**
 * @brief The UVM kernel driver and the links as a model: blocks, chunks, faults, copies and time.
 *
 * Deterministic: equal calls, equal results. Operations take effect in the order of the calls;
 * their times follow streams, the driver's one thread, and the copy engines. Several programs share
 * GPUs and engines; each has its own memory, streams, clock, and thread of the driver. Rules are
 * those of open-gpu-kernel-modules 580.142; docs/understand/simulator.md names them, and what is
 * left out. The work is done by its parts; cpp/README.md says what each of them may touch. Not
 * thread-safe. Calls that are not noexcept may throw std::bad_alloc; what they had moved stays
 * moved.
 */
class uvm_model {
 public:
  static constexpr int host               = host_place;
  static constexpr unsigned most_gpus     = block_table::most_gpus;
  static constexpr unsigned most_programs = block_table::most_programs;

  explicit uvm_model(model_config const& config);
  uvm_model(uvm_model const&)            = delete;
  uvm_model& operator=(uvm_model const&) = delete;
  uvm_model(uvm_model&&)                 = delete;
  uvm_model& operator=(uvm_model&&)      = delete;
  ~uvm_model()                           = default;

  /**
   * @brief What follows is done by this program; the first one until then.
   *
   * In lane 0 it runs; what it does in another goes on beside, from its time on.
   * @pre there are such
   */
  void run_as(unsigned program, unsigned lane = 0) noexcept;
  /** @brief The program's lane that runs now waits for another of it. */
  void wait_for_lane(unsigned lane) noexcept { clocks_.wait_until(clocks_.lane_ns(lane)); }

  // Memory.
  /**
   * @brief Managed memory at `range`, whose address is a multiple of 2 MiB.
   * @throws std::invalid_argument if it is not, or the range is empty, ends past 2^53, or overlaps
   * another
   */
  void add_range(memory_range range);
  /** @brief Gives a managed range back. @return false if none begins there */
  bool remove_range(std::uintptr_t address) noexcept;
  /** @brief Takes cudaMalloc memory, of whichever process; evicts for it. */
  status allocate_device(unsigned gpu, std::size_t bytes);
  /** @brief Gives as much back; nothing if it was not taken. */
  void free_device(unsigned gpu, std::size_t bytes) noexcept;

  // Commands.
  /** @brief cuMemPrefetchAsync. @param where a GPU, or `host` */
  status prefetch(memory_range range, int where, std::uint64_t stream)
  {
    return commands_.prefetch(range, where, stream);
  }
  /** @brief UVM_MIGRATE, past libcuda and every stream: whoever calls waits until it is done. */
  status migrate(memory_range range, int where) { return commands_.migrate(range, where); }
  /** @brief cuMemDiscardBatchAsync. @param unmap false keeps the mappings, as the driver can */
  status discard(memory_range range, bool unmap) { return commands_.discard(range, unmap); }
  /** @brief cuMemDiscardAndPrefetchBatchAsync. */
  status discard_and_prefetch(memory_range range, int where, std::uint64_t stream)
  {
    return commands_.discard_and_prefetch(range, where, stream);
  }
  /** @brief cuMemAdvise of the blocks that hold any of the range. */
  status advise(memory_range range, advice what, int where)
  {
    return commands_.advise(range, what, where);
  }

  // Programs.
  /** @brief A kernel is launched; its faults are served. */
  status launch(kernel_launch const& kernel) { return kernels_.launch(kernel); }
  /** @brief The CPU reads, or reads and writes, every page of a range, upwards. */
  status cpu_touch(memory_range range, bool write);
  /** @brief The host does something else. */
  void host_work(double ns) noexcept { clocks_.spend(ns); }
  /** @brief The host does nothing until then. */
  void wait_until(double ns) noexcept { clocks_.wait_until(ns); }
  /** @brief The host waits for a stream. */
  void synchronize(std::uint64_t stream) noexcept { clocks_.wait_for(stream); }
  /** @brief The host waits for everything. */
  void synchronize() noexcept { clocks_.wait_for_all(); }

  // Observations.
  /** @brief The program's time on the host. */
  [[nodiscard]] double now_ns() const noexcept { return clocks_.now_ns(); }
  /** @brief The program's time in one of its lanes. */
  [[nodiscard]] double lane_ns(unsigned lane) const noexcept { return clocks_.lane_ns(lane); }
  /** @brief The time of the program that is furthest. */
  [[nodiscard]] double latest_ns() const noexcept { return clocks_.latest_ns(); }
  [[nodiscard]] model_counters const& counters() const noexcept { return account_.counters(); }
  /** @brief What a program's memory, its faults and its cudaMalloc memory have in `counters`. */
  [[nodiscard]] model_counters const& counters(unsigned program) const noexcept
  {
    return account_.counters(program);
  }
  [[nodiscard]] timeline const& links() const noexcept { return timeline_; }
  /** @brief Whether two GPUs copy from each other without the host between. */
  [[nodiscard]] bool reaches(unsigned one, unsigned other) const noexcept
  {
    return config_.reaches(one, other);
  }
  [[nodiscard]] model_config const& config() const noexcept { return config_; }
  /** @brief Device memory that nobody holds. */
  [[nodiscard]] std::size_t free_bytes(unsigned gpu) const noexcept
  {
    return gpu < config_.gpus ? mover_.free_bytes(gpu) : 0;
  }
  /** @brief What is used of a GPU's memory. @pre there is such a GPU */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu) const noexcept
  {
    return account_.levels(gpu);
  }
  /** @brief Memory of a GPU behind a program's managed pages. @pre there are such */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu, unsigned program) const noexcept
  {
    return account_.levels(gpu, program);
  }
  /** @brief Bytes of a range that reside on a GPU, or on the host. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range, int where) const noexcept;
  /** @brief What was advised about the block that an address is in; nothing for other memory. */
  [[nodiscard]] block_policy advised(std::uintptr_t address) const noexcept;
  /** @brief The managed range that an address is in; nullopt for none. */
  [[nodiscard]] std::optional<memory_range> range_of(std::uintptr_t address) const noexcept
  {
    return ranges_.range_of(address, clocks_.program());
  }
  /** @brief Calls back for the whole pages of a range; `inward` leaves out those it cuts. */
  bool for_each_block(memory_range range,
                      bool inward,
                      std::function<void(std::uintptr_t, page_set const&)> const& visit) const;
  /** @brief Bytes that the model itself takes. */
  [[nodiscard]] std::size_t footprint_bytes() const noexcept
  {
    return blocks_.bytes() + mover_.bytes();
  }
  /** @brief Tells a listener of every migration from now on; nullptr for none. */
  void listen(migration_listener* listener) noexcept { account_.listen(listener); }

 private:
  // Whose pages a range of the present program covers; see `managed_ranges::find`.
  [[nodiscard]] std::optional<block_span> find(memory_range range, bool inward) const noexcept
  {
    return ranges_.find(range, inward, clocks_.program());
  }

  model_config config_;
  timeline timeline_;
  program_clocks clocks_;
  managed_ranges ranges_;
  block_table blocks_;
  model_account account_;
  copy_waits waits_;
  page_mover mover_;
  page_commands commands_;
  fault_service faults_;
  kernel_runner kernels_;
};

}  // namespace rmm_uvm::sim
