// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/mr/detail/graph_memory.hpp>
#include <rmm_uvm/residency/live_allocations.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/residency/resource_levels.hpp>

#include <rmm/version_config.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

/**
 * In RMM 26.06 a stream that takes over what is free in another one waits for that, but what it was
 * not handed of it goes on as memory of the stream's event as it was recorded before. A third
 * stream that takes it over waits for too little, and is handed memory that is in use: on an H200
 * bytes were lost, in RMM's own pools too. RMM 26.08 records the event anew.
 */
#if RMM_VERSION_MAJOR == 26 && RMM_VERSION_MINOR < 8
#define RMM_UVM_POOL_FORGETS_WAITS
#endif

namespace rmm_uvm::mr::detail {

/** @brief What `uvm_resource_adaptor::trim` did. */
struct trim_outcome {
  std::size_t given_back_bytes{0};  ///< of slabs that went back to the driver
  std::size_t discarded_bytes{0};   ///< of dead blocks in slabs that stay
  std::string reason;               ///< why not all that could go went; empty otherwise
};

/** @brief State behind `uvm_resource_adaptor`. */
// Fields stand in the order in which they are read.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class uvm_resource_adaptor_impl {
 public:
  using upstream_type = cuda::mr::any_resource<cuda::mr::device_accessible>;

  uvm_resource_adaptor_impl(upstream_type upstream,
                            std::shared_ptr<rmm_uvm::managed_residency> residency,
                            prefetch_mode mode);
  uvm_resource_adaptor_impl(uvm_resource_adaptor_impl const&)            = delete;
  uvm_resource_adaptor_impl& operator=(uvm_resource_adaptor_impl const&) = delete;
  uvm_resource_adaptor_impl(uvm_resource_adaptor_impl&&)                 = delete;
  uvm_resource_adaptor_impl& operator=(uvm_resource_adaptor_impl&&)      = delete;
  ~uvm_resource_adaptor_impl()                                           = default;

  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment);
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept;
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment);
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept;

  [[nodiscard]] std::size_t allocated_bytes() const noexcept;
  [[nodiscard]] std::size_t peak_bytes() const noexcept;
  void reset_peak() noexcept;
  [[nodiscard]] std::uint64_t refused_frees() const noexcept;
  [[nodiscard]] std::optional<memory_range> allocation_at(std::uintptr_t address) const;
  [[nodiscard]] bool try_deallocate(cuda::stream_ref stream,
                                    void* ptr,
                                    std::size_t bytes,
                                    std::size_t alignment) noexcept;

  [[nodiscard]] trim_outcome trim(std::size_t pool_maximum_bytes);

  [[nodiscard]] std::shared_ptr<memory_level_source> levels() const noexcept { return levels_; }
  void observe(std::shared_ptr<memory_observer> observer);
  [[nodiscard]] observer_slot& observers() noexcept { return observer_; }

  bool operator==(uvm_resource_adaptor_impl const& other) const noexcept
  {
    return this == std::addressof(other);
  }
  friend void get_property(uvm_resource_adaptor_impl const&, cuda::mr::device_accessible) noexcept
  {
  }

 private:
  class borrowed_pieces;

  // Inline in `allocate`, which every allocation goes through.
  [[nodiscard, gnu::always_inline]] inline void* take(
    cuda::stream_ref stream,
    std::size_t bytes,
    std::size_t alignment,
    std::vector<memory_range>* were_empty = nullptr);
#ifdef RMM_UVM_POOL_FORGETS_WAITS
  [[nodiscard]] void* serve(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment);
  void record_again(cuda::stream_ref stream, std::size_t bytes) noexcept;
#else
  [[nodiscard]] void* serve(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    return upstream_.allocate(stream, bytes, alignment);
  }
#endif
  [[nodiscard]] void* allocate_upstream(cuda::stream_ref stream,
                                        std::size_t bytes,
                                        std::size_t alignment);
  // Cold: so that the compiler keeps it out of what every allocation goes through.
  [[gnu::cold]] void take_back(cuda::stream_ref stream,
                               void* ptr,
                               std::size_t bytes,
                               std::size_t alignment) noexcept;
  [[gnu::cold, nodiscard]] void* allocate_asked(cuda::stream_ref stream,
                                                std::size_t bytes,
                                                std::size_t alignment);
  [[gnu::cold, nodiscard]] void* allocate_past_slabs(cuda::stream_ref stream,
                                                     std::size_t bytes,
                                                     std::size_t alignment);
  [[nodiscard]] std::vector<memory_range> free_pieces() const;
  [[noreturn]] void refuse(std::size_t bytes, std::string const& why) const;
  [[nodiscard]] std::vector<memory_range> free_pieces_largest_first() const;
  [[nodiscard]] trim_outcome trim_in(stream_handle handle, std::size_t pool_maximum_bytes);
  [[gnu::cold]] void discard_dead(cuda::stream_ref own, std::size_t enough, bool waits) noexcept;
  [[gnu::cold]] void discard_some_dead(cuda::stream_ref own) noexcept;
  /** @brief Whether a graph would record what a pool does in a stream; else frees what may go. */
  [[nodiscard]] bool captures(cuda::stream_ref stream) noexcept
  {
    auto const state = residency_->driver().capturing(stream.get());
    if (state == capture_state::capturing || state == capture_state::implied) { return true; }
    if (graph_memory_.any()) { free_after_graphs(stream); }
    return false;
  }
  [[nodiscard, gnu::always_inline]] inline void* allocate_in(cuda::stream_ref stream,
                                                             std::size_t bytes,
                                                             std::size_t alignment);
  [[nodiscard, gnu::always_inline]] inline bool free_in(cuda::stream_ref stream,
                                                        void* ptr,
                                                        std::size_t bytes,
                                                        std::size_t alignment) noexcept;
  [[gnu::cold, nodiscard]] void* allocate_captured(cuda::stream_ref stream,
                                                   std::size_t bytes,
                                                   std::size_t alignment);
  [[gnu::cold, nodiscard]] std::optional<bool> keep_for_graph(cuda::stream_ref stream,
                                                              void* ptr,
                                                              std::size_t bytes,
                                                              std::size_t alignment,
                                                              bool captured) noexcept;
  [[gnu::cold]] void free_after_graphs(cuda::stream_ref stream) noexcept;

  upstream_type upstream_;
#ifdef RMM_UVM_POOL_FORGETS_WAITS
  std::recursive_mutex serving_;
#endif
  std::shared_ptr<rmm_uvm::managed_residency> residency_;
  prefetch_mode mode_;
  live_allocations live_;
  std::shared_ptr<resource_levels> levels_;  // outlives the adaptor where somebody watches
  observer_slot observer_;
  graph_memory graph_memory_;
  std::atomic<std::uint64_t> refused_frees_{0};
  std::size_t discards_past_bytes_{0};  // populated; with the lock of `pool_room`
  std::atomic<unsigned> trims_{0};      // ended ones twice; odd: one has free pieces, for now
};

}  // namespace rmm_uvm::mr::detail
