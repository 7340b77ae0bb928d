// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The twin of every other test under the address sanitizer: a leak is seen, so that none was.
#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

#include <array>
#include <cstdint>
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

}  // namespace
}  // namespace rmm_uvm
#endif
