// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/budgeted_enactor.hpp>
#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/pool_room.hpp>
#include <rmm_uvm/residency/prefetch_policy.hpp>
#include <rmm_uvm/residency/prefetch_statistics.hpp>
#include <rmm_uvm/residency/residency_enactor.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/unbudgeted_enactor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

namespace rmm_uvm {

/**
 * @brief The residency of one resource's managed memory: what the resource and those above share.
 *
 * The managed memory resource reports slabs here, and the adaptor allocations. What is done about
 * them is a `residency_enactor`'s: of memory without a budget, or of memory under one. Thread-safe.
 * Never throws but where a budget starts.
 *
 * **A budget may start, change and end while the program runs.** Which enactor is asked is one
 * atomic pointer; a call asks the one that it found when it began, so one that left is kept until
 * this object dies, its thread stopped. Slabs come and go under a lock that a change excludes.
 * No live byte is lost, for these reasons:
 *
 * - Without a budget nobody counts what lives in a block. So every block is adopted as "untold": it
 *   counts as live, whatever is allocated or freed in a part of it, until one allocation or one
 *   fenced free covers it. Then its live bytes are known exactly.
 * - The pointer changes in the same section of the ledger's lock in which blocks are adopted. A
 *   call that asked the old enactor was about memory of a slab that was adopted, as slabs are held
 *   off meanwhile; that memory was the caller's alone. Whoever is handed it afterwards comes later
 *   by the pool's own lock, and asks the new enactor. So no call that the new one did not see is
 *   later than the call that ended a block's "untold".
 * - At an end the manager first begins no more calls, and waits for those under way, its discards
 *   among them, and so does whoever is handed their blocks meanwhile; then the pointer changes, in
 * the same section of the lock. Calls that still ask the manager afterwards move nothing, discard
 * nothing and wait for nobody. They still count what is handed out and freed, for a manager that
 * has adopted the blocks since; but a free counts as one without a fence, since the fences of two
 * managers do not compare.
 * - Without a budget only a new allocation's own blocks are discarded, before its caller has it,
 *   whoever else moves them meanwhile: migrating is coherent.
 *
 * Marks that a held-up call sets in the ledger may say that a block is on the device when it is
 * not. Then its pages come by fault.
 */
class managed_residency {
 public:
  /**
   * @param driver commands and device facts
   * @param epochs tells when residence stops being certain
   */
  managed_residency(std::shared_ptr<uvm_driver> driver, std::unique_ptr<epoch_source> epochs);
  managed_residency(managed_residency const&)            = delete;
  managed_residency& operator=(managed_residency const&) = delete;
  managed_residency(managed_residency&&)                 = delete;
  managed_residency& operator=(managed_residency&&)      = delete;
  ~managed_residency()                                   = default;

  /**
   * @brief Keeps a budget from now on, in place of the one that is kept, if any.
   *
   * Throws where there is no memory or no thread to be had; then all is as before.
   */
  void start_budget(residency_settings const& settings);
  /**
   * @brief Changes the budget that is kept; what is too much leaves soon, or for the next request.
   * @return false when none is kept
   */
  bool change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept;
  /** @brief Keeps no budget any more: what lies on neighbours goes to the host, pins end. */
  void end_budget() noexcept;

  /** @brief Takes note of a slab; without a budget it is prefetched, unless the mode is `never`. */
  void on_slab(memory_range slab, stream_handle stream, prefetch_mode mode) noexcept;
  /** @brief Forgets a slab, before it is given back to the driver. @return for `on_slab_freed` */
  std::size_t on_slab_free(std::uintptr_t address) noexcept;
  /** @brief The slab was given back. */
  void on_slab_freed(std::size_t kept_bytes) noexcept
  {
    if (kept_bytes > 0) { now().on_slab_freed(kept_bytes); }
  }

