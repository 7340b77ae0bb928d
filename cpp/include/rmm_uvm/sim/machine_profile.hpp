// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief One machine, as the model knows it: rates and times, each measured or published.
 *
 * The defaults are those of `rmm_uvm/simulator/machines/h200-pcie5.toml`, where every value stands
 * with its unit and source; a test holds the two together. Rates are bytes per nanosecond (GB/s).
 */
struct machine_profile {
  // Memory and links.
  std::size_t device_bytes{std::size_t{139} << 30U};  ///< device memory for programs
  double memory_bytes_per_ns{4000.0};                 ///< kernel reading resident memory
  double to_device_bytes_per_ns{55.5};  ///< copy engine, host to device, one large copy
  double to_host_bytes_per_ns{55.4};    ///< copy engine, device to host, one large copy
  double copy_ns{1'400.0};  ///< added by each copy of contiguous pages that somebody waits for
  double duplex_fraction{
    0.85};  ///< rate of a direction while the other is busy too, of its rate alone
  double remote_bytes_per_ns{51.0};        ///< kernel reading host memory through a mapping
  double peer_bytes_per_ns{205.0};         ///< migration between two GPUs; 0: no peer access
  double peer_remote_bytes_per_ns{372.0};  ///< kernel reading a peer's memory through a mapping
  // The kernel driver's CPU time, one thread; each for a block of 2 MiB.
  double call_ns{2'000.0};              ///< a prefetch or discard call itself
  double deferred_call_ns{10'000.0};    ///< a prefetch call behind a busy stream
  double block_to_device_ns{29'200.0};  ///< migrate to the device (in parallel to its copy)
  double block_to_host_ns{
    87'000.0};  ///< migrate to the host, host pages there (in parallel to its copy)
  double discarded_to_host_ns{68'900.0};  ///< the same after a discard: nothing is copied
  double host_page_ns{720.0};             ///< each 4 KiB page of host memory that is taken first
  double resident_block_ns{440.0};        ///< a block that a prefetch finds resident, each pass
  double populate_block_ns{5'000.0};      ///< fresh device memory without a copy, zeroed
  double refill_block_ns{2'150.0};        ///< device memory that the block kept, contents dead
  double discard_block_ns{6'250.0};       ///< a block of a discard
  double discarded_block_ns{
    6'600.0};  ///< a block on the host that one call discards and prefetches
  double prefetch_ramp_ns{
    454'000.0};  ///< what a call to the device takes more than its blocks, at most
  double prefetch_ramp_blocks{9.6};  ///< blocks after which 63 % of that are reached
  // Page faults.
  double batch_ns{15'000.0};        ///< a batch of GPU faults: interrupt, fetch, replay
  double fault_ns{100.0};           ///< each fault of a batch, duplicates too
  double fault_block_ns{9'000.0};   ///< each block that a batch touches
  double unmap_ns{4'000.0};         ///< each of these whose host pages must be unmapped
  double duplicate_fraction{0.02};  ///< faults reported again, of the distinct ones
  std::uint32_t outstanding_faults{
    100};                               ///< distinct pages that a kernel faults on before it stalls
  std::uint32_t batch_faults{256};      ///< entries of a batch at most
  double discarded_fault_ns{14'800.0};  ///< a 4 KiB page written after a discard without a prefetch
  double cpu_fault_ns{49'000.0};        ///< a fault of the CPU on a page of the device
  // Allocation.
  double allocate_managed_ns{6'000.0};  ///< cudaMallocManaged
  double free_managed_ns{6'000.0};      ///< cudaFree of it
  double allocate_device_ns{30'000.0};  ///< cudaMalloc
  double free_device_ns{35'000.0};      ///< cudaFree of it
  double launch_ns{4'000.0};            ///< a kernel launch
};

}  // namespace rmm_uvm::sim
