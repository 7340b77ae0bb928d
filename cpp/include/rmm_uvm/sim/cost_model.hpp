// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief What operations of the simulated device cost, in modelled time.
 *
 * Source of every default: our own measurements on one NVIDIA H200, PCIe 5 x16, UVM kernel driver
 * 580.159.04, 2026-11-21 (docs/simulator-model.md, "Constants"). A first model: operations follow
 * one another, nothing overlaps, and kernels take no time of their own.
 */
struct cost_model {
  double prefetch_to_device_bytes_per_ns{51.0};  ///< cuMemPrefetchAsync host to device, 2 GiB
  double prefetch_to_host_bytes_per_ns{24.0};    ///< the same, device to host, host pages warm
  double populate_bytes_per_ns{419.0};           ///< prefetch of a slab that holds nothing yet:
                                                 ///< 6.0 ms for 2 GiB, blocks included
  double refill_bytes_per_ns{976.0};             ///< discarded pages made usable where the block
                                                 ///< kept its device memory: 3.1 ms for 2 GiB,
                                                 ///< blocks included
  double fault_to_device_bytes_per_ns{13.0};     ///< kernel streaming over host-resident pages
  double first_touch_bytes_per_ns{20.0};         ///< kernel writing pages that hold nothing yet
  double fault_to_host_bytes_per_ns{6.3};        ///< CPU touching device-resident pages, 1 GiB
  double eviction_bytes_per_ns{24.0};            ///< as prefetch_to_host: the same driver path
  double discarded_fault_ns{14'800.0};           ///< one 4 KiB page written after a discard
                                                 ///< without a prefetch: 7.77 s for 2 GiB
  double allocate_managed_ns{6'000.0};           ///< cudaMallocManaged, 64 MiB
  double free_managed_ns{6'000.0};               ///< cudaFree of it
  double allocate_device_ns{30'000.0};           ///< cudaMalloc, 64 MiB
  double free_device_ns{35'000.0};               ///< cudaFree of it
  double call_ns{2'000.0};                       ///< one prefetch or discard call of one block
  double resident_block_ns{880.0};               ///< each further block a prefetch finds resident:
                                                 ///< 450 us for 1 GiB
  double discard_block_ns{6'250.0};              ///< each block of a discard: 6.4 ms for 2 GiB
  double discarded_block_ns{3'400.0};            ///< each discarded block that a prefetch gives
                                                 ///< device memory: 9.5 ms for 2 GiB on the host
};

}  // namespace rmm_uvm::sim
