// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/pool_room.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr std::uintptr_t base = std::uintptr_t{64} << 30U;
constexpr std::size_t mib     = std::size_t{1} << 20U;

[[nodiscard]] memory_range at(std::size_t offset_mib, std::size_t mibs)
{
  return {base + offset_mib * mib, mibs * mib};
}

/** @brief A room whose slabs passed the maximum with a slab of 40 blocks, which is empty. */
class PoolRoom : public testing::Test {
 protected:
  PoolRoom()
  {
    room.set_maximum(blocks(32), blocks(35));
    EXPECT_TRUE(room.add_slab({base - blocks(64), blocks(32)}));
    EXPECT_FALSE(room.add_slab(slab));
  }
  [[nodiscard]] std::size_t populated() const { return room.populated_bytes() - blocks(32); }

  static constexpr memory_range slab{base, blocks(40) - 700'160};
  pool_room room;
};

TEST(PoolRoomWithoutMaximum, AdmitsEverySlabAndKeepsWhichThereAre)
{
  pool_room room;
  EXPECT_TRUE(room.admits_slab(blocks(1'000)));
  EXPECT_TRUE(room.add_slab({base, blocks(1'000)}));
  EXPECT_EQ(room.spare_bytes(), pool_room::unlimited);
  EXPECT_EQ(room.slab_bytes(), blocks(1'000));
}

TEST(PoolRoomOfAPool, SlabsPastTheMaximumAreAsLargeAsIsAsked)
{
  pool_room room;
  room.set_maximum(blocks(32), blocks(35));
  EXPECT_TRUE(room.admits_slab(blocks(32)));
  EXPECT_FALSE(room.admits_slab(blocks(33)));
  static_cast<void>(room.add_slab({base, blocks(32)}));
  EXPECT_EQ(room.spare_bytes(), 0U);
  EXPECT_FALSE(room.admits_slab(256));  // of nobody who says that it may pass the maximum
  {
    pool_room::request const asked{blocks(5)};
    EXPECT_TRUE(room.admits_slab(blocks(5)));
    EXPECT_FALSE(room.admits_slab(blocks(6)));
    pool_room::request const asked_little{256};
    EXPECT_TRUE(room.admits_slab(blocks(2)));  // a sixteenth of the maximum
    EXPECT_FALSE(room.admits_slab(blocks(3)));
  }
  room.remove_slab(base);
  EXPECT_EQ(room.spare_bytes(), blocks(32));
  EXPECT_TRUE(room.admits_slab(blocks(32)));
}

TEST(PoolRoomOfAPool, NoSlabIsAdmittedWhereNoneIsWanted)
{
  pool_room const room;
  pool_room::request const none{pool_room::request::no_slab};
  EXPECT_FALSE(room.admits_slab(256));
}

TEST(PoolRoomOfAPool, OnceTrimmedItsSlabsAreNotLargerThanNeeded)
{
  for (bool const limited : {true, false}) {
    pool_room room;
    if (limited) { room.set_maximum(blocks(128), blocks(128)); }
    static_cast<void>(room.add_slab({base, blocks(64)}));
    EXPECT_EQ(room.unasked_bytes(), room.spare_bytes());
    room.remove_slab(base);
    room.note_trimmed(limited ? blocks(512) : blocks(128));
    EXPECT_EQ(room.spare_bytes(), limited ? blocks(128) : pool_room::unlimited);
    EXPECT_EQ(room.unasked_bytes(), 0U);
    EXPECT_TRUE(room.admits_slab(blocks(2)));  // a 64th of the maximum
    EXPECT_FALSE(room.admits_slab(blocks(3)));
    {
      pool_room::request const asked{blocks(20), false};
      EXPECT_TRUE(room.admits_slab(blocks(20)));
      EXPECT_FALSE(room.admits_slab(blocks(21)));
      pool_room::request const much{blocks(200), false};
      EXPECT_EQ(room.admits_slab(blocks(129)), !limited);  // it may not pass the maximum
    }
    static_cast<void>(room.add_slab({base, blocks(20)}));
    EXPECT_TRUE(room.admits_slab(blocks(20)));  // as much as there is
    EXPECT_FALSE(room.admits_slab(blocks(21)));
    EXPECT_EQ(room.unasked_bytes(), 0U);
  }
}

TEST_F(PoolRoom, OnceTheSlabsFitAgainAllTheirBlocksCountAsPopulated)
{
  EXPECT_EQ(room.populated_bytes(), blocks(32));  // the slab past the maximum is empty
  room.remove_slab(base - blocks(64));
  EXPECT_EQ(room.populated_bytes(), 0U);  // 40 blocks are still more than 32
  static_cast<void>(room.add_slab({base + blocks(64), blocks(4)}));
  room.remove_slab(slab.address);
  EXPECT_EQ(room.populated_bytes(), blocks(4));
}

TEST(PoolRoomOfAPool, SlabsOfOthersAreNotThePools)
{
  pool_room room;
  room.set_maximum(blocks(4), blocks(4));
  pool_room::request const other{pool_room::request::beside};
  EXPECT_TRUE(room.admits_slab(blocks(100)));
  EXPECT_TRUE(room.add_slab({base, blocks(8)}));
  room.remove_slab(base);
  EXPECT_EQ(room.slab_bytes(), 0U);
  EXPECT_EQ(room.spare_bytes(), blocks(4));
}

TEST_F(PoolRoom, SlabPastTheMaximumIsEmptyUntilItIsHandedOut)
{
  EXPECT_EQ(populated(), 0U);
  room.populate(at(1, 4));
  EXPECT_EQ(populated(), blocks(3));
  room.populate(at(5, 1));  // in a block that is populated
  EXPECT_EQ(populated(), blocks(3));
}

TEST_F(PoolRoom, BlocksThatWereDiscardedAreEmptyUntilTheyAreHandedOut)
{
  room.populate(at(0, 8));
  auto const dead = room.dead_in(at(1, 6));  // blocks that lie wholly in it
  EXPECT_EQ(dead, (std::vector<memory_range>{at(2, 4)}));
  room.empty(dead);
  EXPECT_EQ(populated(), blocks(2));
  EXPECT_EQ(room.dead_in(at(0, 8)), (std::vector<memory_range>{at(0, 2), at(6, 2)}));
  room.populate(at(3, 2));
  EXPECT_EQ(populated(), blocks(4));
}

TEST_F(PoolRoom, BlockThatTheSlabsEndCutsOffIsDeadAsAWhole)
{
  room.populate({slab.end() - 1'000, 256});
  auto const last = va_block_floor(slab.end());
  memory_range const piece{last - blocks(1), slab.end() - last + blocks(1)};
  auto const dead = room.dead_in(piece);
  EXPECT_EQ(dead, (std::vector<memory_range>{{last, slab.end() - last}}));
  room.empty(dead);
  EXPECT_EQ(populated(), 0U);
}

TEST_F(PoolRoom, EmptyBlocksGoWithTheirSlab)
{
  room.populate(at(0, 8));
  room.remove_slab(base);
  EXPECT_EQ(room.populated_bytes(), blocks(32));
  EXPECT_EQ(room.slab_bytes(), blocks(32));
  EXPECT_FALSE(room.add_slab(slab));
  EXPECT_EQ(populated(), 0U);
}

TEST_F(PoolRoom, FreePiecesLieBetweenWhatIsLive)
{
  auto const first = base - blocks(64);
  EXPECT_EQ(room.free_pieces({{first + 300, 500}, {base, slab.bytes}, {first, 1}}, 256),
            (std::vector<memory_range>{{first + 256, 44}, {first + 1'024, blocks(32) - 1'024}}));
  EXPECT_EQ(room.free_pieces({}, 256).size(), 2U);
}

/** @brief A random program in one slab, and the same looked at block by block. */
class looked_at {
 public:
  looked_at(pool_room& room, memory_range slab, unsigned seed)
    : room_{room}, slab_{slab}, others_{room.populated_bytes()}, random_{seed}
  {
  }

  void step()
  {
    std::vector<memory_range> known{{base - blocks(64), blocks(32)}};
    for (auto const& [address, bytes] : live_) {
      known.push_back({address, bytes});
    }
    auto const pieces = room_.free_pieces(known, 256);
    auto const choice = random_() % 8;
    if (choice >= 4 && choice < 7 && !live_.empty()) {
      live_.erase(std::next(live_.begin(), static_cast<std::ptrdiff_t>(random_() % live_.size())));
    } else if (!pieces.empty() && choice < 4) {
      allocate_in(pieces[random_() % pieces.size()]);
    } else if (!pieces.empty()) {
      discard_in(pieces[random_() % pieces.size()]);
    }
    EXPECT_EQ(room_.populated_bytes() - others_, written_bytes());
  }

 private:
  [[nodiscard]] static std::set<std::uintptr_t> blocks_of(memory_range range)
  {
    std::set<std::uintptr_t> found;
    for (auto block = va_block_floor(range.address); block < range.end(); block += blocks(1)) {
      found.insert(block);
    }
    return found;
  }
  [[nodiscard]] std::size_t written_bytes() const
  {
    std::size_t bytes = 0;
    for (auto const block : written_) {
      bytes += std::min(blocks(1), slab_.end() - block);
    }
    return bytes;
  }
  void allocate_in(memory_range piece)
  {
    auto const offset = random_() % ((piece.bytes + 255) / 256) * 256;
    auto const bytes  = 1 + random_() % std::min<std::size_t>(piece.bytes - offset, 5 * mib);
    memory_range const allocation{piece.address + offset, bytes};
    room_.populate(allocation);
    live_[allocation.address] = bytes;
    written_.merge(blocks_of(allocation));
  }
  void discard_in(memory_range piece)
  {
    auto const dead = room_.dead_in(piece);
    for (auto const& run : dead) {
      for (auto const block : blocks_of(run)) {
        EXPECT_EQ(written_.erase(block), 1U);
        for (auto const& [address, bytes] : live_) {
          EXPECT_EQ(bytes_in_common({block, blocks(1)}, {address, bytes}), 0U);
        }
      }
    }
    room_.empty(dead);
  }

  pool_room& room_;
  memory_range slab_;
  std::size_t others_;
  std::mt19937 random_;
  std::map<std::uintptr_t, std::size_t> live_;
  std::set<std::uintptr_t> written_;  // blocks with contents
};

TEST_F(PoolRoom, RandomProgramsAgreeWithLookingAtEveryBlock)
{
  for (unsigned program = 0; program < 20; ++program) {
    looked_at both{room, slab, program};
    for (int count = 0; count < 300 && !testing::Test::HasFailure(); ++count) {
      both.step();
    }
    room.remove_slab(slab.address);
    EXPECT_FALSE(room.add_slab(slab));
  }
}

}  // namespace
}  // namespace rmm_uvm
