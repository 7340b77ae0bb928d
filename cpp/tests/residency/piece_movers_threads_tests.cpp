// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Threads that share out a list of pieces: each once, failures told, nobody left behind; also run
// by the thread sanitizer.
#include "../support/blocks.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/residency/piece_movers.hpp>

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <latch>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::slab_address;
using tests::thread_count;  // the caller and seven that help

[[nodiscard]] std::vector<memory_range> pieces_of(std::size_t count)
{
  std::vector<memory_range> found;
  cut(found, {slab_address, blocks(count)}, va_block_bytes);
  return found;
}

TEST(Cut, PiecesEndWithBlocksAndLeaveNothingOut)
{
  memory_range const range{slab_address + 4096, blocks(5)};
  std::vector<memory_range> found;
  cut(found, range, blocks(2));
  std::vector<memory_range> const expected{{range.address, blocks(2) - 4096},
                                           {slab_address + blocks(2), blocks(2)},
                                           {slab_address + blocks(4), blocks(1) + 4096}};
  EXPECT_EQ(found, expected);
}

TEST(Cut, PiecesAreABlockAtLeast)
{
  EXPECT_EQ(pieces_of(3).size(), 3U);
  std::vector<memory_range> found;
  cut(found, {slab_address, blocks(2)}, 1);
  EXPECT_EQ(found.size(), 2U);
}

TEST(PieceMovers, HelpersBlockSignalsAndHaveAName)
{
  piece_movers movers{thread_count - 1};
  std::latch all_at_it{static_cast<std::ptrdiff_t>(thread_count)};
  auto const caller = std::this_thread::get_id();
  std::atomic<std::size_t> right{0};
  auto const result = movers.move_all(pieces_of(thread_count), thread_count, [&](memory_range) {
    all_at_it.arrive_and_wait();
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    bool const ours =
      ::sigismember(&blocked, SIGTERM) == 1 && std::string{name.data()} == "rmm_uvm mover";
    if (ours && std::this_thread::get_id() != caller) { ++right; }
    return status{};
  });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(right, thread_count - 1);
}

TEST(PieceMovers, EachPieceIsMovedOnce)
{
  piece_movers movers{thread_count - 1};
  for (std::size_t count = 0; count < 40; ++count) {
    auto const pieces = pieces_of(count);
    std::mutex mutex;
    std::multiset<std::uintptr_t> moved;
    auto const result = movers.move_all(pieces, thread_count, [&](memory_range piece) {
      std::lock_guard const lock{mutex};
      moved.insert(piece.address);
      return status{};
    });
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(moved.size(), count);
    EXPECT_EQ(std::set<std::uintptr_t>(moved.begin(), moved.end()).size(), count);
  }
}

TEST(PieceMovers, CallerMovesAllPiecesWhereItIsToWorkAlone)
{
  piece_movers movers{thread_count - 1};
  movers.work_alone();
  std::size_t moved = 0;
  auto const caller = std::this_thread::get_id();
  auto const result = movers.move_all(pieces_of(40), thread_count, [&](memory_range) {
    moved += std::this_thread::get_id() == caller ? 1U : 0U;
    return status{};
  });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(moved, 40U);
}

TEST(PieceMovers, AsManyAsAskedForAreAtItTogether)
{
  piece_movers movers{thread_count - 1};
  std::latch together{thread_count};  // one more would come too late, one less waits for ever
  auto const result = movers.move_all(pieces_of(thread_count), thread_count, [&](memory_range) {
    together.arrive_and_wait();
    return status{};
  });
  EXPECT_TRUE(result.ok());
}

TEST(PieceMovers, OneMovesInTheOrderOfTheListInTheCallersThread)
{
  piece_movers movers{thread_count - 1};
  std::vector<std::uintptr_t> order;
  static_cast<void>(
    movers.move_all(pieces_of(8), 1, [&, me = std::this_thread::get_id()](memory_range piece) {
      EXPECT_EQ(std::this_thread::get_id(), me);
      order.push_back(piece.address);
      return status{};
    }));
  EXPECT_EQ(order.size(), 8U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(PieceMovers, AfterAFailureNothingIsBegunAndItIsTold)
{
  piece_movers movers{thread_count - 1};
  std::atomic<std::size_t> begun{0};
  auto const pieces = pieces_of(1000);
  auto const result = movers.move_all(pieces, thread_count, [&](memory_range piece) {
    ++begun;
    return piece.address == slab_address ? status{status_code::driver_error, 31, "move"} : status{};
  });
  EXPECT_EQ(result.native_error, 31);
  auto const after = begun.load();
  std::this_thread::yield();
  EXPECT_EQ(begun.load(), after);
  EXPECT_LE(after, pieces.size());
  begun = 0;
  static_cast<void>(movers.move_all(pieces, 1, [&](memory_range) {
    ++begun;
    return status{status_code::driver_error, 1, "move"};
  }));
  EXPECT_EQ(begun.load(), 1U);
}

TEST(PieceMovers, SeveralCallersShareThem)
{
  piece_movers movers{thread_count - 1};
  std::atomic<std::size_t> moved{0};
  tests::on_threads(thread_count, [&](std::size_t) {
    for (std::size_t turn = 0; turn < 200; ++turn) {
      static_cast<void>(movers.move_all(pieces_of(8), 4, [&](memory_range) {
        ++moved;
        return status{};
      }));
    }
  });
  EXPECT_EQ(moved.load(), thread_count * 200U * 8U);
}

}  // namespace
}  // namespace rmm_uvm
