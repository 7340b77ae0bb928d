// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/detail/checked_alignment.hpp>
#include <rmm_uvm/process/forks.hpp>

#include <rmm/error.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>
#include <string>
#include <utility>

namespace rmm_uvm::mr {

/**
 * @brief A resource of a fixed size that is not asked for more than it has.
 *
 * RMM's pool rounds up to 256 bytes: a size near 2^64 becomes 0 there, and gets the address of the
 * next allocation. Copies share what is below.
 */
class bounded_resource {
  using upstream_type = cuda::mr::any_resource<cuda::mr::device_accessible>;

 public:
  /**
   * @param upstream the pool
   * @param most_bytes of one request
   */
  bounded_resource(upstream_type upstream, std::size_t most_bytes)
    : upstream_{std::move(upstream)}, most_bytes_{most_bytes}
  {
  }

  /** @brief Allocates below. @throws rmm::out_of_memory for more than there is */
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    refuse(bytes, alignment);
    fork_call const call;
    auto* const ptr = upstream_.allocate(stream, bytes, alignment);
    detail::keep_aligned(
      ptr, alignment, [&] { upstream_.deallocate(stream, ptr, bytes, alignment); });
    return ptr;
  }
  /** @brief Frees below. */
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept
  {
    fork_call const call;
    upstream_.deallocate(stream, ptr, bytes, alignment);
  }
  /** @brief Allocates below. @throws rmm::out_of_memory for more than there is */
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    refuse(bytes, alignment);
    fork_call const call;
    auto* const ptr = upstream_.allocate_sync(bytes, alignment);
    detail::keep_aligned(ptr, alignment, [&] { upstream_.deallocate_sync(ptr, bytes, alignment); });
    return ptr;
  }
  /** @brief Frees below. */
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    fork_call const call;
    upstream_.deallocate_sync(ptr, bytes, alignment);
  }

  /** @brief Equal when what is below is. */
  bool operator==(bounded_resource const& other) const noexcept
  {
    return upstream_ == other.upstream_;
  }
  /** @brief Memory of this resource can be accessed by the device. */
  friend void get_property(bounded_resource const&, cuda::mr::device_accessible) noexcept {}

 private:
  void refuse(std::size_t bytes, std::size_t alignment) const
  {
    detail::check_alignment(alignment);
    if (bytes > most_bytes_) {
      throw rmm::out_of_memory{std::to_string(bytes) + " bytes asked of a pool of " +
                               std::to_string(most_bytes_) +
                               ", which does not grow: ask for less, or make a larger pool"};
    }
  }

  upstream_type upstream_;
  std::size_t most_bytes_;
};

static_assert(cuda::mr::resource_with<bounded_resource, cuda::mr::device_accessible>);

}  // namespace rmm_uvm::mr
