// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/confirmed_presence.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/fault_in_estimate.hpp>
#include <rmm_uvm/residency/fork_gate.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/live_blocks.hpp>
#include <rmm_uvm/residency/look_ahead.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/moving_pieces.hpp>
#include <rmm_uvm/residency/neighbor_busy.hpp>
#include <rmm_uvm/residency/owner_load.hpp>
#include <rmm_uvm/residency/piece_movers.hpp>
#include <rmm_uvm/residency/placed_marks.hpp>
#include <rmm_uvm/residency/postponed_uses.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>
#include <rmm_uvm/residency/segment_map.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
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
 * Faults of kernels are not seen: on a GPU the budget binds what this object does and what it is
 * told, and pages that fault in come on top; how many is estimated.
 *
 * Thread-safe. Never throws: what could not be done is counted, and pages come by fault. The thread
 * is in no call while the process forks; in the child, where it is not, only requests make room.
 */
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): fields stand as they are read
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
  /** @brief Has the ledger forget a slab that is to be given back: waits for calls about it. */
  void on_slab_free(memory_range slab) noexcept;

  // What users know and blocks do not show.
  /**
   * @brief Uses are about to be issued to `stream`: brings in what is away, and learns.
   *
   * What one call names does not leave to make room for the rest of it. While nothing can be away
   * it is a few loads, and nothing is learnt.
   */
  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept;
  /** @brief Brings a range in, in the order of `stream` unless captured; learns nothing. */
  void prefetch(memory_range range, stream_handle stream) noexcept;
  /** @brief Has whole blocks in `range` leave, unless they are pinned. @return bytes that left */
  std::size_t evict(memory_range range) noexcept;
  /**
   * @brief Keeps the blocks that `range` touches where they are until `unpin`; counted. What lies
   * on a neighbour comes to the device when its owner needs the memory.
   */
  void pin(memory_range range) noexcept;
  /** @brief Takes one `pin` of the same range back. */
  void unpin(memory_range range) noexcept;
  /** @brief Something was advised about a range: what of it lies on a neighbour leaves that. */
  void on_advised(memory_range range) noexcept;

  /** @brief Evicts to the low watermark and fetches ahead, in the caller's thread; see `flush`. */
  void run_pending() noexcept;
  /** @brief The next piece of that only. @return whether there may be another one */
  bool run_pending_piece() noexcept;
  /** @brief Waits until the thread has nothing to do, and no call is under way. */
  void flush() noexcept;

  /** @brief Counts and levels now. */
  [[nodiscard]] residency_statistics statistics() const noexcept;
  /** @brief What lives, in whole blocks. @param begins a round does: see `live_block_watch` */
  [[nodiscard]] live_blocks take_live_blocks(bool begins) noexcept;
  /** @brief How it was set; its sizes change with `change_budget`. */
  [[nodiscard]] residency_settings const& settings() const noexcept { return settings_; }
  /** @brief The budget now; takes no lock. */
  [[nodiscard]] std::size_t budget_bytes() const noexcept
  {
    return budget_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Whether slabs are larger than the budget; takes no lock. */
  [[nodiscard]] bool under_pressure() const noexcept
  {
    return ledger_.slab_bytes() > budget_bytes();
  }
  /**
   * @brief True while nothing can be away: all slabs fit the budget, and nothing ever left.
   *
   * Takes no lock.
   */
  [[nodiscard]] bool all_present() const noexcept
  {
    return !under_pressure() && !sent_away_.load(std::memory_order_acquire) &&
           driver_->counters().read().device_to_host_bytes == quiet_bytes_;
  }
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
  [[nodiscard]] bool confirmed_present() const noexcept;

 private:
  enum class reason : std::uint8_t { allocation, use, asked, ahead, doubt, away };
  static constexpr std::chrono::milliseconds loads_period{20};  // as NVML's own figures are
  // Of a link's rate: half of it leaves our copies half of it. A choice, not measured.
  static constexpr busy_thresholds links_busy{0.5, 0.25};
  [[nodiscard]] static std::size_t reserve_of(device_memory const& memory) noexcept;

  enum class outcome : std::uint8_t { nothing, again, later };
  /** @brief How a block leaves a neighbour; for its owner in this order. */
  enum class departure_kind : std::uint8_t { dropped, has_copy, copied_now, advised };

  using claims     = std::vector<claimed_block>;
  using range_list = std::span<memory_range const>;
  using victims    = std::vector<viewed_block>;

  // residency_uses.cpp
  void learn(ledger_view& view, use_event const& event);
  void note_uses(std::span<use_event const> uses);
  void note_use(ledger_view& view, use_event const& event, use_tick next_use, bool no_more);
  void turn_back_clock(ledger_view& view) noexcept;
  // residency_manager.cpp
  void hand_out(ledger_view& view, memory_range range);
  void forget(ledger_view& view, memory_range allocation, bool fenced);
  void count_failure(status failure) noexcept;
  void count_failure_of(char const* call) noexcept;
  void count_unread(status answer) noexcept;

  // residency_presence.cpp
  [[nodiscard]] bool confirm(ledger_view& view, absent_blocks& absent);
  void end_confirmed(ledger_view& view) noexcept;
  /** @brief Whether what the predictor says holds now. */
  [[nodiscard]] bool foresees() const noexcept;
  /** @brief Whether nobody asks what comes next, so that a predictor can be told later. */
  [[nodiscard]] bool postpones_learning() const noexcept
  {
    return all_present() || confirmed_present();
  }
  [[nodiscard]] bool is_present(ledger_view& view, memory_range range);
  [[nodiscard]] bool is_confirmed(std::span<use_event const> uses) noexcept;
  void leave_to_faults(memory_range range) noexcept;
  void count_presence(ledger_view& view, memory_range range);

  // residency_arrivals.cpp
  [[nodiscard]] static bool is_under_way(ledger_view& view, memory_range range);
  void wait_until_free(ledger_view& view, range_list wanted);
  [[nodiscard]] claims claim(ledger_view& view,
                             range_list wanted,
                             memory_range allocation,
                             reason why);
  void bring(range_list wanted, memory_range allocation, stream_handle stream, reason why);
  void admit(
    ledger_view& view, claims const& missing, range_list wanted, stream_handle stream, reason why);
  void expect_faults(ledger_view& view,
                     range_list wanted,
                     memory_range allocation,
                     stream_handle stream,
                     reason why);
  static void hold(ledger_view& view, range_list wanted, int by);
  void choose_renewed(claims& blocks, stream_handle stream) noexcept;
  [[nodiscard]] std::size_t place_of(claimed_block const& block) const noexcept;
  bool issue(claims const& blocks, stream_handle stream, reason why) noexcept;

  // residency_changes.cpp
  void hand_out_untold(ledger_view& view, memory_range range);
  void keep_untold(ledger_view& view, memory_range allocation, bool fenced);
  void leave_what_is_too_much() noexcept;
  void leave_neighbors() noexcept;
  void stop_lending() noexcept;

  // residency_parts.cpp
  void bring_in_parts(range_list wanted, memory_range allocation, stream_handle stream, reason why);
  void leave_discarded(memory_range range) noexcept;

  // residency_counts.cpp
  [[nodiscard]] epoch_number epoch() noexcept;
  void count_coming(claims const& blocks) noexcept;
  void count_faulted() const noexcept;
  void look_at_live_blocks(std::size_t new_bytes) noexcept;

  // residency_room.cpp
  /** @brief Which blocks may leave. */
  enum class candidates : std::uint8_t { all, unused_now };
  /** @brief What may leave: to drop, then to copy; both empty: nothing can. */
  struct leaving_blocks {
    victims dead;
    victims live;
    std::size_t dead_bytes{0};  // of all that could be dropped
  };
  [[nodiscard]] leaving_blocks choose(ledger_view& view,
                                      std::size_t dead_bytes,
                                      std::size_t live_bytes,
                                      candidates who,
                                      use_tick not_before = never_used) const;
  void make_room(ledger_view& view, std::size_t target_bytes, std::optional<stream_handle> stream);
  [[nodiscard]] bool free_is_done(block_record const& block) const noexcept;
  void lengthen_lead() noexcept;
  void shorten_lead() noexcept;
  [[nodiscard]] bool in_use(victims const& blocks) const noexcept;
  [[nodiscard]] bool drop(ledger_view& view, victims const& blocks);
  status discard_now(range_list ranges, bool frees_are_done) noexcept;
  std::size_t leave(ledger_view& view, victims blocks);
  [[nodiscard]] static std::vector<memory_range> joined(ledger_view const& view,
                                                        victims blocks,
                                                        std::size_t most_bytes);
  void settle(victims const& blocks, status result, block_place place);
  [[nodiscard]] std::uint64_t weight_of_kept_now(unsigned& taking) const noexcept;

  // residency_moves.cpp
  using places = std::vector<std::vector<memory_range>>;
  [[nodiscard]] bool moves_directly(location where) const noexcept;
  void begin_staging(std::vector<memory_range> const& pieces, staged_pieces& staged) noexcept;
  void go_by_the_way(memory_range piece, staged_pieces& staged) noexcept;
  void end_staging(staged_pieces const& staged) noexcept;
  status fetch_all(places const& from,
                   stream_handle stream,
                   std::atomic<std::size_t>& moved_bytes) noexcept;
  status move_all(range_list ranges,
                  location where,
                  stream_handle stream,
                  std::atomic<std::size_t>& moved_bytes) noexcept;
  status move_together(range_list pieces,
                       std::size_t threads,
                       piece_movers::move_one const& move) noexcept;
  status move_now(memory_range range, location where, stream_handle stream) noexcept;

  // residency_neighbors.cpp
  void begin_with_neighbors();
  [[nodiscard]] std::optional<device_memory> ask_neighbor(ledger_view& view, std::size_t number);
  void forget_kept(ledger_view& view, std::size_t number);
  [[nodiscard]] refuge refuge_for(ledger_view& view, victims& blocks);
  void look_who_is_busy(ledger_view& view) noexcept;
  void arrived_beside(std::size_t number, victims const& blocks, status moved) noexcept;
  static void has_room_for(std::vector<neighbor_state>& seen, block_record const& block) noexcept;
  void takes_nothing(std::size_t number, status why) noexcept;
  void left_beside(std::size_t number, std::size_t blocks) noexcept;
  void count_traffic(claims const& blocks) noexcept;
  void left_beside(claims const& blocks) noexcept;
  void stayed_beside(claims const& blocks) noexcept;
  // residency_lending.cpp
  void offer_idle() noexcept;
  void await_others(ledger_view& view) noexcept;
  void moving(bool begins) noexcept;
  void tell_if_busy(ledger_view& view) noexcept;

  // residency_in_place.cpp
  void choose_in_place(range_list wanted);
  [[nodiscard]] static victims lying_beside(ledger_view& view,
                                            range_list wanted,
                                            std::size_t& missing_bytes);
  void change_mappings(ledger_view& view, victims const& mapping, victims const& unmapping);
  [[nodiscard]] std::optional<use_tick> first_to_leave(ledger_view& view, std::size_t bytes) const;
  void count_in_place(viewed_block const& block) noexcept;
  status end_in_place(std::span<memory_range const> blocks) noexcept;
  status leave_one_copy(std::span<memory_range const> blocks, location where) noexcept;
  void end_advice(claims const& blocks) noexcept;
  void end_advice(ledger_view& view, claims const& blocks) noexcept;
  [[nodiscard]] outcome copy_beside(ledger_view& view);
  [[nodiscard]] bool holds_beside() const noexcept { return counts_.harvested_bytes > 0; }

  // residency_giving_back.cpp
  [[nodiscard]] outcome give_back(ledger_view& view);
  [[nodiscard]] std::size_t wanted_back(ledger_view& view, std::size_t number);
  [[nodiscard]] bool leave_neighbor(ledger_view& view,
                                    std::size_t number,
                                    std::size_t bytes,
                                    departure_kind first);
  [[nodiscard]] bool come_home(ledger_view& view,
                               std::size_t number,
                               std::vector<memory_range> const& ranges);
  [[nodiscard]] bool go_back(ledger_view& view,
                             std::size_t number,
                             victims const& blocks,
                             departure_kind kind);
  status to_host_now(range_list ranges) noexcept;

  // migration_thread.cpp
  void run();
  [[nodiscard]] bool await_work(outcome before);
  void call_thread() noexcept;
  void do_without_thread() noexcept;
  [[nodiscard]] outcome work_once();
  [[nodiscard]] std::optional<outcome> make_room_behind(ledger_view& view);
  [[nodiscard]] outcome make_room_early(ledger_view& view, std::size_t dead_bytes);
  [[nodiscard]] expected_use expected_next(ledger_view& view) const;
  [[nodiscard]] bool is_in_the_way(ledger_view& view, expected_use const& next) const;
  [[nodiscard]] outcome fetch_ahead();
  void adapt_look_ahead(ledger_view& view, std::span<use_event const> uses) noexcept;
  void look_at_marks() noexcept;
  void mark_frees(std::size_t freed_bytes, stream_handle frees) noexcept;
  void mark(use_tick first, std::size_t used_bytes, stream_handle stream) noexcept;
  void wake() noexcept;

  std::shared_ptr<uvm_driver> driver_;
  residency_ledger& ledger_;
  residency_settings settings_;
  memory_adviser* adviser_;
  std::atomic<std::size_t> budget_bytes_{settings_.budget_bytes};  // the same, without the lock
  std::mutex room_;  // one at a time makes room; taken before the ledger's lock

  // Under the ledger's lock.
  std::unique_ptr<use_predictor> predictor_;
  postponed_uses postponed_;
  prediction_switch prediction_;
  look_ahead look_ahead_;
  use_tick now_{never_used};
  use_tick done_{never_used};            // work up to this use is done, as far as marks tell
  use_tick marked_{never_used};          // when the last mark was made
  std::deque<placed_mark> outstanding_;  // marks that were not seen to be passed
  std::size_t marks_{0};                 // made so far
  std::uint32_t owners_{0};
  std::size_t live_bytes_{0};  // of all allocations
  std::size_t untold_{0};      // blocks that may be: while there are none, nobody looks for them
  live_block_watch live_blocks_;
  std::uint64_t frees_{0};       // fenced ones so far
  std::uint64_t frees_done_{0};  // work before that many of them is done, as far as marks tell
  std::deque<fenced_frees> frees_marked_;  // marks that were not seen to be passed
  std::size_t free_marks_{0};              // made so far
  std::size_t unmarked_bytes_{0};          // freed since the last one
  std::size_t leaving_bytes_{0};
  std::size_t without_room_bytes_{0};  // of resident bytes: others are leaving for them
  std::vector<neighbor_state> neighbors_;
  std::vector<neighbor_watch> watches_;          // of the same neighbours
  bool copies_beside_{true};                     // until a copy beside fails
  owner_watch owner_;                            // of this device, where it lends
  std::size_t kept_by_others_{~std::size_t{0}};  // so much they held when they were last waited for
  std::size_t offered_bytes_{~std::size_t{0}};   // to others, at last
  epoch_number epoch_{1};                        // ends when bytes leave that were not asked to
  std::uint64_t asked_bytes_{0};                 // asked to the host by this object
  std::uint64_t foreign_bytes_{0};               // seen to leave beyond that
  mutable fault_in_estimate faulted_in_;         // looking at statistics looks at the counters
  use_tick asked_by_{never_used};                // what was asked by then has come once it is done
  std::size_t lead_bytes_{0};                    // live blocks leave so many bytes before they must
  mutable bool dead_were_enough_{false};         // when room was made last; makes looking faster
  std::atomic<bool> short_of_room_{false};       // a request made room since the thread last looked
  std::uint64_t quiet_bytes_{0};        // had left the device when this was made; never changed
  std::atomic<bool> sent_away_{false};  // this object has moved something away
  confirmed_presence confirmed_;
  std::condition_variable changed_;  // a block is not busy any more, or the thread went idle
  std::condition_variable wanted_;   // there may be something to do
  residency_statistics counts_;
  bool woken_{false};
  bool working_{false};
  bool stopping_{false};  // for good: no call is begun any more

  piece_movers movers_{3};
  fork_gate gate_;      // of the thread
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace rmm_uvm
