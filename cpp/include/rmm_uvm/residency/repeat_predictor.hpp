// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Expects the last iteration again: what followed the same uses then follows now.
 *
 * Uses are told apart by what they are, not by address: kind, size, and about how many uses ago the
 * same allocation was used before. So an iteration is recognised although a pool hands out other
 * addresses. Of a program that repeats exactly, it knows every next use: evicting what is used last
 * is then Belady's rule. Where a few uses are left out or added, it goes on behind them.
 */
class repeat_predictor final : public use_predictor {
 public:
  static constexpr std::size_t context_events =
    4;  ///< uses that must agree to find the place again

  /** @param most_events uses that are remembered at least, twice as many at most; > 0 */
  explicit repeat_predictor(std::size_t most_events = std::size_t{1} << 16U);

  use_tick observe(use_event const& event) override;
  [[nodiscard]] use_tick freed_after() const noexcept override { return freed_after_; }
  void forget(std::uintptr_t owner) override;
  [[nodiscard]] std::vector<expected_use> upcoming(std::size_t bytes) const override;
  [[nodiscard]] expected_growth growth() const override;
  [[nodiscard]] prediction_score score() const noexcept override { return score_.score(); }

 private:
  static constexpr std::size_t none           = ~std::uint32_t{0};  // no position
  static constexpr std::size_t most_stray     = 8;   // uses in turn that are left out or added
  static constexpr std::size_t most_turns     = 8;   // uses of an allocation that are looked at
  static constexpr std::size_t most_agreement = 64;  // uses that are compared, at most
  static constexpr std::uint32_t no_place     = ~std::uint32_t{0};

  struct entry {
    std::uint64_t identity{0};
    use_event event;
    std::uint32_t before{none};     // position of the allocation's use before this one
    std::uint32_t after{none};      // and of the next
    std::uint32_t again{none};      // and of the use at the same place of the next repetition
    std::uint32_t allocation{0};    // its number
    use_tick ago{0};                // how many uses before this one was; 0: there is none
    std::uint32_t place{no_place};  // which those of the same place in each repetition share
    std::uint32_t lasted{0};        // how many uses later it was gone
    bool freed{false};              // the allocation was gone before it was used again
  };

  [[nodiscard]] std::uint64_t context() const noexcept;
  [[nodiscard]] std::size_t agreement(std::size_t then, std::size_t now) const noexcept;
  [[nodiscard]] std::size_t counterpart_of(std::size_t position, std::size_t period) const noexcept;
  [[nodiscard]] std::size_t own_place(std::size_t here, std::size_t turns) const noexcept;
  [[nodiscard]] std::size_t longer_place(std::size_t here) const noexcept;
  void note_miss(std::size_t here) noexcept;
  [[nodiscard]] bool find_place(std::size_t here);
  [[nodiscard]] std::size_t next_alike(std::size_t after, std::size_t here) const noexcept;
  [[nodiscard]] bool alike(std::size_t before, std::size_t here) const noexcept;
  void drop_oldest();
  void note_live_bytes(std::size_t position) noexcept;
  void drop_unused_places();
  [[nodiscard]] std::uintptr_t owner_now(entry const& then, std::size_t last) const;
  void note_next(std::size_t position, std::size_t next) noexcept;
  [[nodiscard]] use_tick last_gap(std::size_t here);

  static constexpr std::size_t stretch_events = 64;
  /** @brief What was live at so many uses in turn, at least and at most. */
  struct live_stretch {
    std::size_t least_bytes{~std::size_t{0}};
    std::size_t most_bytes{0};
  };

  std::size_t most_events_;
  std::vector<entry> history_;
  std::vector<live_stretch> stretches_;  // of the history, so that `growth` passes over most of it
  std::unordered_map<std::uintptr_t, std::size_t> last_use_;      // of an allocation
  std::unordered_map<std::uint64_t, std::size_t> last_position_;  // of a context
  // Of each use that `upcoming` looked at: the allocation's last use up to the cursor. Kept for its
  // memory.
  mutable std::vector<std::uint32_t> earlier_;
  std::uint32_t allocations_{0};
  std::vector<use_tick> gaps_;    // of each place: uses until its allocation's next, known last; 0
  std::size_t cursor_{none};      // where, before, what was seen last was seen
  std::size_t lost_at_{none};     // and where the one before the latest strays
  std::size_t strays_{0};         // uses since then
  std::size_t found_again_{0};    // where the place was found last that is followed since
  std::size_t realigned_{0};      // where a longer iteration was followed first
  std::size_t realigns_from_{0};  // from then on another one may be
  std::size_t patience_{0};       // uses until then, after one that did not hold
  use_tick freed_after_{unknown_use};
  score_keeper score_;
};

}  // namespace rmm_uvm
