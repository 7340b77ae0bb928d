// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Programs that allocate all they need and write it later, on a device that cannot hold all of it.
#include "random_program.hpp"
#include "residency_manager_fixture.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::first_allocations;
using tests::random_program;
using tests::ResidencyManager;
using tests::small_budget;

/** @brief Another budget of the device, which wants none of it. */
class another_budget final : public budget_sharing {
 public:
  bool tell(budget_share const& /*mine*/) noexcept override { return true; }
  void withdraw() noexcept override {}
  [[nodiscard]] std::size_t others(std::span<budget_share> found) noexcept override
  {
    if (!there) { return 0; }
    found[0] = {};
    return 1;
  }

  bool there{true};
};

/** @brief A slab of 64 blocks on a device of 32, with a budget of 31 that follows others. */
class WaitingMemory : public testing::Test {
 protected:
  static constexpr std::size_t device_blocks = 32;
  static constexpr std::size_t budget_blocks = 31;

  void make(std::size_t budget = budget_blocks, bool follows = true)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(device_blocks);
    device                = std::make_shared<sim::simulated_device>(config);
    residency = std::make_unique<rmm_uvm::managed_residency>(device, make_epoch_source(*device));
    auto settings       = residency_settings::of(blocks(budget));
    settings.background = background;
    settings.fetch      = fetch;
    settings.sharing    = sharing;
    if (follows) { settings.followed_bytes = settings.budget_bytes; }
    residency->start_budget(settings);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    residency->on_slab(slab, nullptr, prefetch_mode::automatic);
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count) const
  {
    return block_range(slab.address, first, count);
  }
  void allocate(memory_range range)
  {
    static_cast<void>(residency->on_allocate(range, nullptr, prefetch_mode::automatic));
  }
  void allocate(std::size_t first, std::size_t count) { allocate(at(first, count)); }
  void write(memory_range range) { ASSERT_TRUE(device->program().touch(range, true).ok()); }
  void write(std::size_t first, std::size_t count) { write(at(first, count)); }
  void announce(std::size_t first, std::size_t count)
  {
    tests::touch(*residency, at(first, count), nullptr);
  }
  [[nodiscard]] sim::simulated_statistics seen() const { return device->view().statistics(); }
  [[nodiscard]] std::size_t resident_bytes() const
  {
    return residency->budget_statistics().value().resident_bytes;
  }

  bool fetch{true};
  bool background{false};
  std::shared_ptr<budget_sharing> sharing;
  std::shared_ptr<sim::simulated_device> device;
  std::unique_ptr<rmm_uvm::managed_residency> residency;
  memory_range slab{0, blocks(64)};
};

TEST_F(WaitingMemory, OfAllThatWasAllocatedBeforeOnlyWhatDoesNotFitLeaves)
{
  make();
  for (std::size_t first = 0; first < 48; first += 8) {
    allocate(first, 8);
  }
  EXPECT_EQ(seen().device_to_host_bytes, 0U);
  for (std::size_t first = 0; first < 48; first += 8) {
    write(first, 8);
  }
  EXPECT_EQ(seen().host_to_device_bytes, 0U);
  EXPECT_EQ(seen().device_to_host_bytes, blocks(48 - device_blocks));
}

TEST_F(WaitingMemory, OfManySmallAllocationsMoveNoMore)
{
  make();
  auto const piece = [this](std::size_t number) {
    return memory_range{slab.address + number * va_block_bytes / 4, va_block_bytes / 4};
  };
  for (std::size_t number = 0; number < 4 * std::size_t{48}; ++number) {
    allocate(piece(number));
  }
  EXPECT_EQ(seen().device_to_host_bytes, 0U);
  for (std::size_t number = 0; number < 4 * std::size_t{48}; ++number) {
    write(piece(number));
  }
  EXPECT_EQ(seen().host_to_device_bytes, 0U);
  EXPECT_EQ(seen().device_to_host_bytes, blocks(48 - device_blocks));
}

TEST_F(WaitingMemory, ComesAheadWhereAllFitsButForAPageOfAThirdOfTheBudget)
{
  make();
  for (std::size_t first = 0; first < 24; first += 8) {
    allocate(first, 8);
    write(first, 8);
  }
  EXPECT_EQ(seen().gpu_faults, 1U);
}

TEST_F(WaitingMemory, IsNoneWhereMemoryIsWrittenAtOnce)
{
  make();
  for (std::size_t first = 0; first < 48; first += 8) {
    allocate(first, 8);
    EXPECT_GE(device->view().resident_bytes(at(first, 8)), blocks(8) - page_bytes);
    write(first, 8);
  }
  EXPECT_EQ(seen().device_to_host_bytes, blocks(48 - budget_blocks));
  EXPECT_LE(seen().gpu_faults, 4U);  // the pages that tell
}

