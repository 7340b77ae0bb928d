// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_transfers.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/simulated_allocations.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmm_uvm::sim {

/** @brief What the simulated device counted, and where everything is now. */
struct simulated_statistics {
  std::uint64_t host_to_device_bytes{0};  ///< migrated to the device
  std::uint64_t device_to_host_bytes{0};  ///< migrated to the host, evictions included
  std::uint64_t evicted_bytes{0};         ///< of those, written back to make room
  std::uint64_t evicted_blocks{0};        ///< chunks taken away to make room, copied or not
  std::uint64_t dropped_bytes{0};         ///< discarded pages that left without a copy
  std::uint64_t gpu_fault_groups{0};      ///< blocks served, once for each batch of faults on them
                                          ///< (4 KiB pages once discarded)
  std::uint64_t gpu_faults{0};            ///< pages that faulted, duplicates included
  std::uint64_t cpu_faults{0};            ///< faults of the CPU that were served
  std::uint64_t modelled_ns{0};           ///< modelled time of everything that the driver did
  std::size_t managed_bytes{0};           ///< managed memory allocated now
  std::size_t device_bytes{0};            ///< cudaMalloc memory allocated now
  std::size_t resident_bytes{0};          ///< device memory behind managed pages now
  std::size_t peak_resident_bytes{0};     ///< the most of it
  std::size_t host_page_bytes{0};         ///< host memory behind managed pages now
  std::size_t neighbor_bytes{0};          ///< memory of neighbours behind managed pages now
  std::size_t lent_bytes{0};  ///< device memory behind managed pages of other programs now
  std::uint64_t to_third_tier_bytes{0};    ///< written to it, since the host had no room
  std::uint64_t from_third_tier_bytes{0};  ///< read from it
  std::size_t third_tier_bytes{0};         ///< there now
};

/**
 * @brief Shows where pages of a simulated device are, and its allocations. A GPU tells neither.
 *
 * It changes nothing. Thread-safe: every call is a turn of the node.
 */
class simulated_view {
 public:
  simulated_view(node_gpu const& gpu, simulated_allocations const& allocations) noexcept
    : gpu_{gpu}, allocations_{allocations}
  {
  }

  /** @brief Its number in the node. */
  [[nodiscard]] unsigned gpu() const noexcept { return gpu_.number(); }
  /** @brief Counts and levels now. */
  [[nodiscard]] simulated_statistics statistics() const noexcept;
  /** @brief Bytes of a managed range that reside on the device. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range) const noexcept
  {
    return resident_bytes(range, location::device(gpu_.ordinal()));
  }
  /** @brief Bytes of a managed range that reside in a place; none where there is no such place. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range, location where) const noexcept;
  /** @brief What was advised about the block that an address is in; GPUs have the node's number. */
  [[nodiscard]] block_policy advised(std::uintptr_t address) const noexcept;
  /** @brief Whether there are real bytes behind the addresses. */
  [[nodiscard]] bool backing() const noexcept { return allocations_.backing(); }
  /** @brief What an address belongs to; none for memory that is not of this device. */
  [[nodiscard]] std::optional<memory_kind> find_memory(std::uintptr_t address) const noexcept;
  /**
   * @brief Descriptor of the shared memory behind an `allocate_device` allocation with backing.
   * @param base its first byte
   * @return -1 when there is none; else valid until the allocation is freed
   */
  [[nodiscard]] int shared_descriptor(std::uintptr_t base) const noexcept;

 private:
  node_gpu const& gpu_;
  simulated_allocations const& allocations_;
};

}  // namespace rmm_uvm::sim
