// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Allocations and frees that a predictor is told of later, once it is asked for anything.
 *
 * While everything fits nothing is foreseen, and writing down is some hundred nanoseconds an
 * allocation cheaper than learning. Of a long run the latest are kept. Not thread-safe.
 */
class postponed_uses {
 public:
  /** @param most that are kept; > 1 */
  explicit postponed_uses(std::size_t most = std::size_t{1} << 16U) : most_{most} {}

  /** @brief Writes down a use. */
  void use(use_event const& event) { enter({event, false}); }
  /** @brief Writes down that an allocation is gone. */
  void free(std::uintptr_t owner) { enter({{use_kind::touch, {}, owner}, true}); }
  /** @brief How many are kept. */
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }

  /** @brief Tells all of them to `predictor` in their order, and keeps none. */
  void tell(use_predictor& predictor)
  {
    auto const told = std::move(kept_);
    kept_.clear();
    for (auto const& each : told) {
      if (each.gone) {
        predictor.forget(each.event.owner);
      } else {
        static_cast<void>(predictor.observe(each.event));
      }
    }
  }

 private:
  struct entry {
    use_event event;
    bool gone{false};
  };

  void enter(entry const& one)
  {
    if (kept_.size() == most_) {
      auto const half = static_cast<std::ptrdiff_t>(most_ / 2);
      kept_.erase(kept_.begin(), kept_.begin() + half);
    }
    kept_.push_back(one);
  }

  std::size_t most_;
  std::vector<entry> kept_;
};

}  // namespace rmm_uvm
