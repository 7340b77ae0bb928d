// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Advice from eight threads at once, under a budget; also run by the thread sanitizer.
#include "../support/threads.hpp"
#include "advised_eviction_fixture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

namespace rmm_uvm {
namespace {

using tests::thread_count;

class ConcurrentAdvice : public tests::AdvisedEviction {};

TEST_P(ConcurrentAdvice, LeavesNothingAdvisedThatIsFreed)
{
  constexpr std::size_t each = 2;  // blocks: eight threads share out the slab of 16
  make(true, GetParam());
  std::atomic<int> wrong{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    auto const first = each * index;
    auto const range = at(first, each);
    for (int round = 0; round < 50; ++round) {
      static_cast<void>(residency->on_allocate(range, nullptr, prefetch_mode::automatic));
      auto const advised = residency->advise(range, {true, preferred_place::device});
      if (advised.advised_bytes != range.bytes) { ++wrong; }
      residency->evict(range, nullptr);
      tests::touch(*residency, range, nullptr);
      residency->on_free(range, nullptr);
      if (reads_mostly(first) || reads_mostly(first + 1)) { ++wrong; }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(residency->advised_bytes(), 0U);
  EXPECT_EQ(residency->budget_statistics().value().failed_calls, 0U);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAThreadThatMoves, ConcurrentAdvice, testing::Bool());

}  // namespace
}  // namespace rmm_uvm
