// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is found by bounds of groups is what a look at every block finds, over random changes; and
// few blocks are looked at. A twin whose changes are not told finds something else.
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/budget/leaving_order.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/leaving_search.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::slab_address;

using key_of_block = std::pair<std::uint64_t, std::uintptr_t>;

constexpr std::size_t apart = std::size_t{1} << 36U;  // from slab to slab

/** @brief A ledger in which blocks come, go, are used, freed and handed out at random. */
class RandomLedger {
 public:
  /** @param tells whether what may make a block leave earlier is told */
  explicit RandomLedger(std::uint64_t seed, bool tells = true) : tells_{tells}, random_{seed}
  {
    add_slab(5000);
    for (int small = 0; small < 100; ++small) {
      add_slab(1 + random_() % 7);
    }
  }

  void change_some()
  {
    ledger_view view{ledger};
    for (int each = 0; each < 40; ++each) {
      now += static_cast<use_tick>(random_() % 3);
      auto const choice = random_() % 8;
      auto const next   = any_expectation();
      auto const change = [&](block_record& block, memory_range) {
        change_one(block, choice, next);
      };
      if (tells_) {
        view.change(any_range(), now, change);
      } else {
        view.each(any_range(), change);
      }
    }
  }
  void change_slabs()
  {
    auto const gone = random_() % slabs_.size();
    ledger.remove_slab(slabs_[gone].address);
    slabs_.erase(slabs_.begin() + static_cast<std::ptrdiff_t>(gone));
    add_slab(1 + random_() % 300);
  }

  residency_ledger ledger;
  use_tick now{1};

 private:
  void add_slab(std::size_t count)
  {
    // Some are cut off at their ends, and numbers of those that went are given anew.
    slabs_.push_back({slab_address + apart * made_++ + 4096, blocks(count) - 8192});
    ledger.add_slab(slabs_.back());
  }
  [[nodiscard]] memory_range any_range()
  {
    auto const& slab = slabs_[random_() % 3 == 0 ? random_() % slabs_.size() : 0];
    auto const begin = random_() % slab.bytes;
    return {slab.address + begin, 1 + random_() % std::min(slab.bytes - begin, blocks(20))};
  }
  [[nodiscard]] use_tick any_expectation()
  {
    switch (random_() % 4) {
      case 0: return no_use;
      case 1: return unknown_use;
      default: return now + 1 + static_cast<use_tick>(random_() % 300);
    }
  }
  void change_one(block_record& block, std::uint64_t choice, use_tick next) const
  {
    switch (choice) {
      case 0:
        block.place   = block_place::device;
        block.arrived = now;
        block.chunks  = static_cast<std::uint8_t>(next % 8);
        break;
      case 1: block.place = block_place::host; break;
      case 2:
        block.live_bytes = 0;
        block.freed      = now;
        block.unfenced   = next == no_use;
        block.discarded  = next == unknown_use;
        block.expect(unknown_use);
        break;
      case 3:
        block.live_bytes = 4096;
        block.allocated  = now;
        block.expect(next);
        break;
      case 4: block.pins = block.pins == 0 ? 1 : 0; break;
      default:
        block.touched = now;
        block.expect(next, next % 5 == 0);
        block.only_read = next % 2 == 0;
        break;
    }
  }

  bool tells_;
  std::mt19937_64 random_;
  std::vector<memory_range> slabs_;
  std::size_t made_{0};
};

/** @brief How a policy ranks, and what it knows of groups. */
struct ranking {
  eviction_policy policy;
  bool foresees;
  use_tick now;

  [[nodiscard]] std::optional<std::uint64_t> of(block_record const& block) const
  {
    if (block.dead() || block.pins > 0) { return std::nullopt; }
    return leaving_key(policy, block, now, foresees);
  }
  [[nodiscard]] std::optional<std::uint64_t> of(leaving_bounds const& bounds) const
  {
    return most_leaving_key(policy, bounds, now, foresees);
  }
};

