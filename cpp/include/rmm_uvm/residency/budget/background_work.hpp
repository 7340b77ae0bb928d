// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/arrivals.hpp>
#include <rmm_uvm/residency/budget/budget_follower.hpp>
#include <rmm_uvm/residency/budget/early_copies.hpp>
#include <rmm_uvm/residency/budget/giving_back.hpp>
#include <rmm_uvm/residency/budget/in_place_uses.hpp>
#include <rmm_uvm/residency/budget/unseen_arrivals.hpp>
#include <rmm_uvm/residency/budget/waiting_memory.hpp>
#include <rmm_uvm/residency/budget/work_outcome.hpp>
#include <rmm_uvm/residency/look_ahead.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm {

/**
 * @brief What a budget does on its own: makes room behind requests, fetches ahead of uses, and
 * looks after neighbours.
 *
 * A piece at a time, so that a request that comes meanwhile finds what it needs not chosen yet. It
 * takes the ledger's lock itself, except where a method takes a view.
 */
class background_work {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    stream_marks& marks;
    use_learner const& uses;
    look_ahead& ahead;
    device_offer& offer;
    neighbor_memory const& neighbors;
    room_maker& room;
    arrivals& coming;
    giving_back& back;
    early_copies& early;
    in_place_uses& in_place;
    unseen_arrivals& unseen;
    waiting_memory& waiting;
    budget_follower& follower;
  };
  explicit background_work(parts const& all) noexcept : with_{all} {}

  /** @brief Does one piece. */
  [[nodiscard]] work_outcome work_once();
  /** @brief When to look again without having been called; none: only when called. */
  [[nodiscard]] std::optional<std::chrono::microseconds> look_again_in(
    work_outcome before) const noexcept;
  /** @brief Whether something is foreseen, and the program has gone on far enough for a look. */
  [[nodiscard]] bool is_to_look_ahead() const noexcept
  {
    return with_.uses.foresees() && with_.uses.learnt_bytes() >= looks_ahead_at_ &&
           with_.ledger.looks_ahead();
  }
  /** @brief Counts what comes too late for uses; called before anything is learnt of them. */
  void adapt_look_ahead(ledger_view& view, std::span<use_event const> uses) noexcept;

 private:
  [[nodiscard]] std::optional<std::chrono::microseconds> work_again_in(
    work_outcome before) const noexcept;
  [[nodiscard]] std::optional<work_outcome> make_room_behind(ledger_view& view);
  [[nodiscard]] work_outcome make_room_early(ledger_view& view);
  [[nodiscard]] std::size_t leaving_bytes(ledger_view& view, expected_growth growth) const;
  void look_ahead();
  [[nodiscard]] bool is_look_over() const noexcept;
  [[nodiscard]] expected_use expected_next(ledger_view& view, std::size_t most_bytes);
  [[nodiscard]] expected_use next_of_look(ledger_view& view, std::size_t most_bytes);
  [[nodiscard]] std::optional<leaving_blocks> leaving_for(ledger_view& view,
                                                          expected_use const& next);
  [[nodiscard]] bool is_in_the_way(ledger_view& view, expected_use const& next) const;
  [[nodiscard]] work_outcome fetch_ahead();
  [[nodiscard]] work_outcome nothing_ahead() noexcept;

  parts with_;
  std::uint64_t looks_ahead_at_{0};  // bytes of uses: nothing is to be fetched before
  // The last look at what is expected, and until when it holds.
  std::uint64_t looks_anew_at_{0};  // bytes of uses
  std::size_t looked_bytes_{0};     // ahead
  use_tick looked_at_{never_used};
  std::vector<expected_use> expected_;  // as of `looked_at_`
  std::size_t passed_{0};               // of these, so many are there, or come
};

}  // namespace rmm_uvm