TEST_F(WaitingMemory, IsNoneWhereOneOfTwoAllocationsIsWrittenAtOnce)
{
  make();
  allocate(0, 24);
  write(0, 24);
  allocate(24, 24);
  EXPECT_GE(device->view().resident_bytes(at(24, 24)), blocks(24) - page_bytes);
}

TEST_F(WaitingMemory, IsNoneWhereAllThatIsUnusedFitsByItself)
{
  make();
  allocate(0, 12);
  write(0, 12);
  allocate(12, 12);
  allocate(24, 12);
  EXPECT_EQ(device->view().resident_bytes(at(24, 12)), blocks(12));
}

TEST_F(WaitingMemory, TwinOfTwoAllocationsThatNobodyWroteWaitsOfTheSecond)
{
  make();
  allocate(0, 24);
  allocate(24, 24);
  EXPECT_EQ(device->view().resident_bytes(at(24, 24)), blocks(7));
}

TEST_F(WaitingMemory, IsNoneWhereFaultsAreNotCounted)
{
  make();
  device->answers().plan("request_faults", {status_code::not_supported, 0, "request_faults"}, 0);
  allocate(0, 31);
  allocate(31, 8);
  EXPECT_EQ(device->view().resident_bytes(at(31, 8)), blocks(8) - page_bytes);
}

TEST_F(WaitingMemory, IsNoneOnceAnotherBudgetSharesTheDevice)
{
  auto const joins = std::make_shared<another_budget>();
  joins->there     = false;
  sharing          = joins;
  make();
  allocate(0, 31);
  joins->there = true;
  allocate(31, 8);
  EXPECT_GE(device->view().resident_bytes(at(31, 8)), blocks(8) - page_bytes);
}

TEST_F(WaitingMemory, OfTheLastAllocationIsWhatDoesNotFitOnly)
{
  make();
  allocate(0, 28);
  allocate(28, 8);
  EXPECT_EQ(device->view().resident_bytes(at(28, 8)), blocks(3));
  EXPECT_EQ(resident_bytes(), blocks(budget_blocks));
}

TEST_F(WaitingMemory, TwinOfABudgetThatIsLessThanTheDeviceHasOthersLeave)
{
  make(16);
  allocate(0, 16);
  allocate(16, 8);
  EXPECT_EQ(device->view().resident_bytes(at(16, 8)), blocks(8));
  EXPECT_EQ(seen().device_to_host_bytes, blocks(8));
}

TEST_F(WaitingMemory, TwinOfABudgetOfASizeHasOthersLeave)
{
  make(budget_blocks, false);
  allocate(0, budget_blocks);
  allocate(budget_blocks, 8);
  EXPECT_EQ(seen().device_to_host_bytes, blocks(8));
}

TEST_F(WaitingMemory, TwinOfABudgetThatSharesTheDeviceHasOthersLeave)
{
  sharing = std::make_shared<another_budget>();
  make();
  for (std::size_t first = 0; first < 48; first += 8) {
    allocate(first, 8);
  }
  EXPECT_EQ(device->view().resident_bytes(at(40, 8)), blocks(8));
}

TEST_F(WaitingMemory, TwinOfABudgetThatLeavesAllToFaultsHasOthersLeave)
{
  fetch = false;
  make();
  allocate(0, 31);
  allocate(31, 8);
  EXPECT_EQ(residency->budget_statistics().value().evicted_bytes, blocks(8));
}

TEST_F(WaitingMemory, IsNoneOnceCudfWasSeenToMakeWhatItReturns)
{
  make();
  allocate(0, 31);
  auto const made = at(4, 1);
  residency->on_made({&made, 1});
  allocate(31, 8);
  EXPECT_EQ(device->view().resident_bytes(at(31, 8)), blocks(8));
}

TEST_F(WaitingMemory, IsNoneOnceThePageThatTellsWasFreed)
{
  make();
  allocate(0, 31);
  residency->on_free(at(0, 4), nullptr);
  allocate(31, 8);
  EXPECT_EQ(device->view().resident_bytes(at(31, 8)), blocks(8) - page_bytes);  // the next one
}

TEST_F(WaitingMemory, IsNoneOnceSomethingWasUsed)
{
  make();
  allocate(0, 31);
  announce(4, 1);
  write(0, 31);
  allocate(31, 8);
  EXPECT_EQ(seen().device_to_host_bytes, blocks(8));
  write(31, 8);
  EXPECT_EQ(seen().gpu_faults, 1U);  // on the page that tells
}

