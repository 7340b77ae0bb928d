// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>
#include <rmm_uvm/sim/third_tier.hpp>

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {

inline constexpr int host_place = -1;  ///< the host, as a place; GPUs are their numbers

/** @brief What is modelled. */
struct model_config {
  machine_profile machine;      ///< rates and times
  driver_settings driver;       ///< the kernel driver's parameters
  third_tier behind_host;       ///< takes what the host's memory has no room for
  std::size_t device_bytes{0};  ///< memory of each GPU; a multiple of 2 MiB, > 0
  std::size_t host_bytes{std::numeric_limits<std::size_t>::max()};  ///< host memory for pages
  unsigned gpus{1};                                                 ///< 1..max_gpus
  std::vector<unsigned> links;        ///< for each GPU its link to the host; empty: each its own
  bool peers{true};                   ///< peer access is enabled, where the machine has it
  std::vector<unsigned> peer_groups;  ///< for each GPU its group, within which there is peer
                                      ///< access; empty: all are one
  unsigned lanes{1};     ///< of each program: what it does in one goes beside the others
  unsigned programs{1};  ///< 1..most_programs, each with memory and a clock of its own

  /** @brief Whether it is the host or a GPU that there is. */
  [[nodiscard]] bool is_place(int where) const noexcept
  {
    return where == host_place || (where >= 0 && std::cmp_less(where, gpus));
  }
  /** @brief Whether two GPUs copy from each other without the host between. */
  [[nodiscard]] bool reaches(unsigned one, unsigned other) const noexcept
  {
    return peers && machine.peer_bytes_per_ns > 0 &&
           (peer_groups.empty() || peer_groups[one] == peer_groups[other]);
  }
};

}  // namespace rmm_uvm::sim
