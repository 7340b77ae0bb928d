// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/residency/leaving_bounds.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Remembers what is known of each VA block of each slab: one `block_record`.
 *
 * A slab is the region that one managed allocation took from the driver. Slabs begin and end
 * anywhere; blocks are the 2 MiB windows of the address space, cut off at the slab's ends.
 * Thread-safe: one mutex, except for `all_on_device` and `slab_bytes`, which are loads. Who needs
 * several steps at once opens a `ledger_view`.
 */
class residency_ledger {
 public:
  /** @brief Starts to keep a slab; its blocks are in doubt. @pre it overlaps no other slab */
  void add_slab(memory_range slab);

  /** @brief Forgets the slab that begins at `address`; nothing if there is none. */
  void remove_slab(std::uintptr_t address) noexcept;

  /** @brief The slab that holds `address`. */
  [[nodiscard]] std::optional<memory_range> slab_of(std::uintptr_t address) const;

  /** @brief True when every block of every slab is on the device as of `epoch`. */
  [[nodiscard]] bool all_on_device(epoch_number epoch) const noexcept
  {
    return settled_epoch_.load(std::memory_order_acquire) == epoch;
  }

  /**
   * @brief Notes that the blocks that lie wholly in `range` are on the device.
   *
   * A block cut off by the slab's end counts as whole when `range` reaches that end.
   */
  void mark_on_device(memory_range range, epoch_number epoch);

  /** @brief Puts the blocks that `range` touches in doubt: they were discarded, or moved away. */
  void doubt(memory_range range) noexcept;

  /**
   * @brief The runs of blocks that `range` touches and that are not on the device as of `epoch`.
   * @return ascending, each clipped to the slab, adjacent ones joined; empty outside of all slabs
   */
  [[nodiscard]] std::vector<memory_range> doubtful_runs(memory_range range,
                                                        epoch_number epoch) const;

  /** @brief Bytes of all slabs. */
  [[nodiscard]] std::size_t slab_bytes() const noexcept
  {
    return slab_bytes_.load(std::memory_order_relaxed);
  }

 private:
  friend class ledger_view;
  friend class leaving_search;

  // A search looks at all groups, and at all slabs of one: at 32 with 256 GiB in slabs of 1 GiB.
  static constexpr std::size_t slabs_a_group = 16;

  struct slab_record {
    memory_range range;
    std::vector<block_record> blocks;
    bounds_tree bounds;
    std::size_t number{0};  // among `numbered_`
  };
  using slab_map = std::map<std::uintptr_t, slab_record>;
  /** @brief Slabs whose numbers follow each other: the bounds of all their blocks. */
  struct slab_group {
    leaving_bounds bounds;
    std::uintptr_t address{~std::uintptr_t{0}};  // no slab of it begins before
  };

  /** @brief The slab that holds `address`; null: none does. */
  [[nodiscard]] slab_record* find(std::uintptr_t address) noexcept;
  [[nodiscard]] slab_record const* find(std::uintptr_t address) const noexcept;
  void remove(std::uintptr_t address) noexcept;
  [[nodiscard]] slab_group& group_of(slab_record const& slab) noexcept
  {
    return groups_[slab.number / slabs_a_group];
  }
  void settle(epoch_number epoch);
  void doubt_all() noexcept;

  mutable ranked_mutex<lock_rank::ledger> mutex_;
  slab_map slabs_;
  std::vector<slab_record*> numbered_;  // null: the number is free
  std::vector<std::size_t> free_numbers_;
  std::vector<slab_group> groups_;
  std::size_t block_count_{0};
  std::atomic<std::size_t> slab_bytes_{0};
  epoch_number counted_epoch_{0};  // the epoch that marked_count_ counts for
  std::size_t marked_count_{0};    // blocks marked with counted_epoch_
  std::atomic<epoch_number> settled_epoch_{0};
  bool bounded_{false};  // somebody looked for what leaves
};

/** @brief A block in a `ledger_view`: its record, and the addresses that the slab has of it. */
struct viewed_block {
  block_record* record{nullptr};
  memory_range range;  ///< clipped to the slab
};