TEST_F(WaitingMemory, ThatIsAnnouncedIsOnTheDeviceByItsUse)
{
  make();
  for (std::size_t first = 0; first < 48; first += 8) {
    allocate(first, 8);
  }
  for (std::size_t first = 0; first < 48; first += 8) {
    announce(first, 8);
    write(first, 8);
    ASSERT_LE(resident_bytes(), blocks(budget_blocks));
  }
  EXPECT_EQ(seen().gpu_faults, 0U);
  EXPECT_EQ(seen().host_to_device_bytes, 0U);
  EXPECT_EQ(seen().device_to_host_bytes, blocks(48 - budget_blocks));
}

TEST_F(WaitingMemory, ThatWasAnnouncedDoesNotCountAgainOnceMoreIsWritten)
{
  make();
  allocate(0, 31);
  allocate(31, 8);
  allocate(39, 8);
  announce(31, 8);
  write(39, 8);
  residency->run_pending();
  EXPECT_EQ(device->view().resident_bytes(slab), resident_bytes());
  announce(39, 8);
  EXPECT_EQ(device->view().resident_bytes(slab), resident_bytes());
}

TEST_F(WaitingMemory, ThatWasMadeRoomForCountsFromTheNextRequestOn)
{
  make();
  allocate(0, 31);
  allocate(31, 8);
  write(0, 31);
  EXPECT_EQ(resident_bytes(), blocks(31));
  write(31, 8);  // 7 leave for them
  allocate(39, 1);
  EXPECT_EQ(resident_bytes(), blocks(budget_blocks));
  EXPECT_EQ(seen().device_to_host_bytes, blocks(40 - budget_blocks));
  EXPECT_EQ(device->view().resident_bytes(at(31, 9)), blocks(9));
}

TEST_F(WaitingMemory, ThatTookMoreThanTheReserveCountsAtTheNextLookAndOthersLeaveForIt)
{
  make();
  allocate(0, 31);
  allocate(31, 17);
  write(31, 17);  // one of them into the reserve, and 16 leave for the others
  EXPECT_EQ(device->view().resident_bytes(slab), blocks(device_blocks));
  residency->run_pending();
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  EXPECT_EQ(device->view().resident_bytes(slab), resident_bytes());
  EXPECT_EQ(device->view().resident_bytes(at(31, 17)), blocks(17));
}

TEST_F(WaitingMemory, ThatTookMoreThanTheReserveCountsAtTheNextRequestWhereNoThreadLooks)
{
  make();
  allocate(0, 31);
  allocate(31, 17);
  write(31, 17);
  announce(30, 1);  // which is there
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  EXPECT_EQ(device->view().resident_bytes(slab), resident_bytes());
}

TEST_F(WaitingMemory, ThatTakesTheReserveAndNoMoreHasNobodyLeave)
{
  make();
  allocate(0, 31);
  allocate(31, 17);
  write(31, 1);
  residency->run_pending();
  EXPECT_EQ(seen().device_to_host_bytes, 0U);
  EXPECT_EQ(device->view().resident_bytes(slab), blocks(device_blocks) - page_bytes);
}

TEST_F(WaitingMemory, OfWhichLittleIsWrittenHasLittleLeave)
{
  make();
  allocate(0, 31);
  allocate(31, 16);
  allocate(47, 17);
  write(31, 3);
  residency->run_pending();
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  EXPECT_LE(seen().device_to_host_bytes, blocks(31 + 3 - budget_blocks + 1));
  EXPECT_EQ(device->view().resident_bytes(at(31, 3)), blocks(3));
}

TEST_F(WaitingMemory, OfTemporariesKeepsNothingFromBeingFoundThatComesBackUnannounced)
{
  make();
  for (std::size_t first = 0; first < 16; first += 4) {
    allocate(first, 4);
    write(first, 4);
  }
  for (int round = 0; round < 8; ++round) {
    for (std::size_t first = 16; first < 34; first += 3) {
      allocate(first, 3);
    }
    write(16, 18);
    write(0, 16);
    for (std::size_t first = 16; first < 34; first += 3) {
      residency->on_free(at(first, 3), nullptr);
    }
  }
  EXPECT_GT(residency->budget_statistics().value().found_bytes, 0U);
  EXPECT_LT(seen().host_to_device_bytes, blocks(8 * 16));  // what is kept, in each round
}

TEST_F(WaitingMemory, ThatCameUnseenKeepsTheNextFromWaiting)
{
  make();
  allocate(0, 31);
  allocate(31, 8);
  write(0, 39);
  allocate(39, 8);
  EXPECT_EQ(device->view().resident_bytes(at(39, 8)), blocks(8));
}

