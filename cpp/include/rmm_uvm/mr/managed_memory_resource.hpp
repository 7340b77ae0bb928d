// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/detail/managed_memory_resource_impl.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rmm_uvm::mr {

/**
 * @brief Managed memory from a `uvm_driver`, under the process' cap, prefetched as far as it fits.
 *
 * The source at the bottom of a chain: each allocation is a slab that the residency ledger keeps.
 * Copies share their state. Thread-safe. 0 bytes give nullptr. `allocate` throws
 * `rmm::out_of_memory` when the cap or the device and host are exhausted and `rmm::bad_alloc` for
 * other driver errors.
 */
class managed_memory_resource
  : public cuda::mr::shared_resource<detail::managed_memory_resource_impl> {
  using shared_base = cuda::mr::shared_resource<detail::managed_memory_resource_impl>;

 public:
  /**
   * @param residency drives the device and keeps the ledger; shared with adaptors above
   * @param account the cap that every managed byte of the process counts against
   * @param slab_mode `never` leaves slabs to page faults
   */
  managed_memory_resource(std::shared_ptr<rmm_uvm::managed_residency> residency,
                          std::shared_ptr<managed_account> account,
                          prefetch_mode slab_mode)
    : shared_base{cuda::mr::make_shared_resource<detail::managed_memory_resource_impl>(
        std::move(residency), std::move(account), slab_mode)}
  {
  }

  /** @brief Bytes of all slabs held now. */
  [[nodiscard]] std::size_t slab_bytes() const { return get().slab_bytes(); }
  /** @brief Frees refused because pointer and size matched no slab. */
  [[nodiscard]] std::uint64_t refused_frees() const noexcept { return get().refused_frees(); }
  /** @brief Its levels, for watchers; keeps none of its memory alive. */
  [[nodiscard]] std::shared_ptr<memory_level_source> levels() const { return get().levels(); }
  /**
   * @brief Frees in stream order, unless pointer and size match no live allocation.
   * @return false, and nothing freed, in that case; null is freed trivially
   */
  [[nodiscard]] bool try_deallocate(cuda::stream_ref stream, void* ptr, std::size_t bytes) noexcept
  {
    return get().try_deallocate(stream, ptr, bytes);
  }

  /** @brief Memory of this resource can be accessed by the device. */
  friend void get_property(managed_memory_resource const&, cuda::mr::device_accessible) noexcept {}
};

static_assert(cuda::mr::resource_with<managed_memory_resource, cuda::mr::device_accessible>);

}  // namespace rmm_uvm::mr
