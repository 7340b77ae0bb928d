// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/device_offer.hpp>
#include <rmm_uvm/residency/budget/kept_copies.hpp>
#include <rmm_uvm/residency/budget/last_announced.hpp>
#include <rmm_uvm/residency/budget/leaving_order.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/budget/use_learner.hpp>
#include <rmm_uvm/residency/budget/waited_time.hpp>
#include <rmm_uvm/residency/leaving_search.hpp>
#include <rmm_uvm/residency/look_ahead.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmm_uvm {

/** @brief Which blocks may leave. */
enum class candidates : std::uint8_t { all, unused_now };

/** @brief What may leave: to drop, then to copy; both empty: nothing can. */
struct leaving_blocks {
  block_list dead;
  block_list live;
};

/**
 * @brief Makes room: dead blocks are dropped, then live ones leave in the order of the policy.
 *
 * It has blocks leave by the mover and the neighbours, and writes down where they are. Whoever
 * calls it has the ledger's lock; it gives that up during calls, with the blocks marked busy.
 */
class room_maker {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    presence& present;
    stream_marks& marks;
    last_announced const& announced;
    use_learner& uses;
    look_ahead& ahead;
    block_mover& mover;
    device_offer& offer;
    neighbor_memory& neighbors;
    kept_copies& copies;
  };
  explicit room_maker(parts const& all) noexcept : with_{all} {}

  /**
   * @brief What would leave for so many bytes.
   * @param not_before live blocks only that are likely unused until then
   */
  [[nodiscard]] leaving_blocks choose(ledger_view& view,
                                      std::size_t dead_bytes,
                                      std::size_t live_bytes,
                                      candidates who,
                                      use_tick not_before = never_used) const;
  /**
   * @brief Blocks of which the host may get a copy while no work is under way: first to leave.
   * @return none: of no block at all it may, whether there is work or not
   */
  [[nodiscard]] std::optional<block_list> choose_to_copy(ledger_view& view,
                                                         std::size_t bytes) const;
  /**
   * @brief Bytes of dead blocks on the device, as far as `most_bytes`.
   *
   * Where dead blocks are dropped, of those that may be: they are room already.
   */
  [[nodiscard]] std::size_t dead_bytes(ledger_view& view, std::size_t most_bytes) const;
  /**
   * @brief Has blocks leave until no more than `target_bytes` are on the device.
   * @param stream of the request that needs the room: its work is waited for where what leaves next
   *        may be in use; none: nobody waits
   */
  void make_room(ledger_view& view, std::size_t target_bytes, std::optional<stream_handle> stream);
  /** @brief Drops dead blocks. @return whether they were */
  [[nodiscard]] bool drop(ledger_view& view, block_list const& blocks);
  /**
   * @brief Has live blocks leave, to a neighbour while one takes any, else to the host.
   *
   * What the host has a copy of goes there without being copied.
   * A neighbour may take some of them only: then the others stay for now.
   * @return bytes that left; 0 when it failed
   */
  std::size_t leave(ledger_view& view, block_list blocks);
  /** @brief Has what may leave do so: the dead, and live ones only without any. @return if any did
   */
  [[nodiscard]] bool let_go(ledger_view& view, leaving_blocks const& leaving);

  /** @brief A request made room since the thread last looked; takes no lock. */
  [[nodiscard]] bool is_short() const noexcept { return short_of_room_; }
  /** @brief Says so, or that the thread has looked; takes no lock. */
  void set_short(bool is_short) noexcept { short_of_room_ = is_short; }
  /** @brief Live blocks leave so many bytes before they must; none while all that lives stays. */
  [[nodiscard]] std::size_t lead_bytes() const noexcept
  {
    return with_.present.passes_over() ? 0 : lead_bytes_;
  }
  /** @brief Whether dead blocks are dropped. */
  [[nodiscard]] bool drops() const noexcept;
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  void renew(leaving_search& search) const;
  [[nodiscard]] std::size_t choose_dead(leaving_search& search,
                                        std::size_t bytes,
                                        candidates who,
                                        block_list& chosen) const;
  [[nodiscard]] bool has_turn(block_record const& block, candidates who) const noexcept;
  void choose_live(leaving_search& search,
                   std::size_t bytes,
                   candidates who,
                   use_tick not_before,
                   block_list& chosen) const;
  [[nodiscard]] leaving_order leaving_now(candidates who, use_tick not_before) const noexcept;
  void lengthen_lead() noexcept;
  void shorten_lead() noexcept;
  std::size_t leave_uncopied(ledger_view& view, block_list const& blocks);
  std::size_t leave_copied(ledger_view& view, block_list blocks);
  void settle(block_list const& blocks, status result, block_place place);

  parts with_;
  std::size_t lead_bytes_{0};
  std::atomic<bool> short_of_room_{false};
  std::uint64_t evicted_bytes_{0};
  std::uint64_t uncopied_bytes_{0};
  std::uint64_t dropped_bytes_{0};
  std::uint64_t neighbor_bytes_{0};
  std::uint64_t eviction_calls_{0};
  waited_time waited_;  // of requests, for live blocks to leave
};

}  // namespace rmm_uvm
