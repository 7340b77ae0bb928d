// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_interpreter.hpp"

#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/monitor/line_account.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

thread_local tests::fake_interpreter* mine = nullptr;

std::uintptr_t my_state() noexcept { return mine == nullptr ? 0 : mine->state(); }

bool describe(code_place place, code_line& line)
{
  line.line = static_cast<int>(place.instruction);
  return true;
}

TEST(LineAccountThreads, ThreadsThatAllocateWhileOthersMoveAndAskLoseNothing)
{
  constexpr int workers = 6;
  constexpr int rounds  = 2000;
  tests::fake_interpreter python{true};
  auto const account =
    std::make_shared<line_account>(interpreter{my_state, describe, python.layout().value()});
  observer_slot slot;
  slot.set_account(account);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&slot, &python, worker] {
      mine = worker % 2 == 0 ? nullptr : &python;  // all at the same line, or without Python
      auto const begin = 4096U * (static_cast<std::uintptr_t>(worker) + 1);
      for (int round = 0; round < rounds; ++round) {
        slot.get()->allocated(0, {begin, 4096}, nullptr);
        slot.get()->moved({begin, 4096}, 4096, traffic::evicted);
        slot.get()->freed(0, {begin, 4096}, nullptr);
      }
    });
  }
  std::thread asker{[&] {
    while (!done.load()) {
      static_cast<void>(account->report());
    }
  }};
  for (auto& thread : threads) {
    thread.join();
  }
  done.store(true);
  asker.join();
  auto const told = account->report();
  ASSERT_EQ(told.paths.size(), 2U);
  for (auto const& path : told.paths) {
    EXPECT_EQ(path.allocations, workers / 2 * rounds);
    EXPECT_EQ(path.moved.evicted, std::uint64_t{workers / 2 * rounds} * 4096);
    EXPECT_EQ(path.live_bytes, 0U);
  }
  slot.end_account(account.get());
  account->close();
  EXPECT_EQ(slot.get(), nullptr);
}

}  // namespace
}  // namespace rmm_uvm::monitor
