// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_levels.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace rmm_uvm {

/**
 * @brief The levels of one memory resource: it counts its footprint here, watchers read it.
 *
 * Apart from the resource, so that whoever watches does not keep the resource's memory: this holds
 * the `managed_residency` alone, which has a ledger and a driver but no memory. Thread-safe and
 * lock-free.
 */
class resource_levels final : public memory_level_source {
 public:
  /** @param residency knows slabs and what was issued for them; not null */
  explicit resource_levels(std::shared_ptr<managed_residency const> residency) noexcept
    : residency_{std::move(residency)}
  {
  }

  /** @brief Notes that `bytes` were handed out. */
  void allocated(std::size_t bytes) noexcept
  {
    auto const now = footprint_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    auto peak      = peak_bytes_.load(std::memory_order_relaxed);
    while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  /** @brief Notes that `bytes` came back. */
  void freed(std::size_t bytes) noexcept
  {
    footprint_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /** @brief Bytes handed out and not come back. */
  [[nodiscard]] std::size_t footprint_bytes() const noexcept
  {
    return footprint_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Most of them at once, since the start or the last `reset_peak`. */
  [[nodiscard]] std::size_t peak_bytes() const noexcept
  {
    return peak_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Lets `peak_bytes` begin again at the bytes handed out now. */
  void reset_peak() noexcept { peak_bytes_.store(footprint_bytes(), std::memory_order_relaxed); }

  [[nodiscard]] memory_levels levels() const noexcept override
  {
    return {footprint_bytes(),
            residency_->ledger().slab_bytes(),
            residency_->prefetched_bytes(),
            residency_->discarded_bytes(),
            residency_->waited_ns()};
  }

 private:
  std::shared_ptr<managed_residency const> residency_;
  std::atomic<std::size_t> footprint_bytes_{0};
  std::atomic<std::size_t> peak_bytes_{0};
};

/**
 * @brief The levels of a managed memory resource without an adaptor: all that is taken is in use.
 *
 * Holds the `managed_residency` alone, as `resource_levels`. Thread-safe and lock-free.
 */
class slab_levels final : public memory_level_source {
 public:
  /** @param residency knows slabs and what was issued for them; not null */
  explicit slab_levels(std::shared_ptr<managed_residency const> residency) noexcept
    : residency_{std::move(residency)}
  {
  }

  [[nodiscard]] memory_levels levels() const noexcept override
  {
    auto const slab_bytes = residency_->ledger().slab_bytes();
    return {slab_bytes,
            slab_bytes,
            residency_->prefetched_bytes(),
            residency_->discarded_bytes(),
            residency_->waited_ns()};
  }

 private:
  std::shared_ptr<managed_residency const> residency_;
};

}  // namespace rmm_uvm
