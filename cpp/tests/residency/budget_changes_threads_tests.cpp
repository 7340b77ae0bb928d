// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The same with threads that allocate, use and free while another one starts, changes and ends
// budgets, and slabs come and go; also run by the thread sanitizer.
#include "../support/threads.hpp"
#include "budget_changes_program.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::changing_budget;

constexpr std::size_t program_count = 6;  // and one thread for slabs, and one for budgets

/** @brief Takes a slab, fills, checks and gives it back. @return whether its contents held */
[[nodiscard]] bool slab_holds(changing_budget& memory, unsigned char value)
{
  memory_range slab{0, blocks(3)};
  static_cast<void>(memory.device->allocate_managed(slab.bytes, slab.address));
  memory.residency.on_slab(slab, nullptr, prefetch_mode::automatic);
  memory.residency.on_allocate(slab, nullptr, prefetch_mode::automatic);
  static_cast<void>(memory.device->program().touch(slab, true));
  auto* const bytes = reinterpret_cast<unsigned char*>(slab.address);
  std::memset(bytes, value, slab.bytes);
  tests::touch(memory.residency, slab, nullptr);
  bool const held = bytes[0] == value && std::memcmp(bytes, bytes + 1, slab.bytes - 1) == 0;
  memory.residency.on_free(slab, nullptr);
  memory.residency.on_slab_free(slab.address);
  static_cast<void>(memory.device->free_managed(slab.address));
  return held;
}

class ConcurrentBudgetChanges
  : public testing::TestWithParam<std::tuple<eviction_policy, std::size_t>> {};

TEST_P(ConcurrentBudgetChanges, ThreadsNeitherLoseAByteNorHaltOneAnother)
{
  auto const [policy, capacity] = GetParam();
  changing_budget memory{policy, true, capacity};
  std::atomic<std::size_t> lost{0};
  std::atomic<std::size_t> running{program_count};
  std::atomic<std::size_t> changes{0};
  tests::on_threads(program_count + 2, [&](std::size_t index) {
    if (index < program_count) {
      do {  // until the budget was changed meanwhile, however loaded the machine is
        tests::budget_changes_program program{memory, 100 + index};
        lost += program.run(tests::rounds_of(150), [] {});
      } while (changes <= 3);
      --running;
      return;
    }
    std::mt19937_64 random{index};
    while (running > 0) {
      if (index == program_count) {
        lost += slab_holds(memory, static_cast<unsigned char>(1 + random() % 200)) ? 0 : 1;
      } else {
        memory.change_at_random(random);
        ++changes;
        std::this_thread::sleep_for(std::chrono::microseconds{random() % 2000});
      }
    }
  });
  memory.residency.flush();
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(memory.residency.statistics().failed_calls, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         ConcurrentBudgetChanges,
                         testing::Combine(testing::Values(eviction_policy::lru,
                                                          eviction_policy::repeat),
                                          testing::Values(2 * changing_budget::slab_blocks, 8)));

}  // namespace
}  // namespace rmm_uvm
