// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The order of locks: the tests are built so that breaking it ends the process.
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/ledger.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#ifdef RMM_UVM_CHECK_LOCKS

namespace rmm_uvm {
namespace {

class Locks : public testing::Test {
 protected:
  ranked_mutex<lock_rank::room> room;
  ranked_mutex<lock_rank::ledger> ledger;
  ranked_mutex<lock_rank::ledger> another_ledger;
};
using LocksDeathTest = Locks;

TEST_F(Locks, TakenFromTheFirstToTheLastPass)
{
  std::lock_guard const first{room};
  std::lock_guard const second{ledger};
  SUCCEED();
}

TEST_F(Locks, OfOtherThreadsAreNotCounted)
{
  std::lock_guard const here{ledger};
  std::thread{[this] { std::lock_guard const there{room}; }}.join();
  SUCCEED();
}

TEST_F(Locks, ThatWereLetGoOfAreNotCounted)
{
  ledger.lock();
  ledger.unlock();
  std::lock_guard const later{room};
  SUCCEED();
}

TEST_F(Locks, ThatAreOnlyTriedWaitForNobody)
{
  std::lock_guard const held{ledger};
  ASSERT_TRUE(room.try_lock());
  room.unlock();
}

TEST_F(Locks, OfAllGatesAreTakenTogether)
{
  ranked_mutex<lock_rank::thread_gate> one;
  ranked_mutex<lock_rank::thread_gate> other;
  std::lock_guard const first{one};
  std::lock_guard const second{other};
  SUCCEED();
}

TEST_F(LocksDeathTest, TakenInTheOppositeOrderEndTheProcess)
{
  std::lock_guard const held{ledger};
  EXPECT_DEATH(room.lock(), "see lock_rank");
}

TEST_F(LocksDeathTest, OfALedgerThatIsTriedBeforeItIsWaitedForEndsTheProcessToo)
{
  residency_ledger tried;
  ranked_mutex<lock_rank::clock> last;
  std::lock_guard const held{last};
  EXPECT_DEATH(ledger_view{tried}, "see lock_rank");
}

TEST_F(LocksDeathTest, OfOneRankTakenTogetherEndTheProcess)
{
  std::lock_guard const held{ledger};
  EXPECT_DEATH(another_ledger.lock(), "see lock_rank");
}

}  // namespace
}  // namespace rmm_uvm

#endif
