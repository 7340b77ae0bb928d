// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/arrivals.hpp>
#include <rmm_uvm/residency/budget/background_work.hpp>
#include <rmm_uvm/residency/budget/beside_advice.hpp>
#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/budget/budget_follower.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/device_offer.hpp>
#include <rmm_uvm/residency/budget/early_copies.hpp>
#include <rmm_uvm/residency/budget/giving_back.hpp>
#include <rmm_uvm/residency/budget/host_mappings.hpp>
#include <rmm_uvm/residency/budget/in_place_uses.hpp>
#include <rmm_uvm/residency/budget/kept_copies.hpp>
#include <rmm_uvm/residency/budget/last_announced.hpp>
#include <rmm_uvm/residency/budget/migration_thread.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/budget/unseen_arrivals.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/budget/use_learner.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/live_blocks.hpp>
#include <rmm_uvm/residency/look_ahead.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>
#include <rmm_uvm/residency/segment_map.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Keeps the managed memory of one device under a budget: the enactor of eviction policies.
 *
 * Blocks leave dead ones first, which are discarded and cost no copy, then live ones in the order
 * of the policy. What a program allocates, or announces to use, is brought in; with a predictor,
 * also what it is expected to use next. A thread evicts from the high watermark to the low one and
 * fetches ahead; a request that finds no room evicts by itself.
 *
 * **Migrating is always coherent, discarding never is.** A block is discarded only if no live byte
 * is in it, and the work before every free in it is done: a stream of the manager's own waits for
 * the freeing streams, and marks tell how far it has got. A discard has happened when its call is
 * over (`discard_at_once`), and no user's stream is told of it: what is handed out may be written
 * from anywhere. A dead block that is handed out while its work is under way keeps its contents,
 * and they are copied. While a call about a block is under way, the block is `busy`, and whoever
 * wants it waits. No user's stream is kept.
 *
 * Faults of kernels are not seen. What they brought is found afterwards, where the driver can tell
 * what the host holds (`unseen_arrivals`); else it comes on top, and how much is estimated.
 *
 * Each thing that it does is a class in `budget/`; this one tells them what the program does.
 *
 * Thread-safe. Never throws: what could not be done is counted, and pages come by fault. The thread
 * is in no call while the process forks; in the child, where it is not, only requests make room.
 */
class residency_manager {
 public:
  /**
   * @param driver what is commanded
   * @param ledger of the slabs of that driver, which nobody else marks; outlives this object
   * @param settings checked by the caller
   * @param adviser of that ledger's blocks; outlives this object. Null: nobody advises
   */
  residency_manager(std::shared_ptr<uvm_driver> driver,
                    residency_ledger& ledger,
                    residency_settings settings,
                    memory_adviser* adviser = nullptr);
  residency_manager(residency_manager const&)            = delete;
  residency_manager& operator=(residency_manager const&) = delete;
  residency_manager(residency_manager&&)                 = delete;
  residency_manager& operator=(residency_manager&&)      = delete;
  /** @brief Stops the thread; a call under way is finished. */
  ~residency_manager();

  // While the program runs: see `managed_residency`, which calls these one at a time.
  /**
   * @brief Takes over the blocks of all slabs that there are: on the device, in doubt, and live, as
   * nobody has told what lives in them; see `block_record::untold`.
   * @param publish called under the ledger's lock: whoever comes after it asks this object
   */
  void adopt(std::function<void()> const& publish) noexcept;
  /** @brief Changes the budget; what is too much leaves soon, or for the next request. */
  void change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept;
  /**
   * @brief Ends: begins no call any more, waits for those under way, then stops the thread.
   *
   * Then what lies on neighbours goes to the host, offers are withdrawn, and all blocks are in
   * doubt. Whoever still asks this object is answered, and nothing is done.
   * @param publish called under the ledger's lock: nobody comes after it who does not ask already
   */
  void retire(std::function<void()> const& publish) noexcept;

  /** @brief Makes a new allocation usable on the device, in the order of `stream`. */
  void on_allocate(memory_range allocation, stream_handle stream) noexcept;
  /**
   * @brief Makes room for an allocation that RMM's adaptor prefetches, and ranks all its blocks
   * anew, where blocks come and leave as on a smaller card (`is_fault_driven`); else does nothing.
   *
   * For comparisons: the kernel driver ranks a block anew whenever it is prefetched, also if it is
   * there. In the order of `stream`, as RMM's prefetches: earlier work there holds up no block.
   */
  void renew_arrival(memory_range allocation, stream_handle stream) noexcept;
  /**
   * @brief The same for a part of an allocation that a caching allocator hands out anew.
   *
   * What is likely used is made usable; for the rest the stream only waits for discards.
   * @param by_stream as for `on_free`; else contents are kept: the allocator may still hold a part
   */
  void on_reuse(carved_range const& carved, stream_handle stream, bool by_stream = true) noexcept;
  /** @brief Memory that was free is handed out, nobody tells when: live until its slab goes. */
  void on_untold(memory_range range) noexcept;
  /**
   * @brief Takes note of a free.
   * @param by_stream whether all work that uses the memory is in `stream`, or ordered before it;
   *        else it is never discarded
   * @pre called before the memory can be handed out again
   */
  void on_free(memory_range allocation, stream_handle stream, bool by_stream = true) noexcept;
  /** @brief See `managed_residency::drop_dead`. False where dead blocks are not to be dropped. */
  bool drop_dead(std::span<memory_range const> blocks) noexcept;
  /**
   * @brief Has the ledger forget a slab that is to be given back: waits for calls about it.
   * @return how much of the device the driver may keep for it: for `on_slab_freed`
   */
  std::size_t on_slab_free(memory_range slab) noexcept;
  /** @brief The slab was given back. @param kept_bytes what `on_slab_free` returned */
  void on_slab_freed(std::size_t kept_bytes) noexcept;

