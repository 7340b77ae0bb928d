// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/leaving_bounds.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstdint>
#include <memory>

namespace rmm_uvm {

/** @brief Which live blocks leave the device first. */
enum class eviction_policy : std::uint8_t {
  fifo,         ///< what arrived first, as the kernel driver does
  lru,          ///< what was used least recently
  repeat,       ///< what the last iteration used last: Belady's rule on the recorded order
  correlation,  ///< what correlation tables do not expect, then what arrived first (DeepUM)
};

/** @brief Name of a policy, as users write it. */
[[nodiscard]] constexpr char const* to_string(eviction_policy policy) noexcept
{
  switch (policy) {
    case eviction_policy::fifo: return "fifo";
    case eviction_policy::lru: return "lru";
    case eviction_policy::repeat: return "repeat";
    case eviction_policy::correlation: return "correlation";
  }
  return "unknown";
}

/**
 * @brief How much a live block should leave; the highest leaves first.
 *
 * Pure. A foreseen use that is overdue was foreseen wrongly: the block is judged by its last use.
 * @param foresees whether `next_use` is to be believed; without, `repeat` and `correlation` are
 *        `lru`
 */
[[nodiscard]] std::uint64_t leaving_key(eviction_policy policy,
                                        block_record const& block,
                                        use_tick now,
                                        bool foresees) noexcept;

/** @brief No `leaving_key` of a block in a group is higher. Pure. */
[[nodiscard]] std::uint64_t most_leaving_key(eviction_policy policy,
                                             leaving_bounds const& bounds,
                                             use_tick now,
                                             bool foresees) noexcept;

/**
 * @brief Whether a live block is likely not used, or freed, between `now` and `until`.
 *
 * What is expected is not used before it is. Of what is not, most is freed soon: but not what has
 * lain unused for much longer than it is until then. Where that stayed, columns left in its place
 * that kernels were about to use unannounced.
 */
[[nodiscard]] bool is_likely_unused(block_record const& block,
                                    use_tick now,
                                    use_tick until) noexcept;

/** @brief Whether any of a group is; false only where none is. Pure. */
[[nodiscard]] bool any_likely_unused(leaving_bounds const& bounds,
                                     use_tick now,
                                     use_tick until) noexcept;

/**
 * @brief What the key of a block counts that a full neighbour has memory for.
 *
 * The square of how much dearer the host is, there and back: 1 where both are as dear. The ratio
 * itself would be right if keys told exactly when a block is used next; they are estimates, and on
 * simulated programs more brought more, up to about this.
 * @param rates where one is not known, as measured on an H200: 24 GB/s out and 51 in, 205 each way
 * @return >= 1
 */
[[nodiscard]] std::uint64_t weight_of_kept(link_rates const& rates) noexcept;

/** @brief The predictor that a policy needs; null where it needs none. */
[[nodiscard]] std::unique_ptr<use_predictor> make_predictor(eviction_policy policy);

/**
 * @brief Decides from the score when a predictor is to be believed, with two thresholds.
 *
 * On above `on_above`, off below `off_below`, and unchanged in between or while fewer than
 * `least_seen` uses were seen.
 */
class prediction_switch {
 public:
  static constexpr double on_above          = 0.6;  ///< hit rate
  static constexpr double off_below         = 0.4;  ///< hit rate
  static constexpr std::uint64_t least_seen = 16;   ///< uses

  /** @brief Looks at the score. @return whether it is believed from now on */
  bool update(prediction_score const& score) noexcept
  {
    if (score.seen >= least_seen) {
      auto const rate = score.hit_rate();
      if (!on_ && rate > on_above) { on_ = true; }
      if (on_ && rate < off_below) {
        on_ = false;
        ++switched_off_;
      }
    }
    return on_;
  }
  /** @brief Whether it is believed. */
  [[nodiscard]] bool on() const noexcept { return on_; }
  /** @brief How often it stopped being believed. */
  [[nodiscard]] std::uint64_t switched_off() const noexcept { return switched_off_; }

 private:
  bool on_{false};
  std::uint64_t switched_off_{0};
};

}  // namespace rmm_uvm
