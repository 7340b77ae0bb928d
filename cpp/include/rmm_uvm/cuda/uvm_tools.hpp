// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/**
 * @brief The part of the UVM kernel driver's tools interface that counters and windows need.
 *
 * Source: NVIDIA/open-gpu-kernel-modules 535 to 595, kernel-open/nvidia-uvm/uvm_ioctl.h and
 * uvm_types.h; behaviour: uvm_tools.c.
 */
namespace rmm_uvm::cuda::uvm_tools {

inline constexpr char const* device_path      = "/dev/nvidia-uvm";
inline constexpr char const* tools_path       = "/dev/nvidia-uvm-tools";
inline constexpr unsigned long init_tracker   = 56;  ///< UVM_TOOLS_INIT_EVENT_TRACKER
inline constexpr unsigned long enable_events  = 58;  ///< UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS
inline constexpr unsigned long disable_events = 59;  ///< UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS
inline constexpr unsigned long enable_count   = 60;  ///< UVM_TOOLS_ENABLE_COUNTERS
inline constexpr unsigned long disable_count  = 61;  ///< UVM_TOOLS_DISABLE_COUNTERS
inline constexpr unsigned long flush_events   = 67;  ///< UVM_TOOLS_FLUSH_EVENTS, of `device_path`

/** @brief Argument of `init_tracker`. Without a queue the tracker counts. */
struct init_tracker_parameters {
  std::uint64_t queue_buffer{0};       ///< page-aligned memory for entries
  std::uint64_t queue_buffer_size{0};  ///< so many entries, a power of two
  std::uint64_t control_buffer{
    0};  ///< page-aligned page that the totals are added to, or a queue's
  std::array<std::uint8_t, 16> processor{};  ///< GPU UUID, unless all
  std::uint32_t all_processors{0};
  std::uint32_t uvm_descriptor{0};  ///< on `device_path`, bound to an address space
  std::uint32_t status{0};          ///< out
};

/** @brief Argument of `enable_count`, `disable_count`, `enable_events` and `disable_events`. */
struct count_parameters {
  std::uint64_t flags{0};   ///< one bit a counter, or a type of events
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

/** @brief Argument of `flush_events`. */
struct flush_parameters {
  std::uint32_t status{0};  ///< out
};

inline constexpr unsigned migration_event = 2;  ///< UvmEventTypeMigration: its bit, its number
inline constexpr std::uint8_t cpu         = 0;  ///< as a source or destination

/** @brief An entry of the queue, where its type is `migration_event`. */
struct migration_entry {
  std::uint8_t type;
  std::uint8_t cause;        ///< as `migration_cause`
  std::uint8_t source;       ///< `cpu`, or a GPU of the kernel driver's numbering
  std::uint8_t destination;  ///< likewise
  std::uint32_t unused;
  std::uint64_t address;
  std::uint64_t bytes;
  std::array<std::uint64_t, 5> times;  ///< and the range group
};
static_assert(sizeof(migration_entry) == 64);

/** @brief What the kernel driver and the reader of a queue tell each other. */
struct queue_control {
  std::uint32_t get_ahead;
  std::uint32_t get_behind;  ///< the reader's: entries before it may be overwritten
  std::uint32_t put_ahead;
  std::uint32_t put_behind;               ///< the kernel driver's: entries before it are there
  std::array<std::uint64_t, 64> dropped;  ///< by type: there was no room for so many
};
static_assert(sizeof(queue_control) == 528);

}  // namespace rmm_uvm::cuda::uvm_tools
