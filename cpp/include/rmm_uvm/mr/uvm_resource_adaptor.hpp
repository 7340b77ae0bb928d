// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/detail/uvm_resource_adaptor_impl.hpp>
#include <rmm_uvm/process/forks.hpp>

#include <rmm/aligned.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rmm_uvm::mr {

/**
 * @brief Outermost adaptor of a managed chain: prefetch-on-allocate at no cost while data fit.
 *
 * Wraps any resource whose memory comes, in the end, from a `managed_memory_resource` that shares
 * its residency. Copies share their state. Thread-safe. A free whose pointer and size match no
 * live allocation is refused, counted and reported; it never reaches the pool.
 */
class uvm_resource_adaptor : public cuda::mr::shared_resource<detail::uvm_resource_adaptor_impl> {
  using shared_base = cuda::mr::shared_resource<detail::uvm_resource_adaptor_impl>;

 public:
  /**
   * @param upstream the pool, or whatever hands out the memory
   * @param residency the one of the managed memory resource below
   * @param mode when allocations are prefetched
   */
  uvm_resource_adaptor(cuda::mr::any_resource<cuda::mr::device_accessible> upstream,
                       std::shared_ptr<rmm_uvm::managed_residency> residency,
                       prefetch_mode mode)
    : shared_base{cuda::mr::make_shared_resource<detail::uvm_resource_adaptor_impl>(
        std::move(upstream), std::move(residency), mode)}
  {
  }

  /** @brief Bytes handed out and not freed: the footprint. */
  [[nodiscard]] std::size_t allocated_bytes() const noexcept { return get().allocated_bytes(); }
  /** @brief Most bytes ever handed out at once since the start or the last `reset_peak`. */
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return get().peak_bytes(); }
  /** @brief Lets `peak_bytes` begin again at the bytes allocated now. */
  void reset_peak() noexcept { get().reset_peak(); }
  /** @brief Frees refused because pointer and size matched no live allocation. */
  [[nodiscard]] std::uint64_t refused_frees() const noexcept { return get().refused_frees(); }
  /** @brief The live allocation that holds `address`, if it handed one out; for hints. */
  [[nodiscard]] std::optional<memory_range> allocation_at(std::uintptr_t address) const
  {
    fork_call const call;
    return get().allocation_at(address);
  }
  /**
   * @brief Has RMM's pool give unused slabs back, and discards what is dead in others.
   *
   * Waits for the work that used them last. While a stream captures, and in a forked child, nothing
   * is done.
   * @param pool_maximum_bytes as RMM's pool was told; 0: it gives none back
   */
  [[nodiscard]] detail::trim_outcome trim(std::size_t pool_maximum_bytes)
  {
    return get().trim(pool_maximum_bytes);
  }
  /** @brief Its levels, for watchers; keeps none of its memory alive. */
  [[nodiscard]] std::shared_ptr<memory_level_source> levels() const noexcept
  {
    return get().levels();
  }
  /**
   * @brief Lets `observer` be told of every allocation and free from now on.
   *
   * Allocations are told after they succeeded, frees before the memory can be handed out again. The
   * observer lives as long as this resource, also when another replaces it.
   * @param observer null for none
   * @throws std::bad_alloc and changes nothing
   */
  void observe(std::shared_ptr<memory_observer> observer) { get().observe(std::move(observer)); }
  /** @brief Its observer, to attach and detach one that must not replace another. */
  [[nodiscard]] observer_slot& observers() noexcept { return get().observers(); }
  /**
   * @brief Frees in stream order, unless pointer and size match no live allocation.
   * @return false, and nothing freed, in that case; null is freed trivially
   */
  [[nodiscard]] bool try_deallocate(cuda::stream_ref stream,
                                    void* ptr,
                                    std::size_t bytes,
                                    std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
  {
    return get().try_deallocate(stream, ptr, bytes, alignment);
  }

  /** @brief Memory of this resource can be accessed by the device. */
  friend void get_property(uvm_resource_adaptor const&, cuda::mr::device_accessible) noexcept {}
};

static_assert(cuda::mr::resource_with<uvm_resource_adaptor, cuda::mr::device_accessible>);

}  // namespace rmm_uvm::mr