  /**
   * @brief Makes a new allocation usable on the device, in the order of `stream`.
   *
   * Dead contents are discarded before this returns, or not at all: any stream, or the CPU, may
   * write the allocation first.
   * @return false when nothing was issued; with a budget always true, since the manager decides
   */
  bool on_allocate(memory_range allocation, stream_handle stream, prefetch_mode mode) noexcept
  {
    return now().on_allocate(allocation, stream, mode);
  }
  /** @brief A part of an allocation is handed out anew; see `residency_manager::on_reuse`. */
  void on_reuse(carved_range const& carved, stream_handle stream, bool by_stream) noexcept
  {
    now().on_reuse(carved, stream, by_stream);
  }
  /** @brief See `residency_manager::on_untold`. */
  void on_untold(memory_range range) noexcept { now().on_untold(range); }
  /**
   * @brief Takes note of a free, before the memory can be handed out again.
   * @param by_stream see `residency_manager::on_free`
   */
  void on_free(memory_range allocation, stream_handle stream, bool by_stream = true) noexcept
  {
    // Advice is about addresses, and these may be handed out again.
    if (adviser_.advised_bytes() != 0) { end_advice(allocation); }
    now().on_free(allocation, stream, by_stream);
  }
  /**
   * @brief Drops the contents of blocks that hold no live byte, so that evicting them copies
   * nothing. With a budget nothing is dropped here: it does so itself.
   *
   * The blocks are in doubt from then on: the next allocation there makes them usable again, unless
   * its mode is `never`.
   * @param blocks whole blocks, each run of them in one slab
   * @return true when they were discarded
   * @pre no work in flight reads or writes the blocks
   */
  bool on_dead(std::span<memory_range const> blocks) noexcept { return now().on_dead(blocks); }
  /**
   * @brief Drops the contents of whole blocks now, with a budget or without.
   *
   * For who took the blocks from a pool to do so: nobody else can be handed them meanwhile.
   * @return true when none of them needs physical memory any more, as far as a discard goes
   * @pre as for `on_dead`
   */
  bool drop_dead(std::span<memory_range const> blocks) noexcept { return now().drop_dead(blocks); }

  /** @brief Uses of live memory are about to be issued to `stream`: brings in what may be away. */
  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept
  {
    fork_call const call;
    if (auto* const observer = use_observers_.get()) { tell(*observer, uses); }
    now().on_touch(uses, stream);
  }
  /**
   * @brief Work that writes all of these ranges was issued, and nobody writes them after that.
   *
   * Unless a use is announced that may. So the host may have a copy of them before they are read.
   */
  void on_made(std::span<memory_range const> ranges) noexcept
  {
    fork_call const call;
    now().on_made(ranges);
  }
  /** @brief True while nothing can be away, and nobody wants to know of uses; takes no lock. */
  [[nodiscard]] bool all_present() noexcept
  {
    return !use_observers_.taken() && now().all_present();
  }
  /** @brief Who is told of every announced use, to attach and detach. */
  [[nodiscard]] observer_slot& use_observers() noexcept { return use_observers_; }
  /** @brief See `residency_manager::confirm_present`; false without a budget. */
  bool confirm_present(stream_handle stream) noexcept
  {
    fork_call const call;
    return now().confirm_present(stream);
  }
  /**
   * @brief See `residency_manager::confirmed_present`; false without a budget, and while somebody
   * wants to know of uses.
   */
  [[nodiscard]] bool confirmed_present() const noexcept
  {
    return !use_observers_.taken() && now().confirmed_present();
  }
  /** @brief Brings live memory to the device in the order of `stream`. */
  void bring(memory_range range, stream_handle stream) noexcept
  {
    fork_call const call;
    now().bring(range, stream);
  }
  /**
   * @brief Moves the blocks that lie wholly in `range` to the host.
   * @return bytes that were sent
   */
  std::size_t evict(memory_range range, stream_handle stream) noexcept
  {
    fork_call const call;
    return now().evict(range, stream);
  }
  /** @brief See `residency_manager::sleep`; nothing without a budget. */
  std::size_t sleep() noexcept
  {
    fork_call const call;
    return now().sleep();
  }
  /** @brief See `residency_manager::wake`; nothing without a budget. */
  std::size_t wake(stream_handle stream) noexcept
  {
    fork_call const call;
    return now().wake(stream);
  }
  /** @brief Keeps the blocks that `range` touches where they are; nothing without a budget. */
  void pin(memory_range range) noexcept
  {
    fork_call const call;
    now().pin(range);
  }
  /** @brief Takes one `pin` of the same range back. */
  void unpin(memory_range range) noexcept
  {
    fork_call const call;
    now().unpin(range);
  }

