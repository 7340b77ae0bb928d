// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Properties, over random programs: no policy loses a byte, the budget holds to the byte, and the
// threads of a program and of the manager never halt one another.
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
#include <thread>
#include <tuple>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr std::size_t slab_blocks   = 24;
constexpr std::size_t budget_blocks = 6;

/** @brief A budget of six blocks over a slab of 24, with real bytes behind it. */
class small_budget {
 public:
  explicit small_budget(eviction_policy policy,
                        bool background      = false,
                        std::size_t capacity = 2 * slab_blocks,
                        bool fetch           = true)
    : device{std::make_shared<sim::simulated_device>(configuration(capacity))}
  {
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    ledger.add_slab(slab);
    pool                = std::make_unique<tests::first_fit>(slab);
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
  std::unique_ptr<tests::first_fit> pool;
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

struct allocation {
  memory_range range;
  unsigned char value{0};
};

[[nodiscard]] bool holds(allocation const& one)
{
  auto const* const bytes = reinterpret_cast<unsigned char const*>(one.range.address);
  return bytes[0] == one.value && std::memcmp(bytes, bytes + 1, one.range.bytes - 1) == 0;
}

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
        tests::touch(manager, one.range, nullptr);
        static_cast<void>(memory_.device->touch(one.range, true));
        lost_ += holds(one) ? 0 : 1;
    }
  }

  small_budget& memory_;
  std::mt19937_64 random_;
  std::vector<allocation> live_;
  std::size_t lost_{0};
};

class ResidencyContents
  : public testing::TestWithParam<std::tuple<eviction_policy, std::size_t /*capacity*/>> {};

TEST_P(ResidencyContents, NoByteIsLostAndTheBudgetHolds)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, false, capacity};
  std::size_t over = 0;
  random_program program{memory, 11};
  auto const lost = program.run(1500, [&] {
    memory.manager->run_pending();
    // Pages on the device, as the device itself counts them.
    if (memory.device->resident_bytes(memory.slab) > blocks(budget_blocks)) { ++over; }
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(over, 0U);
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
  EXPECT_EQ(memory.manager->statistics().over_budget, 0U);
  EXPECT_LE(memory.manager->statistics().peak_resident_bytes, blocks(budget_blocks));
  EXPECT_GT(memory.manager->statistics().dropped_bytes, 0U);
  EXPECT_GT(memory.manager->statistics().evicted_bytes, 0U);
}

TEST_P(ResidencyContents, NoByteIsLostAndTheBudgetHoldsWherePagesComeByFaults)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, false, capacity, false};
  std::size_t over = 0;
  random_program program{memory, 11};
  auto const lost = program.run(1500, [&] {
    if (memory.device->resident_bytes(memory.slab) > blocks(budget_blocks)) { ++over; }
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(over, 0U);
  EXPECT_EQ(memory.manager->statistics().over_budget, 0U);
  EXPECT_LE(memory.manager->statistics().peak_resident_bytes, blocks(budget_blocks));
  EXPECT_EQ(memory.manager->statistics().dropped_bytes, 0U);
  EXPECT_GT(memory.manager->statistics().evicted_bytes, 0U);
}

TEST_P(ResidencyContents, ThreadsWhosePagesComeByFaultsNeitherLoseABytesNorHaltOneAnother)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, true, capacity, false};
  std::vector<std::thread> threads;
  std::vector<std::size_t> lost(4);
  for (std::size_t number = 0; number < lost.size(); ++number) {
    threads.emplace_back([&, number] {
      random_program program{memory, 100 + number};
      lost[number] = program.run(300, [] {});
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  memory.manager->flush();
  EXPECT_EQ(lost, std::vector<std::size_t>(lost.size()));
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
  EXPECT_LE(memory.manager->statistics().resident_bytes, blocks(budget_blocks));
}

TEST_P(ResidencyContents, ThreadsNeitherLoseABytesNorHaltOneAnother)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, true, capacity};
  std::vector<std::thread> threads;
  std::vector<std::size_t> lost(4);
  for (std::size_t number = 0; number < lost.size(); ++number) {
    threads.emplace_back([&, number] {
      random_program program{memory, 100 + number};
      lost[number] = program.run(300, [] {});
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  memory.manager->flush();
  EXPECT_EQ(lost, std::vector<std::size_t>(lost.size()));
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         ResidencyContents,
                         testing::Combine(testing::Values(eviction_policy::fifo,
                                                          eviction_policy::lru,
                                                          eviction_policy::repeat,
                                                          eviction_policy::correlation),
                                          testing::Values(2 * slab_blocks, budget_blocks + 2)),
                         [](auto const& each) {
                           return std::string{to_string(std::get<0>(each.param))} +
                                  (std::get<1>(each.param) > slab_blocks ? "OnALargeDevice"
                                                                         : "OnASmallDevice");
                         });

}  // namespace
}  // namespace rmm_uvm