/** @brief The same of what may be dropped. */
struct longest_dead {
  use_tick now;

  [[nodiscard]] std::optional<std::uint64_t> of(block_record const& block) const
  {
    if (!block.dead() || block.unfenced || block.pins > 0) { return std::nullopt; }
    return key(block.freed, std::max(block.allocated, block.touched));
  }
  [[nodiscard]] std::optional<std::uint64_t> of(leaving_bounds const& bounds) const
  {
    if (!bounds.has(leaving_bounds::droppable)) { return std::nullopt; }
    return key(bounds.oldest_free, bounds.oldest_dead);
  }
  [[nodiscard]] std::uint64_t key(std::uint64_t freed, use_tick used) const
  {
    return ((now - freed) << 32U) | (now - used);
  }
};

/** @brief The same of all that a budget has leave, by rules that a group can be passed over by. */
struct any_order {
  any_order(std::mt19937_64& random, use_tick moment) : now{moment}
  {
    auto const ago = [&](use_tick most) {
      return now - std::min(now - 1, static_cast<use_tick>(random() % most));
    };
    for (std::uint64_t stream = 0; stream < random() % 4; ++stream) {
      auto const last = ago(200);
      announced.note(
        reinterpret_cast<stream_handle>(1 + stream), last - std::min(last - 1, ago(60) % 60), last);
    }
    constexpr std::array policies{eviction_policy::fifo,
                                  eviction_policy::lru,
                                  eviction_policy::repeat,
                                  eviction_policy::correlation};
    order.policy = policies.at(random() % policies.size());
    if (order.policy != eviction_policy::fifo) { order.announced_from = announced.earliest(); }
    if (random() % 2 == 0) { order.used_last = ago(300); }
    if (random() % 2 == 0) { order.not_before = now + static_cast<use_tick>(random() % 200); }
    order.foresees         = random() % 3 != 0;
    order.drops            = random() % 3 != 0;
    order.ranks_dead       = order.drops && random() % 2 == 0;
    order.keeps_copies     = random() % 2 == 0;
    order.spares_announced = random() % 2 == 0;
    order.weight_beside    = 1 + random() % 9;
    order.taking           = random() % 2 == 0 ? 0 : 0b0101;
  }
  [[nodiscard]] std::optional<std::uint64_t> of(block_record const& block) const
  {
    if (block.pins > 0 || (order.is_droppable(block) && !order.ranks_dead)) { return std::nullopt; }
    return order.of(block, block.only_read);
  }
  [[nodiscard]] std::optional<std::uint64_t> of(leaving_bounds const& bounds) const
  {
    return order.of(bounds);
  }

  use_tick now;
  last_announced announced;
  leaving_order order{.policy = eviction_policy::lru, .now = now, .announced = announced};
};

template <typename Ranking>
[[nodiscard]] std::vector<key_of_block> by_looking_at_all(residency_ledger& ledger,
                                                          Ranking const& by,
                                                          std::size_t most)
{
  std::vector<key_of_block> found;
  ledger_view view{ledger};
  view.each([&](block_record const& block, memory_range range) {
    if (block.place != block_place::device) { return; }
    if (auto const key = by.of(block)) { found.emplace_back(*key, range.address); }
  });
  std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  found.resize(std::min(found.size(), most));
  return found;
}

template <typename Ranking>
[[nodiscard]] std::vector<key_of_block> by_search(residency_ledger& ledger,
                                                  Ranking const& by,
                                                  std::size_t most,
                                                  std::size_t* looked_at = nullptr)
{
  std::vector<key_of_block> found;
  ledger_view view{ledger};
  leaving_search search{view, by.now};
  search.renew([](block_record const&, memory_range) {});
  search.highest_first([&](leaving_bounds const& bounds) { return by.of(bounds); },
                       [&](block_record const& block, memory_range) {
                         if (looked_at != nullptr) { ++*looked_at; }
                         return by.of(block);
                       },
                       [&](viewed_block const& next) {
                         found.emplace_back(by.of(*next.record).value(), next.range.address);
                         return found.size() < most;
                       });
  return found;
}

