// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What programs with buffers smaller than a block move, against the same with buffers of whole ones.
#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using sizes = std::vector<std::size_t>;

constexpr std::size_t kib           = 1024;
constexpr std::size_t mib           = 1024 * kib;
constexpr std::size_t budget_blocks = 32;
constexpr std::size_t data_blocks   = 48;
constexpr std::size_t slab_blocks   = 96;

/** @brief A program with a budget of two thirds of its data. */
class small_buffers {
 public:
  explicit small_buffers(bool ahead = false, use_tick clock_end = residency_settings{}.clock_end)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);
    device_               = std::make_shared<sim::simulated_device>(config);
    memory_range slab{0, blocks(slab_blocks)};
    static_cast<void>(device_->allocate_managed(slab.bytes, slab.address));
    ledger_.add_slab(slab);
    pool_               = std::make_unique<tests::first_fit>(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = eviction_policy::repeat;
    settings.ahead      = ahead;
    settings.background = false;
    settings.clock_end  = clock_end;
    manager_            = std::make_unique<residency_manager>(device_, ledger_, settings);
  }
  memory_range take(std::size_t bytes)
  {
    memory_range const range{pool_->take(bytes).value(), bytes};
    manager_->on_allocate(range, nullptr);
    return range;
  }
  void give(memory_range range)
  {
    manager_->on_free(range, nullptr);
    pool_->give(range.address, range.bytes);
  }
  void touch(memory_range range)
  {
    tests::touch(*manager_, range, nullptr);
    manager_->run_pending();
  }
  /** @brief Bytes that were copied, in blocks, either way. */
  [[nodiscard]] double moved() const
  {
    auto const now = device_->view().statistics();
    return static_cast<double>(now.host_to_device_bytes + now.device_to_host_bytes) /
           static_cast<double>(va_block_bytes);
  }
  [[nodiscard]] residency_statistics statistics() const { return manager_->statistics(); }
  [[nodiscard]] memory_range data(std::size_t count) const { return {slab_address(), count}; }

 private:
  [[nodiscard]] std::uintptr_t slab_address() const { return 0; }

  std::shared_ptr<sim::simulated_device> device_;
  residency_ledger ledger_;
  std::unique_ptr<tests::first_fit> pool_;
  std::unique_ptr<residency_manager> manager_;
};

/** @brief Sizes in turn, as many as make up all data. */
[[nodiscard]] sizes in_turn(sizes const& each)
{
  sizes all;
  std::size_t together = 0;
  for (std::size_t one = 0; together + each[one % each.size()] <= blocks(data_blocks); ++one) {
    all.push_back(each[one % each.size()]);
    together += all.back();
  }
  return all;
}

/** @brief Blocks that a round moves once it is known, of `round(program)`. */
template <typename Round>
[[nodiscard]] double steady(small_buffers& program, Round const& round)
{
  constexpr int learnt  = 6;
  constexpr int counted = 6;
  for (int one = 0; one < learnt; ++one) {
    round();
  }
  auto const before = program.moved();
  for (int one = 0; one < counted; ++one) {
    round();
  }
  EXPECT_TRUE(program.statistics().foresees);
  return (program.moved() - before) / counted;
}

/** @brief Rounds over buffers in the order of their addresses. */
[[nodiscard]] double rounds(sizes const& all, bool ahead = false)
{
  small_buffers program{ahead};
  std::vector<memory_range> buffers;
  for (auto const bytes : all) {
    buffers.push_back(program.take(bytes));
  }
  return steady(program, [&] {
    for (auto const& each : buffers) {
      program.touch(each);
    }
  });
}

struct named_sizes {
  char const* name;
  sizes each;
};

class SmallBuffers : public testing::TestWithParam<named_sizes> {};

TEST_P(SmallBuffers, MoveWhatWholeBlocksDo)
{
  auto const whole = rounds(in_turn({blocks(1)}));
  auto const small = rounds(in_turn(GetParam().each));
  RecordProperty("whole", std::to_string(whole));
  RecordProperty("small", std::to_string(small));
  std::printf("%s: whole %.1f small %.1f\n", GetParam().name, whole, small);
  EXPECT_LE(small, 1.15 * whole);
}

TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWithFetchesAhead)
{
  auto const whole = rounds(in_turn({blocks(1)}), true);
  auto const small = rounds(in_turn(GetParam().each), true);
  std::printf("%s: ahead whole %.1f small %.1f\n", GetParam().name, whole, small);
  EXPECT_LE(small, 1.15 * whole);
}

/** @brief Temporary memory beside them, allocated and freed for each use. */
TEST_P(SmallBuffers, MoveWhatWholeBlocksDoBesideTemporaryMemory)
{
  auto const run = [](sizes const& all, std::size_t temporary) {
    small_buffers program;
    std::vector<memory_range> buffers;
    for (auto const bytes : all) {
      buffers.push_back(program.take(bytes));
    }
    return steady(program, [&] {
      for (auto const& each : buffers) {
        program.touch(each);
        auto const result = program.take(temporary);
        program.touch(result);
        program.give(result);
      }
    });
  };
  auto const whole = run(in_turn({blocks(1)}), blocks(1));
  auto const small = run(in_turn(GetParam().each), 1 * mib);
  std::printf("%s: temporary whole %.1f small %.1f\n", GetParam().name, whole, small);
  EXPECT_LE(small, 1.15 * whole);
}

/** @brief A third of them is freed and handed out anew at the same place in each round. */
TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWhereTheyAreHandedOutAnew)
{
  auto const run = [](sizes const& all) {
    small_buffers program;
    std::vector<memory_range> buffers;
    for (auto const bytes : all) {
      buffers.push_back(program.take(bytes));
    }
    return steady(program, [&] {
      for (std::size_t one = 0; one < buffers.size(); ++one) {
        if (one % 3 == 1) {
          program.give(buffers[one]);
          buffers[one] = program.take(buffers[one].bytes);
        }
        program.touch(buffers[one]);
      }
    });
  };
  auto const whole = run(in_turn({blocks(1)}));
  auto const small = run(in_turn(GetParam().each));
  std::printf("%s: anew whole %.1f small %.1f\n", GetParam().name, whole, small);
}

/** @brief All of them are freed, last first, and handed out anew in each round. */
TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWhereARoundMakesItsOwn)
{
  auto const run = [](sizes const& all) {
    small_buffers program;
    return steady(program, [&] {
      std::vector<memory_range> buffers;
      for (auto const bytes : all) {
        buffers.push_back(program.take(bytes));
        program.touch(buffers.back());
      }
      while (!buffers.empty()) {
        program.touch(buffers.back());
        program.give(buffers.back());
        buffers.pop_back();
      }
    });
  };
  auto const whole = run(in_turn({blocks(1)}));
  auto const small = run(in_turn(GetParam().each));
  std::printf("%s: own whole %.1f small %.1f\n", GetParam().name, whole, small);
}

INSTANTIATE_TEST_SUITE_P(
  Sizes,
  SmallBuffers,
  testing::Values(named_sizes{"WholeMixed", {blocks(1), blocks(3), blocks(2)}},named_sizes{"WholeThree", {blocks(3)}},named_sizes{"Wholefour", {blocks(4)}},
  named_sizes{"Of1MiB", {1 * mib}},
                  named_sizes{"Of512KiB", {512 * kib}},
                  named_sizes{"Of256KiB", {256 * kib}},
                  named_sizes{"Of64KiB", {64 * kib}},
                  named_sizes{"Mixed", {256 * kib, 1 * mib, 512 * kib, 3 * mib, 768 * kib}},
                  named_sizes{"AcrossBorders", {1536 * kib}},
                  named_sizes{"AcrossBordersAtOddPlaces", {700 * kib + 256, 1900 * kib + 512}},
                  named_sizes{"LargeAcrossBorders", {5 * mib + 256 * kib}},
                  named_sizes{"ColumnsOfAFrame",
                              {4 * mib, 128 * kib, 4 * mib, 64 * kib, 32 * kib, 256, 2 * mib}}),
  [](auto const& one) { return std::string{one.param.name}; });

}  // namespace
}  // namespace rmm_uvm
