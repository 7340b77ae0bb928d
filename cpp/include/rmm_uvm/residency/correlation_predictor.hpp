// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/use_predictor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Correlation tables, after DeepUM (ASPLOS'23): what came after the last three uses before.
 *
 * One table has, for each three uses in a row, what followed, most recent first; another the range
 * that each use had when it was last seen. The chain of first successors is what is expected next.
 * Uses are told apart by kind, size and address, as DeepUM does by kernel and arguments.
 */
class correlation_predictor final : public use_predictor {
 public:
  static constexpr std::size_t context_events = 3;   ///< uses that a successor is remembered for
  static constexpr std::size_t successors     = 4;   ///< remembered for each
  static constexpr std::size_t look_ahead     = 32;  ///< uses that the chain is followed for
  static constexpr std::size_t most_contexts  = std::size_t{1} << 17U;  ///< then it begins anew

  use_tick observe(use_event const& event) override;
  void forget(std::uintptr_t owner) override;
  [[nodiscard]] std::vector<expected_use> upcoming(std::size_t bytes) const override;
  [[nodiscard]] prediction_score score() const noexcept override { return score_.score(); }

  /** @brief Uses that are remembered, of live memory and of freed; at most `most_contexts`. */
  [[nodiscard]] std::size_t remembered() const noexcept { return uses_.size(); }

 private:
  using identity = std::uint64_t;
  using context  = std::array<identity, context_events>;
  struct context_hash {
    std::size_t operator()(context const& uses) const noexcept;
  };
  struct use_entry {
    use_event event;
    bool alive{true};
  };

  void begin_anew() noexcept;
  void revive(use_event const& allocation);
  [[nodiscard]] identity successor_of(context const& uses) const noexcept;

  context last_{};
  std::unordered_map<context, std::array<identity, successors>, context_hash> after_;
  std::unordered_map<identity, use_entry> uses_;
  std::unordered_map<std::uintptr_t, std::vector<identity>> uses_of_;
  score_keeper score_;
};

}  // namespace rmm_uvm
