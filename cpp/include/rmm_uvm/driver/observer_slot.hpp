// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Holds the observer of a memory resource or device, or none; changed while others allocate.
 *
 * Asking for it is one load. Observers that were set once live as long as the slot: a thread that
 * asked for one may be about to call it, and nobody counts such threads. Thread-safe.
 */
class observer_slot {
 public:
  /** @brief The observer now; null when there is none. */
  [[nodiscard]] memory_observer* get() const noexcept
  {
    return current_.load(std::memory_order_acquire);
  }

  /** @brief Replaces the observer; null for none. @throws std::bad_alloc, and changes nothing */
  void set(std::shared_ptr<memory_observer> observer)
  {
    std::lock_guard const lock{mutex_};
    put(std::move(observer));
  }

  /** @brief Whether an observer other than `own` is there that still listens. */
  [[nodiscard]] bool taken(memory_observer const* own = nullptr) const noexcept
  {
    auto const* const now = get();
    return now != nullptr && now != own && !now->finished();
  }

  /**
   * @brief Sets the observer unless the slot is taken by another one.
   * @return whether it observes now
   * @throws std::bad_alloc, and changes nothing
   */
  [[nodiscard]] bool attach(std::shared_ptr<memory_observer> observer)
  {
    std::lock_guard const lock{mutex_};
    if (taken(observer.get())) { return false; }
    put(std::move(observer));
    return true;
  }

  /** @brief Removes this observer; nothing if another one is there. */
  void detach(memory_observer const* observer) noexcept
  {
    std::lock_guard const lock{mutex_};
    if (get() == observer) { current_.store(nullptr, std::memory_order_release); }
  }

 private:
  void put(std::shared_ptr<memory_observer> observer)
  {
    auto* const raw = observer.get();
    if (raw != nullptr && std::find(kept_.begin(), kept_.end(), observer) == kept_.end()) {
      kept_.push_back(std::move(observer));
    }
    current_.store(raw, std::memory_order_release);
  }

  std::atomic<memory_observer*> current_{nullptr};
  ranked_mutex<lock_rank::observers> mutex_;
  std::vector<std::shared_ptr<memory_observer>> kept_;
};

}  // namespace rmm_uvm