/**
 * @brief The ledger, locked: several steps that belong together.
 *
 * Records may be changed, except for `on_device_as_of`. Pointers to them are valid as long as the
 * view's slabs are; whoever unlocks in between marks what it holds on to as `busy`.
 */
class ledger_view {
 public:
  /** @brief Locks `ledger`, which must outlive this object. */
  explicit ledger_view(residency_ledger& ledger)
    : ledger_{ledger}, lock_{ledger.mutex_, std::defer_lock}
  {
    relock();
  }

  /** @brief The lock, for condition variables. */
  [[nodiscard]] std::unique_lock<ranked_mutex<lock_rank::ledger>>& lock() noexcept { return lock_; }
  /** @brief Lets go of the lock: from here on records may be anything else. */
  void unlock() { lock_.unlock(); }
  /** @brief Takes the lock again. */
  void relock()
  {
    check_order(lock_rank::ledger);
    if (lock_.try_lock()) { return; }
    // Whoever has it needs it for a few microseconds: to sleep, and to be woken, takes longer.
    auto const until = std::chrono::steady_clock::now() + most_tries;
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      if (lock_.try_lock()) { return; }
    }
    lock_.lock();
  }

  /** @brief Forgets the slab that begins at `address`; nothing if there is none. */
  void remove_slab(std::uintptr_t address) noexcept { ledger_.remove(address); }

  /** @brief Puts every block in doubt, whoever marked it. */
  void doubt_all() noexcept { ledger_.doubt_all(); }

  /** @brief True when a slab holds `address`. */
  [[nodiscard]] bool holds(std::uintptr_t address) const
  {
    return ledger_.find(address) != nullptr;
  }

  /** @brief True when a slab begins at `address`: no call may reach across, though slabs touch. */
  [[nodiscard]] bool slab_begins(std::uintptr_t address) const
  {
    auto const* const slab = ledger_.find(address);
    return slab != nullptr && slab->range.address == address;
  }

  /**
   * @brief Calls `visit(block_record&, memory_range block)` for each block that `range` touches.
   *
   * Ascending; nothing outside of all slabs. A range lies in one slab.
   */
  template <typename Visit>
  void each(memory_range range, Visit const& visit)
  {
    auto* const slab = ledger_.find(range.address);
    if (slab == nullptr || range.bytes == 0) { return; }
    visit_blocks(*slab, range, visit);
  }

  /** @brief The same for every block of every slab. */
  template <typename Visit>
  void each(Visit const& visit)
  {
    for (auto& [address, slab] : ledger_.slabs_) {
      visit_blocks(slab, slab.range, visit);
    }
  }
  /**
   * @brief As `each`, for uses, and for changes after which a block may leave earlier: its group's
   * bounds follow.
   * @param now as of which
   */
  template <typename Visit>
  void change(memory_range range, use_tick now, Visit const& visit)
  {
    each(range, visit);
    if (ledger_.bounded_) { include(range, now); }
  }
  /** @brief Keeps bounds from now on. */
  void keep_bounds() noexcept
  {
    if (!ledger_.bounded_) { forget_bounds(); }
    ledger_.bounded_ = true;
  }
  /** @brief Has all bounds be computed anew when they are needed: blocks were changed otherwise. */
  void forget_bounds() noexcept;

 private:
  friend class leaving_search;

  void include(memory_range range, use_tick now) noexcept;

  template <typename Visit>
  static void visit_blocks(residency_ledger::slab_record& slab, memory_range range, Visit& visit)
  {
    auto const base = va_block_floor(slab.range.address);
    auto const end  = range.end() < slab.range.end() ? range.end() : slab.range.end();
    for (auto window = va_block_floor(range.address); window < end; window += va_block_bytes) {
      auto const first = window < slab.range.address ? slab.range.address : window;
      auto const last =
        window + va_block_bytes < slab.range.end() ? window + va_block_bytes : slab.range.end();
      visit(slab.blocks[(window - base) / va_block_bytes], memory_range{first, last - first});
    }
  }

  static constexpr std::chrono::microseconds most_tries{20};  // before it sleeps

  residency_ledger& ledger_;
  std::unique_lock<ranked_mutex<lock_rank::ledger>> lock_;
};

}  // namespace rmm_uvm
