// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Allocates, frees and uses at random, and checks contents; how, says what derives. */
class random_allocations {
 public:
  /** @param choices how many a step has: 0 to 3 allocate, 4 to 6 free, and what follows uses */
  random_allocations(std::uint64_t seed, std::uint64_t choices) : choices_{choices}, random_{seed}
  {
  }

  /**
   * @param checked called after each step
   * @return how often contents did not hold
   */
  template <typename Check>
  [[nodiscard]] std::size_t run(int steps, Check const& checked)
  {
    for (int step = 0; step < steps; ++step) {
      auto const choice = random_() % choices_;
      if (choice < 4 || live_.empty()) {
        take_one();
      } else if (choice < 7) {
        free_one();
      } else {
        auto const& one = live_[random_() % live_.size()];
        if (use(one.range, choice)) { lost_ += one.holds() ? 0 : 1; }
      }
      checked();
    }
    while (!live_.empty()) {
      free_one();
    }
    return lost_;
  }

 protected:
  ~random_allocations() = default;

  [[nodiscard]] std::uint64_t any_of(std::uint64_t count) { return random_() % count; }

  [[nodiscard]] virtual std::optional<std::uintptr_t> take(std::size_t bytes) = 0;
  virtual void give(memory_range range)                                       = 0;
  /** @return whether its contents are there to be looked at */
  [[nodiscard]] virtual bool use(memory_range range, std::uint64_t choice) = 0;

 private:
  struct allocation {
    memory_range range;
    unsigned char value{0};

    [[nodiscard]] bool holds() const
    {
      auto const* const found = reinterpret_cast<unsigned char const*>(range.address);
      return found[0] == value && std::memcmp(found, found + 1, range.bytes - 1) == 0;
    }
  };

  void take_one()
  {
    static constexpr std::array<std::size_t, 4> most{512, 8'192, 1U << 19U, 7U << 20U};
    auto const bytes = 1 + random_() % most[random_() % most.size()];
    auto const start = take(bytes);
    if (!start) { return; }
    allocation const made{{*start, bytes}, static_cast<unsigned char>(1 + random_() % 200)};
    std::memset(reinterpret_cast<void*>(*start), made.value, bytes);
    live_.push_back(made);
  }
  void free_one()
  {
    std::swap(live_[random_() % live_.size()], live_.back());
    auto const gone = live_.back();
    live_.pop_back();
    lost_ += gone.holds() ? 0 : 1;
    give(gone.range);
  }

  std::uint64_t choices_;
  std::mt19937_64 random_;
  std::vector<allocation> live_;
  std::size_t lost_{0};
};

}  // namespace rmm_uvm::tests
