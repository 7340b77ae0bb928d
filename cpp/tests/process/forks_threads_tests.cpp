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

}  // namespace
}  // namespace rmm_uvm
