// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Claimants at once: threads of one process, and processes of which each has a place of its own.
#include "../support/board_directory.hpp"

#include <rmm_uvm/ipc/harvest_board.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace rmm_uvm::ipc {
namespace {

constexpr std::size_t block = va_block_bytes;
using tests::plenty;
constexpr int rounds_count = 300;

/** @brief Each claims, finds that no more than the offer is held, and gives back. */
void claim_at_once(bool offered)
{
  tests::board_directory const directory;
  auto const gpu   = tests::device_named(1);
  auto const owner = directory.join();
  if (offered) { ASSERT_TRUE(owner->offer(gpu, 10 * block)); }
  auto const free_bytes = offered ? tests::plenty : 10 * block;
  std::vector<std::shared_ptr<harvest_board>> boards;
  for (int i = 0; i < 4; ++i) {
    boards.emplace_back(directory.join());
    boards.push_back(boards.back());  // two threads share a place
  }
  std::atomic<std::size_t> together{0};  // lags behind the board: raised after, lowered before
  std::atomic<int> wrong{0};
  std::vector<std::thread> claimants;
  for (auto const& each : boards) {
    claimants.emplace_back([&, board = each] {
      for (int i = 0; i < 5 * rounds_count; ++i) {
        auto const granted = board->claim(gpu, 6 * block, free_bytes, 0);
        if (together.fetch_add(granted) + granted > 10 * block) { wrong.fetch_add(1); }
        static_cast<void>(owner->claimed_by_others(gpu));  // of no single moment while it changes
        together.fetch_sub(granted);
        board->cancel(gpu, granted);
      }
    });
  }
  for (auto& each : claimants) {
    each.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(owner->claimed_by_others(gpu), 0U);
}

TEST(HarvestBoardThreads, ClaimsNeverExceedTheOffer) { claim_at_once(true); }

TEST(HarvestBoardThreads, ClaimsWithoutAnOfferNeverExceedWhatIsFree) { claim_at_once(false); }

/** @brief Nobody is granted anything between an owner's wait and its next offer. */
TEST(HarvestBoardThreads, OwnerThatWaitedForItsMemoryHasIt)
{
  tests::board_directory const directory;
  auto const gpu   = tests::device_named(1);
  auto const owner = directory.join();
  std::atomic<bool> owners_alone{false};
  std::atomic<bool> finished{false};
  std::atomic<int> granted_count{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> claimants;
  for (int i = 0; i < 2; ++i) {
    claimants.emplace_back([&] {
      auto const board = directory.join();
      while (!finished.load()) {
        auto const granted = board->claim(gpu, 4 * block, plenty, 0);
        if (granted != 0) {
          granted_count.fetch_add(1);
          if (owners_alone.load()) { wrong.fetch_add(1); }
        }
        board->release(gpu, granted);
      }
    });
  }
  ASSERT_TRUE(owner->offer(gpu, 0));
  for (int i = 0; i < 10 * rounds_count || granted_count.load() == 0; ++i) {
    static_cast<void>(owner->offer(gpu, 10 * block));
    for (int looks = 0; looks < 1 + i % 50; ++looks) {
      static_cast<void>(owner->busy(gpu));
    }
    static_cast<void>(owner->offer(gpu, 0));
    while (owner->claimed_by_others(gpu) != 0) {
      std::this_thread::yield();
    }
    owners_alone.store(true);
    for (int looks = 0; looks < 20; ++looks) {
      static_cast<void>(owner->busy(gpu));
    }
    owners_alone.store(false);
  }
  finished.store(true);
  for (auto& each : claimants) {
    each.join();
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST(HarvestBoardThreads, JoiningLeavingAndLookingDisturbNobody)
{
  tests::board_directory const directory;
  auto const gpu   = tests::device_named(1);
  auto const owner = directory.join();
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  std::atomic<bool> finished{false};
  std::atomic<int> wrong{0};
  std::thread guests{[&] {
    for (int i = 0; i < rounds_count; ++i) {
      auto const guest = directory.join();
      if (guest == nullptr || guest->claim(gpu, 3 * block, plenty, 0) != 3 * block) {
        wrong.fetch_add(1);
      }
    }
    finished.store(true);
  }};
  std::thread owning{[&] {
    while (!finished.load()) {
      static_cast<void>(owner->set_busy(gpu, true));
      static_cast<void>(owner->offer(gpu, 10 * block));
      static_cast<void>(owner->set_busy(gpu, false));
    }
  }};
  while (!finished.load()) {
    auto const view = harvest_board::look(directory.path());
    if (!view.readable.available || view.processes.empty()) { wrong.fetch_add(1); }
    if (owner->claimed_by_others(gpu) > 3 * block) { wrong.fetch_add(1); }
  }
  guests.join();
  owning.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace rmm_uvm::ipc
