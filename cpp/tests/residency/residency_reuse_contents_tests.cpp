// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Property, over random programs: what a caching allocator hands out within live slabs keeps its
// contents, whatever is handed out, freed and evicted beside it.
#include "../support/blocks.hpp"
#include "../support/caching_allocator.hpp"
#include "../support/touching.hpp"
#include "random_allocations.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr std::size_t segment_blocks = 10;
constexpr std::size_t budget_blocks  = 5;

/** @brief A program whose allocator takes from segments; a map tells the manager what it can. */
class segment_program final : public tests::random_allocations {
 public:
  segment_program(eviction_policy policy, bool measures, bool background)
    : random_allocations{23, 10}, measures_{measures}
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(4 * segment_blocks);
    config.backing        = true;
    device_               = std::make_shared<sim::simulated_device>(config);
    for (int number = 0; number < 2; ++number) {
      memory_range segment{0, blocks(segment_blocks)};
      static_cast<void>(device_->allocate_managed(segment.bytes, segment.address));
      ledger_.add_slab(segment);
      allocator_.add_segment(segment);
      map_.add_free(segment);
    }
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = policy;
    settings.ahead      = true;
    settings.background = background;
    manager             = std::make_unique<residency_manager>(device_, ledger_, settings);
  }

 private:
  std::shared_ptr<sim::simulated_device> device_;
  residency_ledger ledger_;

 public:
  std::unique_ptr<residency_manager> manager;

 private:
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes) override
  {
    auto const start = allocator_.take(bytes);
    if (!start) { return start; }
    auto const carved = map_.on_allocate(*start).value();
    if (measures_) { map_.measured(*start, tests::caching_allocator::rounded(bytes)); }
    manager->on_reuse(carved, nullptr);
    static_cast<void>(device_->program().touch({*start, bytes}, true));
    return start;
  }
  void give(memory_range range) override
  {
    manager->on_free(map_.on_free(range.address), nullptr, any_of(32) != 0);
    allocator_.give(range.address);
  }
  [[nodiscard]] bool use(memory_range range, std::uint64_t choice) override
  {
    if (choice == 7) {
      static_cast<void>(manager->evict(range));
      return false;
    }
    tests::touch(*manager, range, nullptr);
    static_cast<void>(device_->program().touch(range, true));
    return true;
  }

  bool measures_;
  tests::caching_allocator allocator_;
  segment_map map_;
};

class ReuseContents
  : public testing::TestWithParam<std::tuple<eviction_policy, bool /*measures*/, bool /*thread*/>> {
};

TEST_P(ReuseContents, NoByteOfANeighbourIsLost)
{
  auto const [policy, measures, thread] = GetParam();
  segment_program program{policy, measures, thread};
  auto& manager   = *program.manager;
  int steps       = 0;
  int confirmed   = 0;  // how often all that lives was found on the device
  auto const lost = program.run(1200, [&, by_itself = thread] {
    if (steps++ % 8 == 0 && manager.confirm_present(nullptr)) { ++confirmed; }
    if (!by_itself) { manager.run_pending(); }
  });
  EXPECT_EQ(lost, 0U);
  manager.flush();
  EXPECT_EQ(manager.statistics().failed_calls, 0U);
  // How much of what is dead a thread finds is a matter of time.
  if (!thread) { EXPECT_GT(manager.statistics().dropped_bytes, 0U); }
  EXPECT_GT(manager.statistics().evicted_bytes, 0U);
  EXPECT_GT(manager.statistics().unfenced_frees, 0U);
  EXPECT_GT(confirmed, 0);
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
