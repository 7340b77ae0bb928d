// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_tally.hpp>

#include <cupti_activity.h>

#include <cstdint>
#include <span>

namespace rmm_uvm::cuda {

/**
 * @brief Enters one CUPTI record into a tally, if it concerns one of `devices`.
 *
 * What CUPTI leaves open, and how it is read here:
 * - moves are of the GPU among source and destination; between two GPUs, of the destination;
 * - CPU faults name no device, one record is one fault (its value is a program counter): they are
 *   entered whatever the device;
 * - thrashing names all processors in a mask; an empty mask is everybody's;
 * - throttling has no value, so its time is taken; that of the CPU is everybody's.
 *
 * Source: cupti_activity.h of CUDA 13.5, CUpti_ActivityUnifiedMemoryCounter3.
 * @param devices ids in CUPTI's numbering, as from cuptiGetDeviceId; empty: every device
 */
void count_record(CUpti_ActivityUnifiedMemoryCounter3 const& record,
                  std::span<std::uint32_t const> devices,
                  migration_tally& tally) noexcept;

}  // namespace rmm_uvm::cuda
