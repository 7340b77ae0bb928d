// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/detail/checked_alignment.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <rmm/error.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace rmm_uvm::mr {

/**
 * @brief cudaMalloc of a simulated device, as `rmm::mr::cuda_memory_resource` is that of a GPU.
 *
 * Throws `rmm::out_of_memory` when the device is full. Copyable; copies use the same device.
 */
class simulated_cuda_memory_resource {
 public:
  /** @param device shared with whoever else uses it */
  explicit simulated_cuda_memory_resource(std::shared_ptr<sim::simulated_device> device)
    : device_{std::move(device)}
  {
  }

  /** @brief Takes device memory; the stream does not matter, and the alignment is 256 at least. */
  [[nodiscard]] void* allocate(cuda::stream_ref /*stream*/,
                               std::size_t bytes,
                               std::size_t alignment)
  {
    return allocate_sync(bytes, alignment);
  }
  /** @brief Gives device memory back. */
  void deallocate(cuda::stream_ref /*stream*/,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept
  {
    deallocate_sync(ptr, bytes, alignment);
  }
  /** @brief Takes device memory. @throws rmm::out_of_memory when it does not fit */
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    detail::check_alignment(alignment);
    if (bytes == 0) { return nullptr; }
    std::uintptr_t address = 0;
    if (auto const result = device_->program().allocate_device(bytes, address); !result.ok()) {
      throw rmm::out_of_memory{std::to_string(bytes) + " bytes of simulated device memory asked: " +
                               to_string(result.code)};
    }
    auto* const ptr = reinterpret_cast<void*>(address);
    detail::keep_aligned(ptr, alignment, [&] { deallocate_sync(ptr, bytes, alignment); });
    return ptr;
  }
  /** @brief Gives device memory back. */
  void deallocate_sync(void* ptr, std::size_t /*bytes*/, std::size_t /*alignment*/) noexcept
  {
    if (ptr == nullptr) { return; }
    static_cast<void>(device_->program().free_device(reinterpret_cast<std::uintptr_t>(ptr)));
  }

  /** @brief Equal when both use the same device. */
  bool operator==(simulated_cuda_memory_resource const& other) const noexcept
  {
    return device_ == other.device_;
  }
  /** @brief Memory of this resource can be accessed by the device. */
  friend void get_property(simulated_cuda_memory_resource const&,
                           cuda::mr::device_accessible) noexcept
  {
  }

 private:
  std::shared_ptr<sim::simulated_device> device_;
};

static_assert(cuda::mr::resource_with<simulated_cuda_memory_resource, cuda::mr::device_accessible>);

}  // namespace rmm_uvm::mr
