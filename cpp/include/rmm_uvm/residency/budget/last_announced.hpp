// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace rmm_uvm {

/**
 * @brief What each stream was announced to use last: its kernels may not be launched yet.
 *
 * No mark is behind them and no prediction knows better, so it leaves only where nothing else can.
 * It holds ticks, and touches nothing. Under the ledger's lock.
 */
class last_announced {
 public:
  static constexpr std::size_t streams = 8;  ///< remembered; of more, those that announced last

  /** @brief A stream is about to use what was touched from `first` to `last`, and nothing else. */
  void note(stream_handle stream, use_tick first, use_tick last) noexcept
  {
    auto* place = std::find_if(
      uses_.begin(), uses_.end(), [stream](uses const& each) { return each.stream == stream; });
    if (place == uses_.end()) {
      place = std::min_element(
        uses_.begin(), uses_.end(), [](uses const& a, uses const& b) { return a.last < b.last; });
    }
    *place = {stream, first, last};
    find_earliest();
  }
  /** @brief Whether a block is among them. Not inlined: loops over all blocks hardly call it. */
  [[nodiscard]] bool names(block_record const& block) const noexcept;
  /** @brief Whether all that was touched last from `oldest` to `newest` is among them. */
  [[nodiscard]] bool cover(use_tick oldest, use_tick newest) const noexcept;
  /** @brief What was touched before is not among them. */
  [[nodiscard]] use_tick earliest() const noexcept { return earliest_; }
  /** @brief Moves what it remembers back with the clock. */
  void turn_back(tick_shift const& shift) noexcept
  {
    for (auto& each : uses_) {
      shift(each.first);
      shift(each.last);
    }
    find_earliest();
  }

 private:
  struct uses {
    stream_handle stream{nullptr};
    use_tick first{never_used};  // never used: of no stream
    use_tick last{never_used};
  };
  void find_earliest() noexcept
  {
    earliest_ = no_use;
    for (auto const& each : uses_) {
      if (each.first != never_used) { earliest_ = std::min(earliest_, each.first); }
    }
  }

  std::array<uses, streams> uses_{};
  use_tick earliest_{no_use};  // of all of them
};

}  // namespace rmm_uvm
