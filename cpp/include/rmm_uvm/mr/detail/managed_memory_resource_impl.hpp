// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/live_allocations.hpp>
#include <rmm_uvm/residency/managed_account.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/residency/resource_levels.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <atomic>
#include <cstddef>
#include <memory>

namespace rmm_uvm::mr::detail {

/** @brief State behind `managed_memory_resource`. */
// Fields stand in the order in which they are read.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class managed_memory_resource_impl {
 public:
  managed_memory_resource_impl(std::shared_ptr<rmm_uvm::managed_residency> residency,
                               std::shared_ptr<managed_account> account,
                               prefetch_mode slab_mode);
  managed_memory_resource_impl(managed_memory_resource_impl const&)            = delete;
  managed_memory_resource_impl& operator=(managed_memory_resource_impl const&) = delete;
  managed_memory_resource_impl(managed_memory_resource_impl&&)                 = delete;
  managed_memory_resource_impl& operator=(managed_memory_resource_impl&&)      = delete;
  ~managed_memory_resource_impl()                                              = default;

  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment);
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept;
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment);
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept;

  [[nodiscard]] std::size_t slab_bytes() const;
  [[nodiscard]] std::shared_ptr<memory_level_source> levels() const
  {
    return std::make_shared<slab_levels>(residency_);
  }
  [[nodiscard]] std::uint64_t refused_frees() const noexcept;
  [[nodiscard]] bool try_deallocate(cuda::stream_ref stream, void* ptr, std::size_t bytes) noexcept;

  bool operator==(managed_memory_resource_impl const& other) const noexcept
  {
    return this == std::addressof(other);
  }
  friend void get_property(managed_memory_resource_impl const&,
                           cuda::mr::device_accessible) noexcept
  {
  }

 private:
  std::shared_ptr<rmm_uvm::managed_residency> residency_;
  std::shared_ptr<managed_account> account_;
  prefetch_mode slab_mode_;
  live_allocations live_;
  std::atomic<std::uint64_t> refused_frees_{0};
};

}  // namespace rmm_uvm::mr::detail
