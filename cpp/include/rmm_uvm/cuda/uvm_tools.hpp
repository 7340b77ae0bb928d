// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/**
 * @brief The part of the UVM kernel driver's tools interface that counters need.
 *
 * Source: NVIDIA/open-gpu-kernel-modules 580 to 595, kernel-open/nvidia-uvm/uvm_ioctl.h and
 * uvm_types.h; behaviour: uvm_tools.c.
 */
namespace rmm_uvm::cuda::uvm_tools {

inline constexpr char const* device_path     = "/dev/nvidia-uvm";
inline constexpr char const* tools_path      = "/dev/nvidia-uvm-tools";
inline constexpr unsigned long init_tracker  = 56;  ///< UVM_TOOLS_INIT_EVENT_TRACKER
inline constexpr unsigned long enable_count  = 60;  ///< UVM_TOOLS_ENABLE_COUNTERS
inline constexpr unsigned long disable_count = 61;  ///< UVM_TOOLS_DISABLE_COUNTERS

/** @brief Argument of `init_tracker`. Without a queue the tracker counts. */
struct init_tracker_parameters {
  std::uint64_t queue_buffer{0};
  std::uint64_t queue_buffer_size{0};
  std::uint64_t control_buffer{0};           ///< page-aligned page that the totals are added to
  std::array<std::uint8_t, 16> processor{};  ///< GPU UUID, unless all
  std::uint32_t all_processors{0};
  std::uint32_t uvm_descriptor{0};  ///< on `device_path`, bound to an address space
  std::uint32_t status{0};          ///< out
};

/** @brief Argument of `enable_count` and `disable_count`. */
struct count_parameters {
  std::uint64_t flags{0};   ///< one bit a counter
  std::uint32_t status{0};  ///< out
};

/** @brief Places of 64-bit totals in the page; their bits are the flags. */
enum class counter : std::uint8_t {
  bytes_to_device = 0,  ///< per GPU
  bytes_to_host   = 1,  ///< per GPU
  cpu_faults = 2,  ///< of the process: a tracker of one GPU sees those of memory preferred there
  gpu_faults = 9   ///< per GPU; faults on the same page that are fetched together are one
};

/** @brief The flag of a counter. */
[[nodiscard]] constexpr std::uint64_t flag(counter which) noexcept
{
  return std::uint64_t{1} << static_cast<unsigned>(which);
}

}  // namespace rmm_uvm::cuda::uvm_tools
