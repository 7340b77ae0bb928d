// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/placed_marks.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace rmm_uvm {

/**
 * @brief How far the device has got: marks behind uses in the program's streams, and behind frees.
 *
 * The program runs ahead of the device. What kernels under way use must not leave under them, and
 * what was freed may be discarded only once the work before its free is done. It commands marks
 * only, and changes no block. Under the ledger's lock, except where a method says otherwise.
 */
class stream_marks {
 public:
  stream_marks(uvm_driver& driver,
               budget_ledger& ledger,
               use_clock const& clock,
               presence const& present,
               moved_account& moved) noexcept;

  /**
   * @brief Notes how far a stream has got, unless little was used since: a mark takes time.
   *
   * A mark lies before the work of the uses that are under way, and so tells of those before
   * `first`, the first of them. Takes the lock.
   */
  void mark(use_tick first, std::size_t used_bytes, stream_handle stream) noexcept;
  /** @brief Notes how far the stream that waits for frees has got, now and then; takes the lock. */
  void mark_frees(std::size_t freed_bytes, stream_handle frees) noexcept;
  /**
   * @brief Looks how far the device has got.
   *
   * Of several streams the others' work may not be done: evicting that is slow, not wrong.
   */
  void look() noexcept;

  /** @brief Takes the work of all uses so far as done, where nobody marked any. */
  void take_all_as_done() noexcept { done_ = clock_.now(); }

  /** @brief Whether a mark may be passed yet. */
  [[nodiscard]] bool any_outstanding() const noexcept { return !outstanding_.empty(); }
  /** @brief The work of uses up to this one is done; of uses not noted any block may have one. */
  [[nodiscard]] use_tick idle_until() const noexcept
  {
    return present_.passed_over() > done_ ? never_used : done_;
  }
  /** @brief Whether kernels or prefetches of one of the blocks may be under way. */
  [[nodiscard]] bool in_use(block_list const& blocks) const noexcept;

  /** @brief A free that the stream of frees waits for. @return its number */
  std::uint64_t count_free() noexcept { return ++frees_; }
  /** @brief Frees since one, by its number. */
  [[nodiscard]] std::uint64_t frees_since(std::uint64_t number) const noexcept
  {
    return frees_ - number;
  }
  /** @brief Whether the work before the last free in a block is done, as far as marks tell. */
  [[nodiscard]] bool free_is_done(block_record const& block) const noexcept
  {
    return block.freed <= frees_done_;
  }
  /** @brief The same of all of them. */
  [[nodiscard]] bool frees_are_done(block_list const& blocks) const noexcept;
  /** @brief Moves what it remembers back with the clock. */
  void turn_back(tick_shift const& shift) noexcept;

 private:
  uvm_driver& driver_;
  budget_ledger& ledger_;
  use_clock const& clock_;
  presence const& present_;
  moved_account& moved_;
  use_tick done_{never_used};              // work up to this use is done
  use_tick marked_{never_used};            // when the last mark was made
  use_tick asked_by_{never_used};          // what was asked by then has come once it is done
  std::deque<placed_mark> outstanding_;    // marks that were not seen to be passed
  std::size_t marks_{0};                   // made so far
  std::uint64_t frees_{0};                 // fenced ones so far
  std::uint64_t frees_done_{0};            // work before that many of them is done
  std::deque<fenced_frees> frees_marked_;  // marks that were not seen to be passed
  std::size_t free_marks_{0};              // made so far
  std::size_t unmarked_bytes_{0};          // freed since the last one
};

}  // namespace rmm_uvm
