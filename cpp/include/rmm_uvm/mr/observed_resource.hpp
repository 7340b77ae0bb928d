// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/process/forks.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rmm_uvm::mr {

/**
 * @brief Any resource, whose allocations and frees others are told of.
 *
 * Of one that is over another such resource, in a chain, only the outer one tells. Copies share
 * what is below, and who is told.
 */
class observed_resource {
  using upstream_type = cuda::mr::any_resource<cuda::mr::device_accessible>;

 public:
  observed_resource(upstream_type upstream, int device_id)
    : upstream_{std::move(upstream)}, device_id_{device_id}
  {
  }

  /** @brief Who is told. */
  [[nodiscard]] observer_slot& observers() noexcept { return *observers_; }

  /** @brief Allocates below. */
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    return allocated(bytes, stream.get(), [&](upstream_type& below) {
      return below.allocate(stream, bytes, alignment);
    });
  }
  /** @brief Frees below. */
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept
  {
    freed(ptr, bytes, stream.get(), [&](upstream_type& below) {
      below.deallocate(stream, ptr, bytes, alignment);
    });
  }
  /** @brief Allocates below. */
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    return allocated(
      bytes, nullptr, [&](upstream_type& below) { return below.allocate_sync(bytes, alignment); });
  }
  /** @brief Frees below. */
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    freed(ptr, bytes, nullptr, [&](upstream_type& below) {
      below.deallocate_sync(ptr, bytes, alignment);
    });
  }

  /** @brief Equal when what is below is. */
  bool operator==(observed_resource const& other) const noexcept
  {
    return upstream_ == other.upstream_;
  }
  /** @brief Memory of this resource can be accessed by the device. */
  friend void get_property(observed_resource const&, cuda::mr::device_accessible) noexcept {}

 private:
  /** @brief Whether this thread is in another one of these, as long as this lives. */
  class nesting {
   public:
    nesting() noexcept { ++depth; }
    ~nesting() { --depth; }
    nesting(nesting const&)            = delete;
    nesting& operator=(nesting const&) = delete;
    nesting(nesting&&)                 = delete;
    nesting& operator=(nesting&&)      = delete;
    [[nodiscard]] bool outermost() const noexcept { return depth == 1; }

   private:
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it is the thread's own
    static inline thread_local unsigned depth{0};
  };

  template <typename Below>
  [[nodiscard]] void* allocated(std::size_t bytes, stream_handle stream, Below const& below)
  {
    fork_call const call;
    nesting const here;
    auto* const ptr = below(upstream_);
    if (auto* const told = here.outermost() ? observers_->get() : nullptr;
        told != nullptr && ptr != nullptr) {
      told->allocated(device_id_, {reinterpret_cast<std::uintptr_t>(ptr), bytes}, stream);
    }
    return ptr;
  }
  template <typename Below>
  void freed(void* ptr, std::size_t bytes, stream_handle stream, Below const& below) noexcept
  {
    fork_call const call;
    nesting const here;
    // Before another thread can be handed the same address.
    if (auto* const told = here.outermost() ? observers_->get() : nullptr;
        told != nullptr && ptr != nullptr) {
      told->freed(device_id_, {reinterpret_cast<std::uintptr_t>(ptr), bytes}, stream);
    }
    below(upstream_);
  }

  upstream_type upstream_;
  int device_id_;
  std::shared_ptr<observer_slot> observers_{std::make_shared<observer_slot>()};
};

static_assert(cuda::mr::resource_with<observed_resource, cuda::mr::device_accessible>);

}  // namespace rmm_uvm::mr
