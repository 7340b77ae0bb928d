// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Sums since the model was made, and levels now. */
struct model_counters {
  std::uint64_t to_device_bytes{0};  ///< migrated from the host to GPUs
  std::uint64_t to_host_bytes{0};    ///< migrated to the host, evictions included
  std::uint64_t peer_bytes{0};       ///< migrated between GPUs
  std::uint64_t remote_bytes{0};     ///< accessed by kernels where they lay, through a mapping
  std::uint64_t evicted_bytes{0};    ///< written back to make room
  std::uint64_t evicted_blocks{0};   ///< chunks taken away, copied or not
  std::uint64_t dropped_bytes{0};    ///< discarded pages that left without a copy
  std::uint64_t filled_bytes{0};     ///< device memory that came without a copy
  std::uint64_t gpu_faults{0};       ///< pages that faulted, duplicates included
  std::uint64_t fault_services{0};   ///< blocks served, once for each batch that touched them
  std::uint64_t fault_batches{0};    ///< batches of GPU faults
  std::uint64_t cpu_faults{0};       ///< faults of the CPU that were served
  std::uint64_t block_operations{
    0};                           ///< blocks migrated, filled, evicted, discarded or found there
  std::size_t managed_bytes{0};   ///< managed memory now
  std::size_t device_bytes{0};    ///< cudaMalloc memory of all GPUs now
  std::size_t resident_bytes{0};  ///< device memory behind managed pages now
  std::size_t peak_resident_bytes{0};      ///< the most of it
  std::size_t host_page_bytes{0};          ///< host memory behind managed pages now
  std::uint64_t to_third_tier_bytes{0};    ///< written to it, since the host had no room
  std::uint64_t from_third_tier_bytes{0};  ///< read from it
  std::size_t third_tier_bytes{0};         ///< there now
};

/** @brief How the memory of one GPU is used. */
struct gpu_levels {
  std::size_t device_bytes{0};         ///< cudaMalloc memory now
  std::size_t resident_bytes{0};       ///< memory behind managed pages now
  std::size_t peak_resident_bytes{0};  ///< the most of it
};

/** @brief Who moved what, for those who keep account by cause and place. */
class migration_listener {
 public:
  migration_listener()                                     = default;
  migration_listener(migration_listener const&)            = delete;
  migration_listener& operator=(migration_listener const&) = delete;
  migration_listener(migration_listener&&)                 = delete;
  migration_listener& operator=(migration_listener&&)      = delete;
  virtual ~migration_listener()                            = default;
  /** @brief So many bytes of a block of a program moved over a GPU's link to the host. */
  virtual void moved(unsigned program,
                     direction way,
                     migration_cause cause,
                     memory_range pages) noexcept = 0;
};

/**
 * @brief What the model counts: of all, of each program, and of each GPU's memory.
 *
 * Reads whose a block is and where it lies; moves nothing. Tells the listener what is entered.
 */
class model_account {
 public:
  model_account(model_config const& config, block_table const& blocks);

  /** @brief Enters into the sums of all, and of a program. */
  void add(unsigned program, std::uint64_t model_counters::* sum, std::uint64_t number) noexcept
  {
    all_.*sum += number;
    if (several_) { of_programs_[program].*sum += number; }
  }
  /** @brief The same, of whose block it is. */
  void count(std::uint32_t block,
             std::uint64_t model_counters::* sum,
             std::uint64_t number = 1) noexcept
  {
    all_.*sum += number;
    if (several_) { of_programs_[blocks_.program(block)].*sum += number; }
  }
  /** @brief So many bytes of a block came from the host to a GPU, or went there. */
  void report(direction way, migration_cause cause, std::uint32_t block, std::size_t bytes) noexcept
  {
    if (bytes == 0) { return; }
    auto const sum = way == direction::to_device ? &model_counters::to_device_bytes
                                                 : &model_counters::to_host_bytes;
    count(block, sum, bytes);
    // Which of its pages, nobody asks.
    if (listener_ != nullptr) {
      listener_->moved(blocks_.program(block), way, cause, {blocks_.address(block), bytes});
    }
  }
  /** @brief Device memory comes behind a block, or goes: then `bytes` is what wraps around. */
  void add_resident_bytes(std::uint32_t block, unsigned gpu, std::size_t bytes) noexcept
  {
    raise(all_, bytes);
    raise(gpus_[gpu].all, bytes);
    if (!several_) { return; }
    raise(of_programs_[blocks_.program(block)], bytes);
    raise(gpus_[gpu].of_programs[blocks_.program(block)], bytes);
  }
  /** @brief A program takes cudaMalloc memory, or gives it back: as above. */
  void add_device_bytes(unsigned program, unsigned gpu, std::size_t bytes) noexcept
  {
    gpus_[gpu].all.device_bytes += bytes;
    add(program, &model_counters::device_bytes, bytes);
  }

  [[nodiscard]] model_counters const& counters() const noexcept { return all_; }
  /** @brief What a program's memory, its faults and its cudaMalloc memory have in `counters`. */
  [[nodiscard]] model_counters const& counters(unsigned program) const noexcept
  {
    return several_ ? of_programs_[program] : all_;
  }
  /** @brief What is used of a GPU's memory. */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu) const noexcept { return gpus_[gpu].all; }
  /** @brief Memory of a GPU behind a program's managed pages. */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu, unsigned program) const noexcept
  {
    return several_ ? gpus_[gpu].of_programs[program] : gpus_[gpu].all;
  }
  /** @brief Tells a listener of every migration from now on; nullptr for none. */
  void listen(migration_listener* listener) noexcept { listener_ = listener; }

 private:
  struct gpu_memory {
    gpu_levels all;
    std::vector<gpu_levels> of_programs;
  };

  template <typename levels_type>
  static void raise(levels_type& levels, std::size_t bytes) noexcept
  {
    levels.resident_bytes += bytes;
    levels.peak_resident_bytes = std::max(levels.peak_resident_bytes, levels.resident_bytes);
  }

  block_table const& blocks_;
  bool several_;  // programs
  model_counters all_;
  std::vector<model_counters> of_programs_;  // where there are several
  std::vector<gpu_memory> gpus_;
  migration_listener* listener_{nullptr};
};

}  // namespace rmm_uvm::sim