TEST_F(WaitingMemory, ThatCameUnseenKeepsTheNextFromWaitingBeforeTheThreadLooks)
{
  background = true;
  make();
  allocate(0, 31);
  allocate(31, 8);
  write(0, 39);
  allocate(39, 8);
  EXPECT_EQ(device->view().resident_bytes(at(39, 8)), blocks(8));
}

TEST_F(WaitingMemory, FaultsAreNotCountedOnceABudgetWasReplaced)
{
  make();
  allocate(0, 31);
  residency->end_budget();
  write(0, 31);
  EXPECT_EQ(seen().gpu_faults, 1U);
  EXPECT_EQ(device->counters().read().gpu_faults, 0U);
}

/** @brief A budget of eight blocks, all of the device, over a driver that records every call. */
class WaitingMemoryCalls : public ResidencyManager {
 protected:
  void make_all_of_device()
  {
    driver->facts.total_bytes = budget;
    followed_bytes            = budget;
    make();
    allocate(0, 8);
    allocate(8, 2);
    static_cast<void>(moves());
  }
};

TEST_F(WaitingMemoryCalls, MemoryThatWaitsHasNoCall)
{
  make_all_of_device();
  allocate(10, 2);
  EXPECT_EQ(moves(), calls{});
}

TEST_F(WaitingMemoryCalls, ThePageThatTellsIsInNoCallAndFaultsAreCountedForIt)
{
  driver->facts.total_bytes = budget;
  followed_bytes            = budget;
  make();
  memory_range const all{at(0, 8).address + va_block_bytes / 2, blocks(8) - va_block_bytes / 2};
  manager->on_allocate(all, stream);
  EXPECT_EQ(driver->counted.fault_requests, 1);
  std::size_t asked_bytes = 0;
  for (auto const& call : driver->take_calls()) {
    for (auto const& range : call.ranges) {
      EXPECT_EQ(bytes_in_common(range, {all.address, page_bytes}), 0U);
      asked_bytes += range.bytes;
    }
  }
  EXPECT_EQ(asked_bytes, blocks(8) - page_bytes);
}

TEST_F(WaitingMemoryCalls, NoMemoryWaitsOnceThePageThatTellsWasBrought)
{
  driver->facts.total_bytes = budget;
  followed_bytes            = budget;
  make();
  allocate(0, 8);
  static_cast<void>(moves());
  manager->prefetch(at(0, 1), stream);
  EXPECT_EQ(moves(), (calls{fetched(0, 1)}));
  allocate(8, 2);
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(2));
}

TEST_F(WaitingMemoryCalls, FaultsAreCountedUntilTheNextLookAfterOneWasSeen)
{
  make_all_of_device();
  EXPECT_EQ(driver->counted.fault_requests, 1);
  ++driver->counted.gpu_faults;
  manager->run_pending();
  EXPECT_EQ(driver->counted.fault_requests, 0);
}

TEST_F(WaitingMemoryCalls, FaultsAreCountedUntilAUseIsAnnounced)
{
  make_all_of_device();
  EXPECT_EQ(driver->counted.fault_requests, 1);
  touch(4, 1);
  EXPECT_EQ(driver->counted.fault_requests, 0);
}

TEST_F(WaitingMemoryCalls, FaultsAreCountedUntilTheBudgetEnds)
{
  make_all_of_device();
  manager.reset();
  EXPECT_EQ(driver->counted.fault_requests, 0);
}

TEST_F(WaitingMemoryCalls, OfAPageThatTellsAndWasDroppedNothingCountsAsWritten)
{
  make_all_of_device();
  free(0, 1);
  allocate(10, 1);  // for which the freed one is dropped
  driver->counted.device_to_host_bytes += blocks(1);
  manager->run_pending();
  EXPECT_EQ(manager->evict(at(0, 1)), 0U);
  EXPECT_EQ(manager->evict(at(8, 2)), blocks(1));
}

TEST_F(WaitingMemoryCalls, APartOfABlockThatWaitsWithOthersWaitsToo)
{
  driver->facts.total_bytes = budget;
  followed_bytes            = budget;
  make();
  allocate(0, 8);
  memory_range const half{at(8).address, va_block_bytes / 2};
  manager->on_allocate(half, stream);
  free(0, 2);
  static_cast<void>(moves());
  manager->on_allocate({half.end(), half.bytes}, stream);
  EXPECT_EQ(moves(), calls{});
}