/** @brief How often the search found something else, over many changes. */
[[nodiscard]] int differences(RandomLedger& random)
{
  int different      = 0;
  auto const compare = [&](auto const& by, std::size_t most) {
    bool const same =
      by_search(random.ledger, by, most) == by_looking_at_all(random.ledger, by, most);
    different += same ? 0 : 1;
  };
  for (int round = 0; round < 150; ++round) {
    random.change_some();
    if (round % 10 == 9) { random.change_slabs(); }
    auto const most = static_cast<std::size_t>(1 + round % 50);
    compare(longest_dead{random.now}, most);
    for (auto const policy : {eviction_policy::fifo,
                              eviction_policy::lru,
                              eviction_policy::repeat,
                              eviction_policy::correlation}) {
      compare(ranking{policy, round % 3 != 0, random.now}, most);
    }
  }
  return different;
}

TEST(LeavingSearch, FindsWhatALookAtEveryBlockFinds)
{
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    RandomLedger random{seed};
    EXPECT_EQ(differences(random), 0) << "seed " << seed;
  }
}

/** @brief How many orders of leaving are not those of a look at every block, over many changes. */
[[nodiscard]] int other_orders(RandomLedger& random)
{
  std::mt19937_64 orders{1};
  int others = 0;
  for (int round = 0; round < 200; ++round) {
    random.change_some();
    if (round % 10 == 9) { random.change_slabs(); }
    for (int each = 0; each < 8; ++each) {
      any_order const by{orders, random.now};
      auto const most = static_cast<std::size_t>(1 + orders() % 60);
      bool const same =
        by_search(random.ledger, by, most) == by_looking_at_all(random.ledger, by, most);
      others += same ? 0 : 1;
    }
  }
  return others;
}

TEST(LeavingSearch, FindsInWhichOrderAllLeave)
{
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    RandomLedger random{seed};
    EXPECT_EQ(other_orders(random), 0) << "seed " << seed;
  }
}

TEST(LeavingSearch, FindsAnotherOrderWhereChangesAreNotTold)
{
  RandomLedger random{1, false};
  EXPECT_GT(other_orders(random), 0);
}

TEST(LeavingSearch, FindsSomethingElseWhereChangesAreNotTold)
{
  RandomLedger random{1, false};
  EXPECT_GT(differences(random), 0);
}

/** @brief Blocks looked at by a second search, where so many of the longest unused are pinned. */
[[nodiscard]] std::size_t looked_at_beside_pinned(std::size_t pinned)
{
  constexpr std::size_t count = 100'000;
  residency_ledger ledger;
  ledger.add_slab(block_range(slab_address, 0, count));
  use_tick now = 0;
  {
    ledger_view view{ledger};
    for (std::size_t each = 0; each < count; ++each) {
      view.change(
        block_range(slab_address, each, 1), ++now, [&](block_record& block, memory_range) {
          block.place      = block_place::device;
          block.live_bytes = va_block_bytes;
          block.touched    = now;
          block.pins       = each < pinned ? 1 : 0;
        });
    }
  }
  ranking const by{eviction_policy::lru, false, now};
  std::size_t looked_at = 0;
  static_cast<void>(by_search(ledger, by, 1, &looked_at));
  looked_at        = 0;
  auto const found = by_search(ledger, by, 32, &looked_at);
  EXPECT_EQ(found, by_looking_at_all(ledger, by, 32));
  return looked_at;
}

TEST(LeavingSearch, LooksAtFewBlocksHoweverManyThereAre)
{
  EXPECT_LE(looked_at_beside_pinned(0), 2 * bounds_tree::fan_out);
}

