// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/managed_memory_resource.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rmm_uvm::benchmarks {

/** @brief A pool that costs nothing: memory of one slab, last in, first out. */
class free_of_charge {
 public:
  free_of_charge(mr::managed_memory_resource& below, std::size_t slab_bytes)
    : next_{reinterpret_cast<std::uintptr_t>(
        below.allocate(cuda::stream_ref{cudaStream_t{nullptr}}, slab_bytes, alignment))}
  {
  }
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t)
  {
    return reinterpret_cast<void*>(std::exchange(next_, next_ + bytes));
  }
  void deallocate(cuda::stream_ref, void* ptr, std::size_t, std::size_t) noexcept
  {
    next_ = reinterpret_cast<std::uintptr_t>(ptr);
  }
  void* allocate_sync(std::size_t bytes, std::size_t)
  {
    return allocate(cuda::stream_ref{cudaStream_t{nullptr}}, bytes, alignment);
  }
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t) noexcept
  {
    deallocate(cuda::stream_ref{cudaStream_t{nullptr}}, ptr, bytes, alignment);
  }
  friend bool operator==(free_of_charge const& one, free_of_charge const& other) noexcept
  {
    return one.next_ == other.next_;
  }
  friend void get_property(free_of_charge const&, cuda::mr::device_accessible) noexcept {}

 private:
  static constexpr std::size_t alignment = 256;

  std::uintptr_t next_;
};

}  // namespace rmm_uvm::benchmarks