TEST_F(WaitingMemoryCalls, MemoryThatWaitsAndIsLeftToFaultsByACaptureCountsOnce)
{
  make_all_of_device();
  driver->capture = capture_state::capturing;
  allocate(8, 1);
  driver->capture = capture_state::none;
  driver->counted.device_to_host_bytes += blocks(1);
  manager->run_pending();
  static_cast<void>(manager->evict(at(0, 10)));
  EXPECT_EQ(manager->statistics().resident_bytes, 0U);
}

TEST_F(WaitingMemoryCalls, MemoryThatMayHaveBeenWrittenIsNotDiscardedWhileItsStreamIsBusy)
{
  make_all_of_device();
  free(8, 2);
  free(0, 2);
  driver->marks_passed = false;
  driver->streams_idle = false;
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(driver->take_calls("discard_and_prefetch").size(), 0U);
}

TEST_F(WaitingMemoryCalls, TwinOfMemoryThatIsNewIsMadeThere)
{
  driver->facts.total_bytes = budget;
  make();
  driver->streams_idle = false;
  allocate(0, 8);
  EXPECT_EQ(moves(), (calls{renewed(0, 8)}));
}

TEST_F(WaitingMemoryCalls, PartOfABlockThatWaitsIsBroughtOnceNothingElseLivesInIt)
{
  make_all_of_device();
  memory_range const part{at(8).address, va_block_bytes / 2};
  free(8, 2);
  free(0, 1);
  static_cast<void>(moves());
  manager->on_allocate(part, stream);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(WaitingMemoryCalls, MemoryThatWaitsIsNeededAsAnyThatLives)
{
  make_all_of_device();
  EXPECT_EQ(manager->take_live_blocks(true).now, blocks(10));
  free(8, 2);
  EXPECT_EQ(manager->take_live_blocks(true).now, blocks(8));
}

TEST_F(WaitingMemoryCalls, ALittleMemoryThatWaitsIsBroughtSoThatAllIsConfirmedToBeThere)
{
  budget                    = blocks(128);  // of which a sixty-fourth are two
  slab                      = {tests::slab_address, blocks(256)};
  driver->facts.total_bytes = budget;
  followed_bytes            = budget;
  make();
  allocate(0, 128);
  allocate(128, 3);
  free(0, 8);
  touch(8, 1);
  static_cast<void>(moves());
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_TRUE(moves().empty());
  touch(128, 1);
  static_cast<void>(moves());
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_EQ(moves(), (calls{dropped(1, 2), fetched(129, 2)}));
  EXPECT_TRUE(manager->confirmed_present());
}

TEST_F(WaitingMemoryCalls, MemoryThatWaitsComesAtItsUseThoughAllSlabsFitByThen)
{
  memory_range const other{tests::slab_address + blocks(64), blocks(8)};
  slab                      = {tests::slab_address, blocks(4)};
  driver->facts.total_bytes = budget;
  followed_bytes            = budget;
  make();
  ledger.add_slab(other);
  manager->on_allocate(other, stream);
  allocate(0, 4);
  static_cast<void>(manager->on_slab_free(other));
  static_cast<void>(moves());
  touch(0, 4);
  EXPECT_EQ(moves(), (calls{fetched(0, 4)}));
}

TEST_F(WaitingMemoryCalls, TwinOfADriverThatTellsNotWhatLeavesHasOthersLeave)
{
  driver->counted.state = availability::no("no counters here");
  make_all_of_device();
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(2));
}

class WaitingMemoryContents : public testing::TestWithParam<eviction_policy> {};

TEST_P(WaitingMemoryContents, NoByteIsLostWhereNewMemoryWaits)
{
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    bool const background = seed % 2 == 1;
    small_budget memory{GetParam(), background, small_budget::budget_blocks, true, seed > 1, true};
    first_allocations first{memory};
    EXPECT_LE(first.resident_bytes(), blocks(small_budget::budget_blocks));
    EXPECT_EQ(memory.device->view().statistics().device_to_host_bytes, 0U);
    random_program program{memory, seed};
    std::size_t step = 0;
    EXPECT_EQ(program.run(800,
                          [&] {
                            memory.manager->run_pending();
                            if (++step % 16 == 0) { first.use(step / 16); }
                          }),
              0U);
    EXPECT_EQ(first.end(), 0U);
    EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         WaitingMemoryContents,
                         testing::Values(eviction_policy::fifo,
                                         eviction_policy::lru,
                                         eviction_policy::repeat,
                                         eviction_policy::correlation),
                         [](auto const& each) { return std::string{to_string(each.param)}; });

}  // namespace
}  // namespace rmm_uvm