  /**
   * @brief Advises the driver about the blocks that lie wholly in `range`, until any is freed.
   * @param range live memory of one user
   */
  advice_outcome advise(memory_range range, advice_change change) noexcept;
  /** @brief Bytes of the blocks that something is advised about. */
  [[nodiscard]] std::size_t advised_bytes() const noexcept { return adviser_.advised_bytes(); }

  /** @brief Whether slabs are larger than the budget; false without one. Takes no lock. */
  [[nodiscard]] bool under_pressure() const noexcept { return now().under_pressure(); }
  /** @brief So much may be pinned without that others miss it; 0 without a budget. */
  [[nodiscard]] std::size_t pinnable_bytes() const noexcept { return budget_bytes() / 8; }
  /** @brief The budget now; 0 without one. Takes no lock. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept { return now().budget_bytes(); }
  /** @brief In which requests waited so far, of the budget that is kept. Takes no lock. */
  [[nodiscard]] std::uint64_t waited_ns() const noexcept { return now().waited_ns(); }
  /** @brief Counts and levels of the budget; none without one. */
  [[nodiscard]] std::optional<residency_statistics> budget_statistics() const noexcept
  {
    fork_call const call;
    return now().statistics();
  }
  /** @brief See `residency_manager::take_live_blocks`; nothing without a budget. */
  [[nodiscard]] live_blocks take_live_blocks(bool begins) noexcept
  {
    fork_call const call;
    return now().take_live_blocks(begins);
  }
  /** @brief Waits until the budget's thread has nothing to do. */
  void flush() noexcept
  {
    fork_call const call;
    now().flush();
  }
  /** @brief Does in the caller's thread what the budget's would do. */
  void run_pending() noexcept
  {
    fork_call const call;
    now().run_pending();
  }
  /** @brief The next piece of that only. @return whether there may be another one */
  bool run_pending_piece() noexcept
  {
    fork_call const call;
    return now().run_pending_piece();
  }

  /** @brief Everything counted so far of what is done without a budget. */
  [[nodiscard]] prefetch_statistics statistics() const noexcept { return counts_.snapshot(); }
  /** @brief Bytes prefetched so far, less those of slabs; takes no lock. */
  [[nodiscard]] std::uint64_t prefetched_bytes() const noexcept
  {
    return counts_.prefetched_bytes();
  }
  /** @brief Bytes discarded so far; takes no lock. */
  [[nodiscard]] std::uint64_t discarded_bytes() const noexcept { return counts_.discarded_bytes(); }
  /** @brief Whether an address lies in a slab. */
  [[nodiscard]] bool holds(std::uintptr_t address) const
  {
    fork_call const call;
    return ledger_.slab_of(address).has_value();
  }
  /** @brief The blocks and what is known about them. */
  [[nodiscard]] residency_ledger const& ledger() const noexcept { return ledger_; }
  /** @brief The epoch now; see `epoch_source`. */
  [[nodiscard]] epoch_number current_epoch() noexcept { return unbudgeted_.current_epoch(); }
  /** @brief How much a pool over this memory may hand out. */
  [[nodiscard]] pool_room& room() noexcept { return room_; }
  /** @brief The driver that is commanded. */
  [[nodiscard]] uvm_driver& driver() noexcept { return *driver_; }

 private:
  [[nodiscard]] residency_enactor& now() const noexcept
  {
    return *now_.load(std::memory_order_acquire);
  }
  void tell(memory_observer& observer, std::span<use_event const> uses) const noexcept;
  void end_advice(memory_range allocation) noexcept;
  void end_kept() noexcept;

  std::shared_ptr<uvm_driver> driver_;
  residency_ledger ledger_;
  pool_room room_;
  memory_adviser adviser_;
  prefetch_counts counts_;
  observer_slot use_observers_;
  unbudgeted_enactor unbudgeted_;
  std::vector<std::unique_ptr<budgeted_enactor>> budgets_;  // all that were ever kept
  budgeted_enactor* kept_{nullptr};                         // the last of them, until it ends
  std::atomic<residency_enactor*> now_{&unbudgeted_};
  ranked_shared_mutex<lock_rank::slabs>
    slabs_;  // shared: a slab comes or goes; else the budget changes
};

}  // namespace rmm_uvm
