// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rmm_uvm {

/** @brief Tells what keeps account, and then those that are told after it, if any. */
class observer_link final : public memory_observer {
 public:
  observer_link(memory_observer& account, memory_observer* others) noexcept
    : account_{account}, others_{others}
  {
  }
  [[nodiscard]] memory_observer const* account() const noexcept { return &account_; }
  [[nodiscard]] memory_observer* others() const noexcept
  {
    return others_.load(std::memory_order_acquire);
  }
  void set_others(memory_observer* others) noexcept
  {
    others_.store(others, std::memory_order_release);
  }

  void allocated(int device_id, memory_range range, stream_handle stream) noexcept override
  {
    account_.allocated(device_id, range, stream);
    if (auto* const more = others()) { more->allocated(device_id, range, stream); }
  }
  void freed(int device_id, memory_range range, stream_handle stream) noexcept override
  {
    account_.freed(device_id, range, stream);
    if (auto* const more = others()) { more->freed(device_id, range, stream); }
  }
  void touched(int device_id, memory_range range, bool write, bool by_cpu) noexcept override
  {
    account_.touched(device_id, range, write, by_cpu);
    if (auto* const more = others()) { more->touched(device_id, range, write, by_cpu); }
  }
  void moved(memory_range within, std::size_t bytes, traffic what) noexcept override
  {
    account_.moved(within, bytes, what);
    if (auto* const more = others()) { more->moved(within, bytes, what); }
  }

 private:
  memory_observer& account_;
  std::atomic<memory_observer*> others_;
};

/**
 * @brief Holds the observer of a memory resource or device, or none; changed while others allocate.
 * Before it those that keep account are told, any number of them.
 *
 * Asking for it is one load. Observers that were set once live as long as the slot: a thread that
 * asked for one may be about to call it, and nobody counts such threads. Thread-safe.
 */
class observer_slot {
 public:
  /** @brief Who is to be told; null when there is nobody. */
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
    put(std::move(observer));
    return true;
  }

  /** @brief Removes this observer; nothing if another one is there. */
  void detach(memory_observer const* observer) noexcept
  {
    std::lock_guard const lock{mutex_};
    if (only_.load() == observer) { put_raw(nullptr); }
  }

  /**
   * @brief Tells what keeps account as well, from now on; those that are finished not any more.
   * @throws std::bad_alloc, and changes nothing
   */
  void set_account(std::shared_ptr<memory_observer> account)
  {
    std::lock_guard const lock{mutex_};
    for (auto link = links_.size(); link-- > 0;) {
      if (links_[link]->account()->finished()) { remove(link); }
    }
    if (number_of(account.get()) != links_.size()) { return; }
    auto made = std::make_shared<observer_link>(*account, current_.load());
    links_.reserve(links_.size() + 1);
    kept_.reserve(kept_.size() + 2);
    links_.push_back(made.get());
    keep(std::move(account));
    current_.store(made.get(), std::memory_order_release);
    keep(std::move(made));
  }

  /** @brief Ends that; nothing if it is not told. */
  void end_account(memory_observer const* account) noexcept
  {
    std::lock_guard const lock{mutex_};
    if (auto const link = number_of(account); link != links_.size()) { remove(link); }
  }

 private:
  void put(std::shared_ptr<memory_observer> observer)
  {
    auto* const raw = observer.get();
    keep(std::move(observer));
    put_raw(raw);
  }

  void put_raw(memory_observer* only) noexcept
  {
    only_.store(only, std::memory_order_release);
    put_before(0, only);
  }

  /** @brief What is told next after a link, or first; each link tells the one that was made before.
   */
  void put_before(std::size_t link, memory_observer* next) noexcept
  {
    if (link < links_.size()) {
      links_[link]->set_others(next);
    } else {
      current_.store(next, std::memory_order_release);
    }
  }

  void remove(std::size_t link) noexcept
  {
    // Who is in it goes on from there.
    put_before(link + 1, links_[link]->others());
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(link));
  }

  [[nodiscard]] std::size_t number_of(memory_observer const* account) const noexcept
  {
    auto const found = std::find_if(links_.begin(), links_.end(), [account](auto const* link) {
      return link->account() == account;
    });
    return static_cast<std::size_t>(found - links_.begin());
  }

  void keep(std::shared_ptr<memory_observer> observer)
  {
    if (observer != nullptr && std::find(kept_.begin(), kept_.end(), observer) == kept_.end()) {
      kept_.push_back(std::move(observer));
    }
  }

  std::atomic<memory_observer*> current_{nullptr};  // who is told
  std::atomic<memory_observer*> only_{nullptr};     // the observer
  ranked_mutex<lock_rank::observers> mutex_;
  std::vector<observer_link*> links_;  // of those that keep account, the last one told first
  std::vector<std::shared_ptr<memory_observer>> kept_;
};

}  // namespace rmm_uvm
