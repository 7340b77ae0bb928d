// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/process/own_thread.hpp>

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <thread>

namespace rmm_uvm {
namespace {

/** @brief A crash is reported by the thread that crashes. */
[[nodiscard]] bool is_of_a_crash(int number)
{
  auto const crashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  return std::find(crashes.begin(), crashes.end(), number) != crashes.end();
}

/** @brief Signals that the calling thread blocks, of all that it may block. */
[[nodiscard]] int blocked_here()
{
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  int count = 0;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    count += ::sigismember(&blocked, number) == 1 ? 1 : 0;
  }
  return count;
}

[[nodiscard]] int blocked_by_all()
{
  sigset_t all;
  ::sigfillset(&all);
  int count = 0;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    bool const may = number != SIGKILL && number != SIGSTOP && !is_of_a_crash(number);
    count += may && ::sigismember(&all, number) == 1 ? 1 : 0;
  }
  return count;
}

TEST(OwnThread, BlocksEverySignalButThoseOfACrashAndHasItsName)
{
  int blocked = 0;
  std::array<char, 16> name{};
  own_thread thread{"rmm_uvm test", [&] {
                      blocked = blocked_here();
                      ::pthread_getname_np(::pthread_self(), name.data(), name.size());
                    }};
  EXPECT_TRUE(thread.joinable());
  thread.join();
  EXPECT_FALSE(thread.joinable());
  EXPECT_EQ(blocked, blocked_by_all());
  EXPECT_EQ(std::string{name.data()}, "rmm_uvm test");
}

TEST(OwnThread, OneThatBeginsOtherwiseBlocksNothing)
{
  int blocked = -1;
  std::thread{[&] { blocked = blocked_here(); }}.join();
  EXPECT_EQ(blocked, 0);
}

TEST(OwnThread, WhoBeginsItGetsItsSignalsAsBefore)
{
  auto const before = blocked_here();
  own_thread thread{"rmm_uvm test", [] {}};
  EXPECT_EQ(blocked_here(), before);
  thread.join();
}

}  // namespace
}  // namespace rmm_uvm
