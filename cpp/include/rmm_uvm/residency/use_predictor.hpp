// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/block_record.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace rmm_uvm {

/** @brief What a program did with memory. */
enum class use_kind : std::uint8_t {
  allocate,  ///< it was handed out
  touch      ///< a use of it was announced
};

/** @brief One use of memory, as a predictor sees it. */
struct use_event {
  use_kind kind{use_kind::touch};
  memory_range range;         ///< what was handed out, or the part that is used
  std::uintptr_t owner{0};    ///< first byte of the allocation that it is of
  std::size_t live_bytes{0};  ///< of all allocations, with this one
  bool only_read{false};      ///< the work does not write it
};

/** @brief A use of existing memory that is expected. */
struct expected_use {
  memory_range range;
  use_tick ahead{0};  ///< after so many uses, >= 1
};

/** @brief How much more is going to be live at once. */
struct expected_growth {
  std::size_t bytes{0};  ///< at the highest level before it falls below that of now; 0: not known
  use_tick ahead{0};     ///< so many uses from now
};

/** @brief How often the next use was the predicted one, of the uses seen lately. */
struct prediction_score {
  std::uint64_t predicted{0};  ///< of the last `seen`, those that came as predicted
  std::uint64_t seen{0};       ///< at most `score_window`

  /** @brief Share of `seen`, 0 to 1; 0 while nothing was seen. */
  [[nodiscard]] double hit_rate() const noexcept
  {
    return seen == 0 ? 0.0 : static_cast<double>(predicted) / static_cast<double>(seen);
  }
};

inline constexpr std::size_t score_window = 256;  ///< uses that a score looks back on

/**
 * @brief Learns the order of a program's uses, and tells what comes next.
 *
 * Pure: a function of the events that it was shown. Not thread-safe.
 */
class use_predictor {
 public:
  use_predictor()                                = default;
  use_predictor(use_predictor const&)            = delete;
  use_predictor& operator=(use_predictor const&) = delete;
  use_predictor(use_predictor&&)                 = delete;
  use_predictor& operator=(use_predictor&&)      = delete;
  virtual ~use_predictor()                       = default;

  /**
   * @brief Learns the next use.
   * @return after how many further uses this memory is expected to be used again; `no_use`: not
   *         soon; `unknown_use`: not known
   */
  virtual use_tick observe(use_event const& event) = 0;

  /**
   * @brief After how many further uses the memory that was observed last is freed, where no use of
   *        it is expected before; `unknown_use`: not known.
   */
  [[nodiscard]] virtual use_tick freed_after() const noexcept { return unknown_use; }

  /** @brief Learns that an allocation is gone. */
  virtual void forget(std::uintptr_t owner) = 0;

  /**
   * @brief Uses of existing memory that are expected next, soonest first, until `bytes`.
   *
   * The same bytes may be left out where they are used again.
   */
  [[nodiscard]] virtual std::vector<expected_use> upcoming(std::size_t bytes) const = 0;

  /** @brief What the live bytes are going to rise by; by default nothing is known. */
  [[nodiscard]] virtual expected_growth growth() const { return {}; }

  /** @brief How good it was lately. */
  [[nodiscard]] virtual prediction_score score() const noexcept = 0;
};

/** @brief Keeps a `prediction_score` over the last `score_window` uses. */
class score_keeper {
 public:
  /** @brief Enters whether a use came as predicted. */
  void enter(bool predicted) noexcept
  {
    auto& slot = outcomes_[next_ % score_window];
    if (next_ >= score_window) { score_.predicted -= slot; }
    slot = predicted ? 1 : 0;
    score_.predicted += slot;
    score_.seen = score_.seen < score_window ? score_.seen + 1 : score_window;
    ++next_;
  }
  /** @brief The score now. */
  [[nodiscard]] prediction_score const& score() const noexcept { return score_; }

 private:
  std::uint8_t outcomes_[score_window]{};  // NOLINT(*-avoid-c-arrays): a ring of bytes
  std::size_t next_{0};
  prediction_score score_;
};

}  // namespace rmm_uvm