TEST(LeavingSearch, LooksAtFewBlocksHoweverManyArePinned)
{
  EXPECT_LE(looked_at_beside_pinned(90'000), 2 * bounds_tree::fan_out);
}

/** @brief Bounds of groups and slabs that a second search compares, of slabs of one block. */
[[nodiscard]] std::size_t compared_bounds(std::size_t slabs)
{
  residency_ledger ledger;
  use_tick now = 0;
  for (std::size_t each = 0; each < slabs; ++each) {
    auto const slab = block_range(slab_address, each, 1);
    ledger.add_slab(slab);
    ledger_view view{ledger};
    view.change(slab, ++now, [&](block_record& block, memory_range) {
      block.place      = block_place::device;
      block.live_bytes = va_block_bytes;
      block.touched    = now;
    });
  }
  std::size_t compared = 0;
  for (int turn = 0; turn < 2; ++turn) {
    compared = 0;
    ledger_view view{ledger};
    leaving_search search{view, now};
    search.renew([](block_record&, memory_range) {});
    search.highest_first(
      [&](leaving_bounds const& bounds) {
        ++compared;
        return std::optional<std::uint64_t>{now - bounds.oldest_use};
      },
      [&](block_record const& block, memory_range) {
        return std::optional<std::uint64_t>{now - block.touched};
      },
      [](viewed_block const&) { return false; });
  }
  return compared;
}

TEST(LeavingSearch, ComparesFewSlabsHoweverManyThereAre)
{
  EXPECT_LE(compared_bounds(16), 20U);
  EXPECT_LE(compared_bounds(256), 2 * compared_bounds(16));
}

TEST(LeavingSearch, PassesOverNoGroupWithABlockThatIsLikelyUnused)
{
  std::mt19937_64 random{1};
  int passed_over = 0;
  for (int round = 0; round < 20'000; ++round) {
    use_tick const now = 100 + static_cast<use_tick>(random() % 100);
    auto const until   = now + static_cast<use_tick>(random() % 40);
    leaving_bounds bounds;
    bool any = false;
    for (int each = 0; each < 3; ++each) {
      block_record block;
      block.place   = block_place::device;
      block.touched = now - static_cast<use_tick>(random() % 100);
      auto const in = static_cast<use_tick>(random() % 40);
      block.expect(random() % 4 == 0 ? unknown_use : now + in, random() % 2 == 0);
      bounds.include(block, now);
      any = any || is_likely_unused(block, now, until);
    }
    EXPECT_TRUE(!any || any_likely_unused(bounds, now, until));
    passed_over += any_likely_unused(bounds, now, until) ? 0 : 1;
  }
  EXPECT_GT(passed_over, 1000);
}

TEST(LeavingSearch, LooksAgainAtWhatDidNotComeWhenItWasExpected)
{
  residency_ledger ledger;
  ledger.add_slab(block_range(slab_address, 0, 200));
  ledger_view view{ledger};
  auto const expect_at = [&view](std::size_t number, use_tick next) {
    view.change(block_range(slab_address, number, 1), 1, [next](block_record& block, memory_range) {
      block.place = block_place::device;
      block.expect(next);
    });
  };
  expect_at(3, 10);
  expect_at(150, 20);
  auto const looked_at = [&view](use_tick now) {
    std::vector<std::uintptr_t> addresses;
    leaving_search{view, now}.renew(
      [&](block_record const&, memory_range range) { addresses.push_back(range.address); });
    return addresses;
  };
  static_cast<void>(looked_at(1));  // all that was there when the first search was made
  EXPECT_TRUE(looked_at(9).empty());
  EXPECT_EQ(looked_at(11), (std::vector{block_range(slab_address, 3, 1).address}));
  EXPECT_TRUE(looked_at(12).empty());
  EXPECT_EQ(looked_at(20), (std::vector{block_range(slab_address, 150, 1).address}));
}

}  // namespace
}  // namespace rmm_uvm
