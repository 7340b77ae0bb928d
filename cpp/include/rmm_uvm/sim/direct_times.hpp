// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rmm_uvm::sim::direct_times {

// What a migration past libcuda takes that a prefetch does not, beside a profile's constants.
// Source: benchmarks/results/migration_threads_h200.json, an H200, alone and beside kernels. One
// thread fetches pieces of 2, 8 and 32 MiB in 104 to 110, 241 to 253 and 776 to 892 us; with these
// and its profile it takes 107, 249 and 812. Migrations between GPUs were not measured past
// libcuda: a call is taken to be the same.
inline constexpr double call_ns            = 20'000;  ///< each call
inline constexpr double block_to_device_ns = 17'000;  ///< each block that comes from the host

/**
 * @brief Of the driver's work on a block that goes to the host, what one thread of a program does
 * at a time.
 *
 * Source: the same file. Four threads evict at 1.33 times the rate of one, as a median over pieces:
 * memory was one mapping there (docs/understand/decisions/0030-mappings-are-cut.md).
 */
inline constexpr double to_host_alone_fraction = 0.75;

}  // namespace rmm_uvm::sim::direct_times
