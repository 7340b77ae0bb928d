// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Threads that fork while others come and go.
#include "../support/forked.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/process/forks.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace rmm_uvm {
namespace {

using namespace std::chrono_literals;
using tests::in_child;

/** @brief Has a lock that a thread takes again and again, and that a fork holds. */
class locking final : fork_participant {
 public:
  explicit locking(fork_turn turn) noexcept : forks_{turn, *this} {}
  std::mutex lock;

 private:
  void before_fork(std::chrono::steady_clock::time_point /*end*/) noexcept override { lock.lock(); }
  void after_fork_in_parent() noexcept override { lock.unlock(); }
  void after_fork_in_child() noexcept override { lock.unlock(); }
  fork_participation forks_;
};

TEST(ConcurrentForks, ChildFindsNoLockTakenWhoeverForksAndWhoeverComesAndGoes)
{
  locking first{fork_turn::samplers};
  locking last{fork_turn::descriptors};
  std::atomic<bool> well{true};
  tests::on_threads(tests::thread_count, [&](std::size_t index) {
    for (int round = 0; round < tests::rounds_of(100); ++round) {
      if (index < 2) {
        bool const free = in_child([&] {
          bool const both = first.lock.try_lock() && last.lock.try_lock();
          locking const own{fork_turn::gates};  // the lists are open
          return both;
        });
        if (!free) { well = false; }
      } else if (index < 5) {
        locking come{fork_turn::gates};
        std::lock_guard const held{come.lock};
      } else {
        std::lock_guard const held{index == 5 ? first.lock : last.lock};
        std::this_thread::yield();
      }
    }
  });
  EXPECT_TRUE(well);
}

TEST(ConcurrentForks, WhoComesOrGoesWaitsUntilAForkIsOver)
{
  /** @brief Lets a thread try to come and to go while the process forks. */
  struct slow final : fork_participant {
    void before_fork(std::chrono::steady_clock::time_point /*end*/) noexcept override
    {
      forking = true;
      std::this_thread::sleep_for(20ms);
      early = came.load();
    }
    void after_fork_in_parent() noexcept override { forking = false; }
    void after_fork_in_child() noexcept override {}
    std::atomic<bool> forking{false};
    std::atomic<bool> came{false};
    bool early{true};
    fork_participation forks{fork_turn::gates, *this};
  } other;
  std::thread comes{[&] {
    while (!other.forking) {
      std::this_thread::yield();
    }
    locking const late{fork_turn::gates};
    other.came = true;
  }};
  EXPECT_TRUE(in_child([] { return true; }));
  comes.join();
  EXPECT_FALSE(other.early);
}

/** @brief Has threads take a lock while the process forks. @return children that find it taken */
template <typename Call>
[[nodiscard]] int children_without_the_lock()
{
  std::mutex lock;
  std::atomic<bool> ending{false};
  std::atomic<int> taken{0};
  int without = 0;
  tests::on_threads(4, [&](std::size_t index) {
    while (index != 0 && !ending) {
      Call const call;
      Call const within;  // belongs to the one that it is in
      std::lock_guard const held{lock};
      ++taken;
      std::this_thread::sleep_for(100us);
    }
    for (int round = 0; index == 0 && round < 50; ++round) {
      auto const before = taken.load();
      while (taken == before) {
        std::this_thread::yield();
      }
      without += in_child([&] { return lock.try_lock(); }) ? 0 : 1;
    }
    if (index == 0) { ending = true; }
  });
  return without;
}

TEST(ConcurrentForks, ChildFindsNoLockTakenThatAnotherThreadHasWithinACall)
{
  EXPECT_EQ(children_without_the_lock<fork_call>(), 0);
  struct no_call {
    no_call() {}  // NOLINT: so that an object of it counts as used
  };
  EXPECT_GT(children_without_the_lock<no_call>(), 0);
}

TEST(ConcurrentForks, ForkWithinACallDoesNotWaitForItself)
{
  fork_call const call;
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(in_child([] {
    fork_call const within;
    return in_child([] {
      fork_call const its_own;
      return true;
    });
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);  // five for one that never ends
}

TEST(ConcurrentForks, CallThatNeverEndsHoldsAForkUpForSomeSecondsAndTheChildCallsAllTheSame)
{
  std::atomic<bool> ending{false};
  std::atomic<bool> within{false};
  std::thread hangs{[&] {
    fork_call const call;
    within = true;
    while (!ending) {
      std::this_thread::sleep_for(1ms);
    }
  }};
  while (!within) {
    std::this_thread::yield();
  }
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(in_child([] {
    fork_call const call;
    return true;
  }));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 4s);
  fork_call const call;  // the way is open again
  ending = true;
  hangs.join();
}

}  // namespace
}  // namespace rmm_uvm
