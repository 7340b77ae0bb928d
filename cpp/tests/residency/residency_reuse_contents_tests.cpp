// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Property, over random programs: what a caching allocator hands out within live slabs keeps its
// contents, whatever is handed out, freed and evicted beside it.
#include "../support/blocks.hpp"
#include "../support/caching_allocator.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr std::size_t segment_blocks = 10;
constexpr std::size_t budget_blocks  = 5;

struct allocation {
  std::uintptr_t start{0};
  std::size_t bytes{0};
  unsigned char value{0};

  [[nodiscard]] bool holds() const
  {
    auto const* const found = reinterpret_cast<unsigned char const*>(start);
    return found[0] == value && std::memcmp(found, found + 1, bytes - 1) == 0;
  }
};

/** @brief A program whose allocator takes from segments; a map tells the manager what it can. */
class segment_program {
 public:
  segment_program(eviction_policy policy, bool measures, bool background)
    : measures_{measures}, random_{23}
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(4 * segment_blocks);
    config.backing        = true;
    device                = std::make_shared<sim::simulated_device>(config);
    for (int number = 0; number < 2; ++number) {
      memory_range segment{0, blocks(segment_blocks)};
      static_cast<void>(device->allocate_managed(segment.bytes, segment.address));
      ledger_.add_slab(segment);
      allocator_.add_segment(segment);
      map_.add_free(segment);
    }
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = policy;
    settings.ahead      = true;
    settings.background = background;
    manager             = std::make_unique<residency_manager>(device, ledger_, settings);
  }
  /** @return allocations whose contents did not hold */
  [[nodiscard]] std::size_t run(int steps)
  {
    for (int step = 0; step < steps; ++step) {
      auto const choice = random_() % 10;
      if (choice < 4 || live_.empty()) {
        take();
      } else if (choice < 7) {
        free_one();
      } else {
        use(live_[random_() % live_.size()], choice);
      }
      if (step % 8 == 0 && manager->confirm_present(nullptr)) { ++confirmed; }
      if (!manager->settings().background) { manager->run_pending(); }
    }
    while (!live_.empty()) {
      free_one();
    }
    return lost_;
  }

  std::shared_ptr<sim::simulated_device> device;
  int confirmed{0};  // how often all that lives was found on the device

 private:
  residency_ledger ledger_;

 public:
  std::unique_ptr<residency_manager> manager;

 private:
  void take()
  {
    static constexpr std::array<std::size_t, 4> most{512, 8'192, 1U << 19U, 7U << 20U};
    auto const bytes = 1 + random_() % most[random_() % most.size()];
    auto const start = allocator_.take(bytes);
    if (!start) { return; }
    auto const carved = map_.on_allocate(*start).value();
    if (measures_) { map_.measured(*start, tests::caching_allocator::rounded(bytes)); }
    manager->on_reuse(carved, nullptr);
    allocation const made{*start, bytes, static_cast<unsigned char>(1 + random_() % 200)};
    static_cast<void>(device->touch({made.start, bytes}, true));
    std::memset(reinterpret_cast<void*>(made.start), made.value, bytes);
    live_.push_back(made);
  }
  void free_one()
  {
    std::swap(live_[random_() % live_.size()], live_.back());
    auto const gone = live_.back();
    live_.pop_back();
    lost_ += gone.holds() ? 0 : 1;
    manager->on_free(map_.on_free(gone.start), nullptr, random_() % 32 != 0);
    allocator_.give(gone.start);
  }
  void use(allocation const& one, std::uint64_t choice)
  {
    memory_range const range{one.start, one.bytes};
    if (choice == 7) {
      static_cast<void>(manager->evict(range));
      return;
    }
    tests::touch(*manager, range, nullptr);
    static_cast<void>(device->touch(range, true));
    lost_ += one.holds() ? 0 : 1;
  }

  bool measures_;
  std::mt19937_64 random_;
  tests::caching_allocator allocator_;
  segment_map map_;
  std::vector<allocation> live_;
  std::size_t lost_{0};
};

class ReuseContents
  : public testing::TestWithParam<std::tuple<eviction_policy, bool /*measures*/, bool /*thread*/>> {
};

TEST_P(ReuseContents, NoByteOfANeighbourIsLost)
{
  auto const [policy, measures, thread] = GetParam();
  segment_program program{policy, measures, thread};
  EXPECT_EQ(program.run(1200), 0U);
  program.manager->flush();
  EXPECT_EQ(program.manager->statistics().failed_calls, 0U);
  // How much of what is dead a thread finds is a matter of time.
  if (!thread) { EXPECT_GT(program.manager->statistics().dropped_bytes, 0U); }
  EXPECT_GT(program.manager->statistics().evicted_bytes, 0U);
  EXPECT_GT(program.manager->statistics().unfenced_frees, 0U);
  EXPECT_GT(program.confirmed, 0);
}

INSTANTIATE_TEST_SUITE_P(Programs,
                         ReuseContents,
                         testing::Combine(testing::Values(eviction_policy::lru,
                                                          eviction_policy::repeat),
                                          testing::Bool(),
                                          testing::Bool()),
                         [](auto const& each) {
                           return std::string{to_string(std::get<0>(each.param))} +
                                  (std::get<1>(each.param) ? "Measured" : "BesideWhatIsLikely") +
                                  (std::get<2>(each.param) ? "WithAThread" : "");
                         });

}  // namespace
}  // namespace rmm_uvm
