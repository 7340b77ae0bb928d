// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_use.hpp>
#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace rmm_uvm::cuda {

/**
 * @brief The UVM kernel driver's own migration call, `UVM_MIGRATE`.
 *
 * Source: NVIDIA/open-gpu-kernel-modules 580 to 595, kernel-open/nvidia-uvm/uvm_ioctl.h,
 * nvCpuUuid.c; behaviour: uvm_migrate.c, `uvm_api_migrate`.
 */
namespace uvm_migrate {

inline constexpr unsigned long request = 51;

/** @brief Argument of `request`. Flags 0: returns when all pages are moved and mapped. */
struct parameters {
  std::uint64_t base{0};                       ///< a multiple of a page
  std::uint64_t length{0};                     ///< likewise, bytes
  std::array<std::uint8_t, 16> destination{};  ///< GPU UUID, or `host`
  std::uint32_t flags{0};
  std::uint64_t semaphore_address{0};
  std::uint32_t semaphore_payload{0};
  std::int32_t cpu_numa_node{-1};      ///< any
  std::uint64_t user_space_start{0};   ///< out; for system memory
  std::uint64_t user_space_length{0};  ///< out; for system memory
  std::uint32_t status{0};             ///< out
};

/** @brief The UUID that stands for host memory. */
inline constexpr std::array<std::uint8_t, 16> host{
  0xA6, 0x5E, 0x0F, 0x4E, 0xD7, 0xD4, 0x7B, 0xA2, 0x50, 0x47, 0x41, 0x2C, 0x14, 0x2A, 0x77, 0x73};

}  // namespace uvm_migrate

class direct_migration;

/** @brief Direct migration, or why there is none. */
struct opened_direct_migration {
  std::unique_ptr<direct_migration> migration;  ///< null when not opened
  availability opened;
};

/**
 * @brief Migrates managed memory by the kernel driver, past libcuda.
 *
 * libcuda holds its context's lock while it prepares a migration, and every launch and event of the
 * process waits for that; the kernel driver's own call holds no lock that kernels need.
 *
 * Self-test: 2 MiB with known contents go to the host and back, both counters rise by exactly that,
 * and the contents stay. An unknown layout therefore means unavailable. Thread-safe.
 */
class direct_migration {
 public:
  /**
   * @brief Finds the process' descriptor by the self-test.
   * @param driver with counters that work; used for the self-test on its device
   * @param system kept
   */
  [[nodiscard]] static opened_direct_migration open(uvm_driver& driver,
                                                    std::shared_ptr<system_calls> const& system);

  /**
   * @brief Lets `migrate` go to another device as well, if a self-test says that it gets there.
   *
   * 2 MiB with known contents go there and come back: no byte may come from the host then.
   * @param driver that of this device; has opened the neighbour
   */
  [[nodiscard]] availability add(uvm_driver& driver,
                                 int device_id,
                                 std::array<std::uint8_t, 16> const& uuid);
  /** @brief Whether pages can go there. */
  [[nodiscard]] bool reaches(location where) const noexcept;

  /** @brief Moves whole pages that `range` touches, and returns when they have arrived. Fails in
   * a forked child. */
  status migrate(memory_range range, location where) noexcept;

 private:
  direct_migration(std::shared_ptr<system_calls> system, int descriptor, device_info const& device)
    : system_{std::move(system)},
      descriptor_{descriptor},
      device_{device.uuid},
      device_id_{device.device_id}
  {
  }

  cuda_use use_;
  std::shared_ptr<system_calls> system_;
  int descriptor_;  // CUDA's, open for as long as the process uses CUDA
  std::array<std::uint8_t, 16> device_;
  int device_id_{0};
  mutable ranked_mutex<lock_rank::direct_migration> mutex_;
  std::map<int, std::array<std::uint8_t, 16>> others_;  // by ordinal
};

}  // namespace rmm_uvm::cuda
