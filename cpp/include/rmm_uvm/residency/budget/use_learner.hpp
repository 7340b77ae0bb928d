// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/last_announced.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/shared_blocks.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/live_blocks.hpp>
#include <rmm_uvm/residency/postponed_uses.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rmm_uvm {

/**
 * @brief What allocations, frees and uses tell of blocks: what lives in them, and what comes next.
 *
 * It ticks the clock and keeps the predictor of the policy; it writes down live bytes, and when a
 * block was used and is expected to be. It commands nothing. Under the ledger's lock, except for
 * `room_was_made`.
 */
class use_learner {
 public:
  /** @brief What the stream of frees waits for before what is given back may be dropped. */
  struct free_fence {
    bool fenced{false};      ///< for the work that uses it
    bool in_default{false};  ///< and for all work before that in the default stream of all threads
    std::uint64_t unfenced{0};  ///< `unfenced_frees` before it began to wait
  };

  use_learner(eviction_policy policy,
              use_clock& clock,
              presence& present,
              stream_marks& marks,
              live_block_watch& watch,
              last_announced& announced);
  use_learner(use_learner const&)            = delete;
  use_learner& operator=(use_learner const&) = delete;
  use_learner(use_learner&&)                 = delete;
  use_learner& operator=(use_learner&&)      = delete;
  virtual ~use_learner()                     = default;

  /** @brief Memory is handed out. */
  void hand_out(ledger_view& view, memory_range range);
  /**
   * @brief Memory is given back.
   *
   * The first fence in the default stream, which nobody ends, is one for all frees there before: a
   * budget fences none until something has to leave.
   */
  void forget(ledger_view& view, memory_range allocation, free_fence fence);
  /** @brief Frees without a fence so far; takes no lock. */
  [[nodiscard]] std::uint64_t unfenced_frees() const noexcept { return unfenced_frees_; }
  /** @brief A block goes with its slab, whatever lives in it. @param whole its addresses */
  void forget_block(block_record const& block, memory_range whole) noexcept;
  /** @brief So many blocks were there before the budget, and are untold; of so many bytes. */
  void adopt(std::size_t blocks, std::size_t bytes) noexcept;
  /** @brief The budget has ended: nothing is learnt, and no free counts as fenced any more. */
  void end() noexcept
  {
    ended_  = true;
    untold_ = ~std::size_t{0} / 2;  // blocks may be the next budget's: looked for always
  }
  /** @brief Where a use that was expected of a shared block did not come, expects the next. */
  void look_again(block_record& block, memory_range whole) noexcept
  {
    if (!block.shared || block.next_use > clock_.now() || ended_) { return; }
    block.expect(shared_.look_again(whole.address, at(block, whole)));
  }
  /** @brief A use, or an allocation: the clock ticks, and its blocks are noted. */
  void learn(ledger_view& view, use_event const& event);
  /** @brief There is room for uses that were learnt; takes the lock where it does anything. */
  virtual void room_was_made(std::span<use_event const> uses);

  /** @brief Whether what the predictor says holds now. */
  [[nodiscard]] bool foresees() const noexcept
  {
    return prediction_.on() && postponed_.size() == 0 && !present_.passes_over();
  }
  /** @brief Bytes of all that was learnt: how far the program has gone. */
  [[nodiscard]] std::uint64_t learnt_bytes() const noexcept { return learnt_bytes_; }
  /** @brief What live bytes are going to rise by; nothing where nothing is foreseen. */
  [[nodiscard]] expected_growth growth() const;
  /** @brief Uses that are expected next, as far as `bytes`. @pre `foresees` */
  [[nodiscard]] std::vector<expected_use> upcoming(std::size_t bytes) const
  {
    return predictor_->upcoming(bytes);
  }
  /** @brief Fills in how good predictions are, and what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 protected:
  /** @brief Notes a use as it is learnt. */
  virtual void note_learnt(ledger_view& view, use_event const& event, use_tick next, bool no_more);
  /** @brief Writes a use down in its blocks. @param no_more at `next` they are freed */
  void note(ledger_view& view, use_event const& event, use_tick next, bool no_more);

 private:
  [[nodiscard]] shared_blocks::moment_at at(block_record const& block,
                                            memory_range whole) const noexcept
  {
    return {clock_.now(), block.live_bytes < whole.bytes};
  }
  void note_shared(ledger_view& view, use_event const& event, shared_blocks::expectation next);
  void forget_shared(ledger_view& view, memory_range allocation) noexcept;
  void turn_back_clock(ledger_view& view) noexcept;
  void forget_live(std::size_t bytes) noexcept;
  void fence_earlier(ledger_view& view, std::uint64_t number) noexcept;
  void hand_out_untold(ledger_view& view, memory_range range);
  void keep_untold(ledger_view& view, memory_range allocation, bool fenced);

  use_clock& clock_;
  presence& present_;
  stream_marks& marks_;
  live_block_watch& watch_;
  last_announced& announced_;
  shared_blocks shared_;
  std::unique_ptr<use_predictor> predictor_;  // null: the policy needs none
  postponed_uses postponed_;
  prediction_switch prediction_;
  std::uint32_t owners_{0};    // allocations so far
  std::size_t live_bytes_{0};  // of all allocations
  std::uint64_t learnt_bytes_{0};
  std::size_t untold_{0};  // blocks that may be: while there are none, nobody looks for them
  bool ended_{false};
  std::atomic<std::uint64_t> unfenced_frees_{0};  // counted under the lock
  bool unfenced_there_{false};  // some frees in the default stream have no fence since
};

}  // namespace rmm_uvm