  // What users know and blocks do not show.
  /**
   * @brief Uses are about to be issued to `stream`: brings in what is away, and learns.
   *
   * What one call names does not leave to make room for the rest of it. While nothing can be away
   * it is a few loads, and nothing is learnt.
   */
  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept;
  /** @brief Work that writes all of these ranges was issued: from then on they are only read. */
  void on_made(std::span<memory_range const> ranges) noexcept;
  /** @brief Brings a range in, in the order of `stream` unless captured; learns nothing. */
  void prefetch(memory_range range, stream_handle stream) noexcept;
  /** @brief Has whole blocks in `range` leave, unless they are pinned. @return bytes that left */
  std::size_t evict(memory_range range) noexcept;
  /**
   * @brief Sends everything away, pinned blocks too, and drops what is dead: the program sleeps.
   *
   * Until `wake` only uses bring something back. Waits for the default stream first: what kernels
   * still use would come back.
   * @return bytes that left with their contents
   */
  std::size_t sleep() noexcept;
  /**
   * @brief Brings back what slept, as far as the budget goes: what was used last stays longest.
   * @return bytes that came; they are there, after the work of `stream`
   */
  std::size_t wake(stream_handle stream) noexcept;
  /**
   * @brief Keeps the blocks that `range` touches where they are until `unpin`; counted. What lies
   * on a neighbour comes to the device when its owner needs the memory.
   */
  void pin(memory_range range) noexcept;
  /** @brief Takes one `pin` of the same range back. */
  void unpin(memory_range range) noexcept;
  /** @brief Something was advised about a range: what of it lies on a neighbour leaves that. */
  void on_advised(memory_range range) noexcept;

  /** @brief The budget now; takes no lock. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept { return ledger_.budget_bytes(); }
  /** @brief The program is at work, though it may ask for nothing. Takes no lock. */
  void note_use() noexcept { follower_.note_use(); }
  /** @brief Whether slabs are larger than the budget; takes no lock. */
  [[nodiscard]] bool under_pressure() const noexcept { return ledger_.under_pressure(); }

  /** @brief Evicts to the low watermark and fetches ahead, in the caller's thread; see `flush`. */
  void run_pending() noexcept;
  /** @brief The next piece of that only. @return whether there may be another one */
  bool run_pending_piece() noexcept;
  /** @brief Waits until the thread has nothing to do, and no call is under way. */
  void flush() noexcept;

  /** @brief Counts and levels now. */
  [[nodiscard]] residency_statistics statistics() const noexcept;
  /** @brief In which requests waited so far. Takes no lock. */
  [[nodiscard]] std::uint64_t waited_ns() const noexcept { return coming_->waited_ns(); }
  /** @brief What lives, in whole blocks. @param begins a round does: see `live_block_watch` */
  [[nodiscard]] live_blocks take_live_blocks(bool begins) noexcept;
  /** @brief How it was set. */
  [[nodiscard]] residency_settings const& settings() const noexcept { return settings_; }
  /**
   * @brief True while nothing can be away: all slabs fit the budget, and nothing ever left.
   *
   * Takes no lock.
   */
  [[nodiscard]] bool all_present() const noexcept { return present_.all_present(); }
  /**
   * @brief Looks whether every live block is on the device, and remembers it until one leaves.
   *
   * While that lasts, uses of what is there are passed over, and allocations there take a lock and
   * no call: for programs that see to it that what they use fits. What they forgot is brought in at
   * its use, if that is announced: of a new allocation what is longer than its likes may be
   * missing. What belongs to the host may be there. Blocks in doubt are prefetched in `stream`, as
   * are those away, up to a sixty-fourth of the budget. Some microseconds a thousand blocks.
   */
  bool confirm_present(stream_handle stream) noexcept;
  /** @brief Whether `confirm_present` found that, and nothing left since. Takes no lock. */
  [[nodiscard]] bool confirmed_present() const noexcept { return present_.confirmed(); }

 private:
  void wake() noexcept;
  [[nodiscard]] std::size_t low_at(std::size_t budget_bytes) const noexcept;
  void resize(std::size_t budget_bytes, std::size_t low_bytes) noexcept;
  void look_at_live_blocks(std::size_t new_bytes) noexcept;
  void leave_what_is_too_much() noexcept;
  [[nodiscard]] block_list blocks_to_sleep(ledger_view& view, bool dead);
  [[nodiscard]] std::vector<memory_range> blocks_to_wake(ledger_view& view);
  void end_our_advice() noexcept;
  void do_without_thread() noexcept;
  void look_without_thread(ledger_view& view);

  std::shared_ptr<uvm_driver> driver_;
  residency_settings settings_;
  std::size_t asked_ahead_bytes_;
  double asked_low_fraction_;
  work_signal signal_;
  budget_ledger ledger_;
  use_clock clock_;
  moved_account moved_;
  presence present_;
  stream_marks marks_;
  live_block_watch watch_;
  last_announced announced_;
  std::unique_ptr<use_learner> uses_;
  look_ahead ahead_;
  block_mover mover_;
  device_offer offer_;
  neighbor_memory neighbors_;
  beside_advice advice_;
  kept_copies copies_;
  room_maker room_;
  budget_follower follower_;
  waiting_memory waiting_;
  std::unique_ptr<arrivals> coming_;
  giving_back back_;
  early_copies early_;
  in_place_uses in_place_;
  host_mappings mappings_;
  unseen_arrivals unseen_;
  background_work work_;
  migration_thread thread_;  // last: it uses all of the above
};

}  // namespace rmm_uvm
