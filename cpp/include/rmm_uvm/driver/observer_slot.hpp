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

/** @brief Tells two observers: first what keeps account, then what writes a trace. */
class both_observers final : public memory_observer {
 public:
  both_observers(memory_observer& first, memory_observer& second) noexcept
    : first_{first}, second_{second}
  {
  }
  void allocated(int device_id, memory_range range, stream_handle stream) noexcept override
  {
    first_.allocated(device_id, range, stream);
    second_.allocated(device_id, range, stream);
  }
  void freed(int device_id, memory_range range, stream_handle stream) noexcept override
  {
    first_.freed(device_id, range, stream);
    second_.freed(device_id, range, stream);
  }
  void touched(int device_id, memory_range range, bool write, bool by_cpu) noexcept override
  {
    first_.touched(device_id, range, write, by_cpu);
    second_.touched(device_id, range, write, by_cpu);
  }
  void moved(memory_range within, std::size_t bytes, traffic what) noexcept override
  {
    first_.moved(within, bytes, what);
    second_.moved(within, bytes, what);
  }

 private:
  memory_observer& first_;
  memory_observer& second_;
};

/**
 * @brief Holds the observer of a memory resource or device, or none; changed while others allocate.
 * Beside it there is a place for one that keeps account.
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
    put(std::move(observer), account_);
  }

  /** @brief Whether an observer other than `own` is there that still listens. */
  [[nodiscard]] bool taken(memory_observer const* own = nullptr) const noexcept
  {
    auto const* const now = only_.load(std::memory_order_acquire);
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
    put(std::move(observer), account_);
    return true;
  }

  /** @brief Removes this observer; nothing if another one is there. */
  void detach(memory_observer const* observer) noexcept
  {
    std::lock_guard const lock{mutex_};
    if (only_.load() != observer) { return; }
    only_.store(nullptr, std::memory_order_release);
    current_.store(account_, std::memory_order_release);
  }

  /**
   * @brief Tells what keeps account as well, from now on, in place of another that does.
   * @throws std::bad_alloc, and changes nothing
   */
  void set_account(std::shared_ptr<memory_observer> account)
  {
    std::lock_guard const lock{mutex_};
    auto* const raw = account.get();
    keep(std::move(account));
    put_raw(only_.load(), raw);
  }

  /** @brief Ends that; nothing if another one keeps account. */
  void end_account(memory_observer const* account) noexcept
  {
    std::lock_guard const lock{mutex_};
    if (account_ != account) { return; }
    account_ = nullptr;
    current_.store(only_.load(), std::memory_order_release);
  }

 private:
  void put(std::shared_ptr<memory_observer> observer, memory_observer* account)
  {
    auto* const raw = observer.get();
    keep(std::move(observer));
    put_raw(raw, account);
  }

  void put_raw(memory_observer* only, memory_observer* account)
  {
    auto* now = account == nullptr ? only : account;
    if (only != nullptr && account != nullptr) {
      auto both = std::make_shared<both_observers>(*account, *only);
      now       = both.get();
      keep(std::move(both));
    }
    account_ = account;
    only_.store(only, std::memory_order_release);
    current_.store(now, std::memory_order_release);
  }

  void keep(std::shared_ptr<memory_observer> observer)
  {
    if (observer != nullptr && std::find(kept_.begin(), kept_.end(), observer) == kept_.end()) {
      kept_.push_back(std::move(observer));
    }
  }

  std::atomic<memory_observer*> current_{nullptr};  // who is told
  std::atomic<memory_observer*> only_{nullptr};     // the observer
  memory_observer* account_{nullptr};               // with the lock
  ranked_mutex<lock_rank::observers> mutex_;
  std::vector<std::shared_ptr<memory_observer>> kept_;
};

}  // namespace rmm_uvm
