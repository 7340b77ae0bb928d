// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The twins of every other test under a sanitizer: what it is there for is seen, so that none was.
#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

namespace rmm_uvm {
namespace {

TEST(Sanitizer, SeesMemoryThatNothingPointsTo)
{
  using block = std::array<char, 777>;
  ASSERT_EQ(__lsan_do_recoverable_leak_check(), 0) << "a test before this one leaked";
  std::uintptr_t hidden{};
  // In a thread, whose stack and registers are gone once it has ended.
  std::thread{[&] { hidden = ~reinterpret_cast<std::uintptr_t>(new block{}); }}.join();
  EXPECT_NE(__lsan_do_recoverable_leak_check(), 0);
  std::unique_ptr<block> const found{reinterpret_cast<block*>(~hidden)};
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
}

TEST(SanitizerDeathTest, EndsAtUndefinedBehaviour)
{
  int volatile most{std::numeric_limits<int>::max()};
  EXPECT_DEATH(most = most + 1, "signed integer overflow");
}

}  // namespace
}  // namespace rmm_uvm
#endif

#ifdef __SANITIZE_THREAD__
#include <thread>

namespace rmm_uvm {
namespace {

void write_from_two_threads()
{
  int written{};
  auto const write = [&written] {
    for (int count = 0; count < 1000; ++count) {
      written += count;
    }
  };
  std::thread other{write};
  write();
  other.join();
}

TEST(SanitizerDeathTest, SeesTwoThreadsWriteWithoutOrder)
{
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked process may start no thread under it
  EXPECT_DEATH(write_from_two_threads(), "data race");
}

}  // namespace
}  // namespace rmm_uvm
#endif
