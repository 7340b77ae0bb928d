// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/** @brief A budget of six blocks over a slab of 24, with real bytes behind it. */
class small_budget {
 public:
  static constexpr std::size_t slab_blocks   = 24;
  static constexpr std::size_t budget_blocks = 6;

  explicit small_budget(eviction_policy policy,
                        bool background      = false,
                        std::size_t capacity = 2 * slab_blocks,
                        bool fetch           = true)
    : device{std::make_shared<sim::simulated_device>(configuration(capacity))}
  {
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    ledger.add_slab(slab);
    pool                = std::make_unique<first_fit>(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = policy;
    settings.fetch      = fetch;
    settings.ahead      = fetch;
    settings.background = background;
    manager             = std::make_unique<residency_manager>(device, ledger, settings);
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks) - 4096};  // the last block is cut off
  residency_ledger ledger;
  std::unique_ptr<first_fit> pool;
  std::unique_ptr<residency_manager> manager;

 private:
  [[nodiscard]] static sim::simulated_device_config configuration(std::size_t capacity)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(capacity);
    config.backing        = true;
    return config;
  }
};

/** @brief One thread of a program: allocates, uses, frees and hints at random, and checks. */
class random_program {
 public:
  random_program(small_budget& memory, std::uint64_t seed) : memory_{memory}, random_{seed} {}

  /** @param checked called after each step */
  template <typename Check>
  [[nodiscard]] std::size_t run(int steps, Check const& checked)
  {
    for (int step = 0; step < steps; ++step) {
      auto const choice = random_() % 12;
      if (choice < 4 || live_.empty()) {
        take();
      } else if (choice < 7) {
        free_one();
      } else {
        use(live_[random_() % live_.size()], choice);
      }
      checked();
    }
    while (!live_.empty()) {
      free_one();
    }
    return lost_;
  }

 private:
  struct allocation {
    memory_range range;
    unsigned char value{0};
  };

  [[nodiscard]] static bool holds(allocation const& one)
  {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(one.range.address);
    return bytes[0] == one.value && std::memcmp(bytes, bytes + 1, one.range.bytes - 1) == 0;
  }
  void take()
  {
    static constexpr std::size_t most[] = {256, 4'096, 1 << 19, 7 << 20};  // NOLINT
    auto const bytes                    = 1 + random_() % most[random_() % 4];
    auto const address                  = memory_.pool->take(bytes);
    if (!address) { return; }
    allocation const made{{*address, bytes}, static_cast<unsigned char>(1 + random_() % 200)};
    memory_.manager->on_allocate(made.range, nullptr);
    static_cast<void>(memory_.device->touch(made.range, true));
    std::memset(reinterpret_cast<void*>(*address), made.value, bytes);
    live_.push_back(made);
  }
  void free_one()
  {
    std::swap(live_[random_() % live_.size()], live_.back());
    auto const gone = live_.back();
    live_.pop_back();
    lost_ += holds(gone) ? 0 : 1;
    memory_.manager->on_free(gone.range, nullptr);
    memory_.pool->give(gone.range.address, gone.range.bytes);
  }
  void use(allocation const& one, std::uint64_t choice)
  {
    auto& manager = *memory_.manager;
    switch (choice) {
      case 7: static_cast<void>(manager.evict(one.range)); return;
      case 8: manager.prefetch(one.range, nullptr); return;
      case 9:
        manager.pin(one.range);
        static_cast<void>(manager.evict(one.range));
        manager.unpin(one.range);
        return;
      default:
        touch(manager, one.range, nullptr);
        static_cast<void>(memory_.device->touch(one.range, true));
        lost_ += holds(one) ? 0 : 1;
    }
  }

  small_budget& memory_;
  std::mt19937_64 random_;
  std::vector<allocation> live_;
  std::size_t lost_{0};
};

using policy_and_capacity = std::tuple<eviction_policy, std::size_t /*blocks of the device*/>;

/** @brief Every policy, on a device for the whole slab and on one for little more than the budget.
 */
[[nodiscard]] inline auto policies_and_capacities()
{
  return testing::Combine(
    testing::Values(eviction_policy::fifo,
                    eviction_policy::lru,
                    eviction_policy::repeat,
                    eviction_policy::correlation),
    testing::Values(2 * small_budget::slab_blocks, small_budget::budget_blocks + 2));
}

/** @brief What the tests of one of them are called. */
[[nodiscard]] inline std::string name_of(testing::TestParamInfo<policy_and_capacity> const& each)
{
  auto const [policy, capacity] = each.param;
  return std::string{to_string(policy)} +
         (capacity > small_budget::slab_blocks ? "OnALargeDevice" : "OnASmallDevice");
}

}  // namespace rmm_uvm::tests
