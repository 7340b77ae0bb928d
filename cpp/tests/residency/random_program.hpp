// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/touching.hpp"
#include "random_allocations.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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
                        bool fetch           = true,
                        bool rank_dead       = false,
                        bool follows         = false)
    : device{std::make_shared<sim::simulated_device>(configuration(capacity))}
  {
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    ledger.add_slab(slab);
    pool               = std::make_unique<first_fit>(slab);
    auto settings      = residency_settings::of(blocks(budget_blocks));
    settings.policy    = policy;
    settings.fetch     = fetch;
    settings.rank_dead = rank_dead;
    if (follows) { settings.followed_bytes = settings.budget_bytes; }
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
class random_program final : public random_allocations {
 public:
  random_program(small_budget& memory, std::uint64_t seed)
    : random_allocations{seed, 12}, memory_{memory}
  {
  }

 private:
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes) override
  {
    auto const address = memory_.pool->take(bytes);
    if (!address) { return address; }
    memory_.manager->on_allocate({*address, bytes}, nullptr);
    static_cast<void>(memory_.device->program().touch({*address, bytes}, true));
    return address;
  }
  void give(memory_range range) override
  {
    memory_.manager->on_free(range, nullptr);
    memory_.pool->give(range.address, range.bytes);
  }
  [[nodiscard]] bool use(memory_range range, std::uint64_t choice) override
  {
    auto& manager = *memory_.manager;
    switch (choice) {
      case 7: static_cast<void>(manager.evict(range)); return false;
      case 8: manager.prefetch(range, nullptr); return false;
      case 9:
        manager.pin(range);
        static_cast<void>(manager.evict(range));
        manager.unpin(range);
        return false;
      default:
        touch(manager, range, nullptr);
        static_cast<void>(memory_.device->program().touch(range, true));
        return true;
    }
  }

  small_budget& memory_;
};

/** @brief Memory of a program that allocates it first and uses it later, so that most of it waits.
 */
class first_allocations {
 public:
  explicit first_allocations(small_budget& memory) : memory_{memory}
  {
    for (unsigned char number = 0; number < count; ++number) {
      memory_range const one{*memory.pool->take(blocks(3)), blocks(3)};
      memory.manager->on_allocate(one, nullptr);
      std::memset(reinterpret_cast<void*>(one.address), number + 1, one.bytes);
      ranges_.push_back(one);
    }
  }
  /** @brief Of the device, as the model has it. */
  [[nodiscard]] std::size_t resident_bytes() const
  {
    std::size_t bytes = 0;
    for (auto const& one : ranges_) {
      bytes += memory_.device->view().resident_bytes(one);
    }
    return bytes;
  }
  /** @brief Uses one of them, and announces every other use. */
  void use(std::size_t number)
  {
    auto const& one = ranges_.at(number / 2 % count);
    if (number % 2 == 0) { touch(*memory_.manager, one, nullptr); }
    static_cast<void>(memory_.device->program().touch(one, true));
  }
  /** @brief Frees all. @return of how many the contents did not hold */
  [[nodiscard]] std::size_t end()
  {
    std::size_t lost     = 0;
    unsigned char number = 0;
    for (auto const& one : ranges_) {
      auto const* const found = reinterpret_cast<unsigned char const*>(one.address);
      ++number;
      bool const holds = found[0] == number && std::memcmp(found, found + 1, one.bytes - 1) == 0;
      lost += holds ? 0 : 1;
      memory_.manager->on_free(one, nullptr);
      memory_.pool->give(one.address, one.bytes);
    }
    return lost;
  }

 private:
  static constexpr unsigned char count = 5;

  small_budget& memory_;
  std::vector<memory_range> ranges_;
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
