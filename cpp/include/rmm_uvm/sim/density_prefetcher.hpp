// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/page_set.hpp>

#include <cstddef>

namespace rmm_uvm::sim {

/** @brief Pages in 64 KiB, the least that the driver's prefetcher adds to a fault. */
inline constexpr std::size_t pages_per_big_page = 16;

/**
 * @brief The UVM kernel driver's prefetcher: the parts of a block that faults are served with.
 *
 * The 64 KiB around every fault, and the largest aligned part of the block, 4 KiB to 2 MiB, more
 * than `prefetch_threshold` percent of which are there or asked for. Never beyond the block.
 * Source: uvm_perf_prefetch.c of open-gpu-kernel-modules 580.142.
 *
 * @param resident pages of the block that are at the destination
 * @param faulted pages that faulted; not empty
 * @param page_count pages that the block has, 1..512
 * @return all pages of these parts, `faulted` included, and those that are there
 */
[[nodiscard]] page_set served_with(page_set const& resident,
                                   page_set const& faulted,
                                   std::size_t page_count,
                                   driver_settings const& settings) noexcept;

/** @brief `served_with` less the pages that are there: what migrates. */
[[nodiscard]] page_set prefetched_with(page_set const& resident,
                                       page_set const& faulted,
                                       std::size_t page_count,
                                       driver_settings const& settings) noexcept;

}  // namespace rmm_uvm::sim
