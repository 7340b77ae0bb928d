// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Slabs at adjacent addresses: CUDA refuses a call that reaches from one allocation into another.
#include "residency_manager_fixture.hpp"

#include <array>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

/** @brief Blocks 0 to 3 are one slab, the others another one. */
class TouchingSlabs : public ResidencyManager {
 protected:
  void make_two()
  {
    slab = {tests::slab_address, blocks(4)};
    make();
    ledger.add_slab({slab.end(), blocks(28)});
  }
  /** @brief Two neighbouring blocks, each of an allocation of its own. */
  void allocate_pair(std::size_t first)
  {
    allocate(first, 1);
    allocate(first + 1, 1);
  }
  void touch_pair(std::size_t first)
  {
    std::array const uses{use_event{use_kind::touch, at(first), at(first).address},
                          use_event{use_kind::touch, at(first + 1), at(first + 1).address}};
    manager->on_touch(uses, stream);
  }
  [[nodiscard]] calls moves_of_room_for(std::size_t first, std::size_t count)
  {
    static_cast<void>(moves());
    allocate(first, count);
    auto found = moves();
    found.pop_back();  // what was allocated
    return found;
  }
};

TEST_F(TouchingSlabs, DiscardNamesTheBlocksOfEachSlabApart)
{
  make_two();
  allocate_pair(3);
  free(3, 1);
  free(4, 1);
  EXPECT_EQ(moves_of_room_for(8, 8), (calls{{"discard", {at(3), at(4)}, discards}}));
}

TEST_F(TouchingSlabs, DiscardJoinsBlocksOfOneSlab)
{
  make_two();
  allocate_pair(5);
  free(5, 1);
  free(6, 1);
  EXPECT_EQ(moves_of_room_for(8, 8), (calls{dropped(5, 2)}));
}

TEST_F(TouchingSlabs, EvictionIsACallForEachSlab)
{
  make_two();
  allocate_pair(3);
  EXPECT_EQ(moves_of_room_for(8, 8), (calls{to_host(3, 1), to_host(4, 1)}));
}

TEST_F(TouchingSlabs, EvictionJoinsBlocksOfOneSlab)
{
  make_two();
  allocate_pair(5);
  EXPECT_EQ(moves_of_room_for(8, 8), (calls{to_host(5, 2)}));
}

TEST_F(TouchingSlabs, FetchIsACallForEachSlab)
{
  make_two();
  allocate_pair(3);
  static_cast<void>(moves_of_room_for(8, 8));
  free(8, 8);
  static_cast<void>(moves());
  touch_pair(3);
  EXPECT_EQ(moves(), (calls{dropped(8, 2), fetched(3, 1), fetched(4, 1)}));
}

TEST_F(TouchingSlabs, FetchJoinsBlocksOfOneSlab)
{
  make_two();
  allocate_pair(5);
  static_cast<void>(moves_of_room_for(8, 8));
  free(8, 8);
  static_cast<void>(moves());
  touch_pair(5);
  EXPECT_EQ(moves(), (calls{dropped(8, 2), fetched(5, 2)}));
}

TEST_F(TouchingSlabs, SlabThatGoesLeavesWhatIsKnownOfItsNeighbour)
{
  make_two();
  allocate_pair(3);
  manager->on_slab_free(slab);
  ledger.remove_slab(slab.address);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(1));
  EXPECT_EQ(moves_of_room_for(8, 8), (calls{to_host(4, 1)}));
}

}  // namespace
}  // namespace rmm_uvm
