// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the predictors learn from programs that repeat, and from such that do not.
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/correlation_predictor.hpp>
#include <rmm_uvm/residency/postponed_uses.hpp>
#include <rmm_uvm/residency/repeat_predictor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::slab_address;

[[nodiscard]] memory_range at(std::size_t block, std::size_t count = 1)
{
  return {slab_address + blocks(block), blocks(count)};
}

[[nodiscard]] use_event allocation(std::size_t block, std::size_t count = 1)
{
  return {use_kind::allocate, at(block, count), at(block).address};
}

[[nodiscard]] use_event use(std::size_t block, std::size_t count = 1)
{
  return {use_kind::touch, at(block, count), at(block).address};
}

/** @brief One iteration over five allocations, the first kept for good, the last two at `where`. */
template <typename Predictor>
std::vector<use_tick> iterate(Predictor& predictor, std::size_t where = 20)
{
  std::vector<use_tick> found;
  found.reserve(8);
  for (std::size_t base = 0; base < 4; ++base) {
    found.push_back(predictor.observe(use(base * 4, 4)));
  }
  found.push_back(predictor.observe(allocation(where, 3)));
  found.push_back(predictor.observe(use(where, 3)));
  found.push_back(predictor.observe(use(4, 4)));
  found.push_back(predictor.observe(use(where, 3)));
  predictor.forget(at(where).address);
  return found;
}

template <typename Predictor>
void load(Predictor& predictor)
{
  for (std::size_t base = 0; base < 4; ++base) {
    static_cast<void>(predictor.observe(allocation(base * 4, 4)));
  }
}

/** @brief Three allocations, one after the other, of which the first two are freed at the end. */
void rise_and_fall(repeat_predictor& predictor)
{
  for (std::size_t number = 0; number < 3; ++number) {
    auto event       = allocation(40 + number, number + 1);
    event.live_bytes = blocks(10 + 2 * number);
    static_cast<void>(predictor.observe(event));
  }
  auto last       = use(0, 4);
  last.live_bytes = blocks(10);
  static_cast<void>(predictor.observe(last));
}

TEST(RepeatPredictor, GrowthIsToTheHighestLevelThatComesBeforeItFalls)
{
  repeat_predictor predictor;
  static_cast<void>(predictor.observe(allocation(0, 4)));
  EXPECT_EQ(predictor.growth().bytes, 0U);  // nothing is known yet
  for (int turn = 0; turn < 3; ++turn) {
    rise_and_fall(predictor);
  }
  // The step ended at the lowest level: two allocations on it is at its highest.
  EXPECT_EQ(predictor.growth().bytes, blocks(4));
  EXPECT_EQ(predictor.growth().ahead, 3U);
  auto first       = allocation(40, 1);
  first.live_bytes = blocks(10);
  static_cast<void>(predictor.observe(first));
  EXPECT_EQ(predictor.growth().bytes, blocks(4));
  EXPECT_EQ(predictor.growth().ahead, 2U);
  for (std::size_t number = 1; number < 3; ++number) {
    auto event       = allocation(40 + number, number + 1);
    event.live_bytes = blocks(10 + 2 * number);
    static_cast<void>(predictor.observe(event));
  }
  EXPECT_EQ(predictor.growth().bytes, 0U);  // from here on it falls
}

/** @brief Has what a predictor is shown written down instead. */
class writing_down {
 public:
  explicit writing_down(postponed_uses& uses) : uses_{uses} {}
  use_tick observe(use_event const& event)
  {
    uses_.use(event);
    return no_use;
  }
  void forget(std::uintptr_t owner) { uses_.free(owner); }

 private:
  postponed_uses& uses_;
};

TEST(PostponedUses, PredictorThatIsToldLaterForeseesAsOneThatWasThere)
{
  repeat_predictor there;
  repeat_predictor told;
  postponed_uses uses;
  writing_down down{uses};
  load(there);
  load(down);
  for (std::size_t number = 0; number < 3; ++number) {
    iterate(there, 20 + 3 * number);
    iterate(down, 20 + 3 * number);
  }
  uses.tell(told);
  EXPECT_EQ(uses.size(), 0U);
  EXPECT_EQ(told.score().predicted, there.score().predicted);
  EXPECT_EQ(iterate(told), iterate(there));
  EXPECT_NE(iterate(told), std::vector<use_tick>(8, no_use));
}

TEST(PostponedUses, OfALongRunTheLatestAreKeptAndNoMoreThanThat)
{
  constexpr std::size_t most = 64;
  postponed_uses uses{most};
  writing_down down{uses};
  repeat_predictor there;
  load(there);
  for (std::size_t number = 0; number < 40; ++number) {
    iterate(there);
    iterate(down);
    EXPECT_LE(uses.size(), most);
  }
  repeat_predictor told;
  uses.tell(told);
  EXPECT_EQ(iterate(told), iterate(there));
}

TEST(RepeatPredictor, ThirdIterationIsForeseenToTheUse)
{
  repeat_predictor predictor;
  load(predictor);
  iterate(predictor);
  iterate(predictor);
  // Each is used again one iteration later, but the second in this one, and the last is freed at
  // once.
  EXPECT_EQ(iterate(predictor), (std::vector<use_tick>{8, 5, 8, 8, 1, 2, 3, 1}));
  EXPECT_EQ(predictor.score().predicted, 8U);
}

TEST(RepeatPredictor, TurnsOfAnInnerLoopDoNotTellWhatHappensAfterIt)
{
  repeat_predictor predictor;
  load(predictor);
  // Each turn leaves one that lasts, as the turn before did: nobody knows yet how long.
  for (std::size_t turn = 0; turn < 6; ++turn) {
    EXPECT_EQ(predictor.observe(allocation(40 + 4 * turn, 2)), unknown_use) << turn;
    static_cast<void>(predictor.observe(allocation(80, 1)));
    static_cast<void>(predictor.observe(use(80, 1)));
    predictor.forget(at(80, 1).address);
  }
  EXPECT_GT(predictor.score().predicted, 8U);  // what comes next was known all along
}

TEST(RepeatPredictor, IterationAtOtherAddressesIsForeseenToo)
{
  repeat_predictor predictor;
  load(predictor);
  iterate(predictor, 20);
  iterate(predictor, 40);
  EXPECT_EQ(iterate(predictor, 60), (std::vector<use_tick>{8, 5, 8, 8, 1, 2, 3, 1}));
  auto const next = predictor.upcoming(blocks(1000));
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next.front().range, at(0, 4));
  EXPECT_EQ(next.front().ahead, 1U);
}

/** @brief Next use, and end, of an allocation that is freed so many uses of others later. */
[[nodiscard]] std::pair<use_tick, use_tick> foreseen_for_one_that_lasts(std::size_t uses)
{
  repeat_predictor predictor;
  load(predictor);
  std::pair<use_tick, use_tick> found;
  for (int round = 0; round < 5; ++round) {
    found.first  = predictor.observe(allocation(20, 3));
    found.second = predictor.freed_after();
    for (std::size_t use_number = 0; use_number < uses; ++use_number) {
      static_cast<void>(predictor.observe(use(use_number % 4 * 4, 4)));
    }
    predictor.forget(at(20).address);
  }
  return found;
}

TEST(RepeatPredictor, MemoryThatIsFreedSoonIsTakenToBeUsedUntilThen)
{
  EXPECT_EQ(foreseen_for_one_that_lasts(5), (std::pair{use_tick{5}, unknown_use}));
  EXPECT_EQ(foreseen_for_one_that_lasts(32), (std::pair{use_tick{32}, unknown_use}));
}

TEST(RepeatPredictor, OfMemoryThatIsFreedLateItsEndIsKnownAlone)
{
  EXPECT_EQ(foreseen_for_one_that_lasts(33), (std::pair{unknown_use, use_tick{33}}));
}

TEST(RepeatPredictor, GoingRoundEqualPiecesIsForeseenPieceByPiece)
{
  repeat_predictor predictor;
  load(predictor);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t base = 0; base < 4; ++base) {
      EXPECT_EQ(predictor.observe(use(base * 4, 4)), round == 0 ? unknown_use : 4U);
    }
  }
  EXPECT_EQ(predictor.upcoming(blocks(4)).front().range, at(0, 4));
}

/** @brief Goes round equal pieces, each used so often in turn; returns what the last round told. */
std::vector<use_tick> go_round_pieces(repeat_predictor& predictor, std::size_t times, int rounds)
{
  constexpr std::size_t pieces = 6;
  std::vector<use_tick> told;
  for (int round = 0; round < rounds; ++round) {
    told.clear();
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      for (std::size_t time = 0; time < times; ++time) {
        told.push_back(predictor.observe(use(4 * piece, 4)));
        static_cast<void>(predictor.observe(allocation(40, 1)));  // what it makes
        predictor.forget(at(40).address);
      }
    }
  }
  return told;
}

TEST(RepeatPredictor, PieceThatIsUsedSeveralTimesInTurnIsNotTakenForNeededSoonAfterTheLast)
{
  constexpr std::size_t pieces = 6;
  for (std::size_t times = 1; times <= 5; ++times) {
    repeat_predictor predictor;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      static_cast<void>(predictor.observe(allocation(4 * piece, 4)));
    }
    auto const told = go_round_pieces(predictor, times, 5);
    for (std::size_t each = 0; each < told.size(); ++each) {
      bool const last = each % times == times - 1;
      auto const far = 2 * (pieces * times - (times - 1));  // uses until its turn in the next round
      EXPECT_EQ(told[each], last ? far : 2) << each << " of " << times;
    }
  }
}

TEST(RepeatPredictor, AllPiecesOfARoundAreUpcomingThoughTheyLookAlike)
{
  for (std::size_t times = 1; times <= 4; ++times) {
    repeat_predictor predictor;
    for (std::size_t piece = 0; piece < 6; ++piece) {
      static_cast<void>(predictor.observe(allocation(4 * piece, 4)));
    }
    static_cast<void>(go_round_pieces(predictor, times, 4));
    std::vector<memory_range> ranges;
    for (auto const& each : predictor.upcoming(blocks(10'000))) {
      if (ranges.empty() || ranges.back() != each.range) { ranges.push_back(each.range); }
    }
    ASSERT_EQ(ranges.size(), 6U) << times;
    for (std::size_t piece = 0; piece < 6; ++piece) {
      EXPECT_EQ(ranges[piece], at(4 * piece, 4)) << times;
    }
  }
}

TEST(RepeatPredictor, UpcomingIsRightAtOnceWhereAnIterationTurnsOutToBeTwiceAsLong)
{
  // There and back again: the way back looks like the way there, as far as it is known.
  constexpr std::size_t pieces = 60;
  std::vector<std::size_t> order;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    order.push_back(piece);
  }
  for (std::size_t piece = pieces; piece-- > 0;) {
    order.push_back(piece);
  }
  repeat_predictor predictor;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    static_cast<void>(predictor.observe(allocation(4 * piece)));
  }
  std::size_t wrong = 0;
  for (int round = 0; round < 5; ++round) {
    for (std::size_t now = 0; now < order.size(); ++now) {
      static_cast<void>(predictor.observe(use(4 * order[now])));
      for (auto const& each : predictor.upcoming(blocks(8))) {
        auto const then = order[(now + each.ahead) % order.size()];
        wrong += round >= 2 && each.range != at(4 * then) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_FALSE(predictor.upcoming(blocks(8)).empty());
}

/** @brief How many uses were not expected, of the last 256 of 16 rounds over 40 pieces. */
template <typename SizeMade>
[[nodiscard]] std::size_t misses_of_rounds(SizeMade const& size_made)
{
  repeat_predictor predictor;
  for (std::size_t piece = 0; piece < 40; ++piece) {
    static_cast<void>(predictor.observe(allocation(4 * piece, 4)));
  }
  auto const make = [&](std::size_t count) {
    static_cast<void>(predictor.observe(allocation(1000, count)));
    predictor.forget(at(1000).address);
  };
  for (std::size_t round = 0; round < 16; ++round) {
    for (std::size_t piece = 0; piece < 40; ++piece) {
      static_cast<void>(predictor.observe(use(4 * piece, 4)));
      for (std::size_t number = 0; number < 13; ++number) {
        make(number == 6 ? size_made(round) : 1);
      }
    }
  }
  auto const score = predictor.score();
  return score.seen - score.predicted;
}

TEST(RepeatPredictor, RoundsThatTakeTurnsAreForeseenThoughTheirPiecesBeginAlike)
{
  EXPECT_EQ(misses_of_rounds([](std::size_t) { return 5; }), 0U);
  EXPECT_EQ(misses_of_rounds([](std::size_t round) { return 5 + round % 2; }), 0U);
  EXPECT_EQ(misses_of_rounds([](std::size_t round) { return 5 + round % 3 / 2; }), 0U);
  EXPECT_EQ(misses_of_rounds([](std::size_t round) { return 5 + round % 4; }), 0U);
}

TEST(RepeatPredictor, WhereEachRoundIsAnotherFewUsesAreMissed)
{
  // Not one for each of its pieces: the round before does not tell what comes now.
  EXPECT_LE(misses_of_rounds([](std::size_t round) { return 5 + round; }), 3U);
}

TEST(RepeatPredictor, PiecesOfTwoSizesAreForeseenThoughManyPlacesLookAlike)
{
  constexpr std::size_t pieces = 300;
  std::mt19937 random{3};
  std::vector<std::size_t> sizes;
  repeat_predictor predictor;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    sizes.push_back(1 + random() % 2);
    static_cast<void>(predictor.observe(allocation(4 * piece, sizes.back())));
  }
  std::size_t right = 0;
  for (int round = 0; round < 3; ++round) {
    right = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      right += predictor.observe(use(4 * piece, sizes[piece])) == pieces ? 1U : 0U;
    }
  }
  EXPECT_EQ(right, pieces);
  EXPECT_EQ(predictor.score().hit_rate(), 1.0);
}

/**
 * @brief A program of rounds over kept allocations, and others that each round makes anew.
 *
 * Some uses are left out, and some come twice: by chance, so many of them.
 */
class uneven_program {
 public:
  explicit uneven_program(double uneven) : uneven_{uneven}
  {
    for (std::size_t kept = 0; kept < 30; ++kept) {
      sizes_.push_back(1 + kept % 7);
      static_cast<void>(predictor.observe(allocation(kept * 8, sizes_.back())));
    }
  }

  void round()
  {
    std::mt19937 order{11};  // the same in each round
    for (int step = 0; step < 150; ++step) {
      auto const kept  = order() % sizes_.size();
      auto const made  = 1000 + next_++ * 8;  // at other addresses in each round
      auto const count = 1 + order() % 5;
      static_cast<void>(predictor.observe(allocation(made, count)));
      touch(use(kept * 8, sizes_[kept]));
      touch(use(made, count));
      if (order() % 2 == 0) { touch(use(kept * 8, sizes_[kept])); }
      predictor.forget(at(made).address);
    }
  }

  repeat_predictor predictor;

 private:
  void touch(use_event const& event)
  {
    if (chance_(noise_) >= uneven_) { static_cast<void>(predictor.observe(event)); }
    if (chance_(noise_) < uneven_) { static_cast<void>(predictor.observe(event)); }
  }

  double uneven_;
  std::vector<std::size_t> sizes_;
  std::size_t next_{0};
  std::mt19937 noise_{5};
  std::uniform_real_distribution<double> chance_{0, 1};
};

[[nodiscard]] double rate_where_uneven(double uneven)
{
  uneven_program program{uneven};
  for (int round = 0; round < 10; ++round) {
    program.round();
  }
  return program.predictor.score().hit_rate();
}

TEST(RepeatPredictor, UsesThatAreLeftOutOrAddedCostLittleMoreThanThemselves)
{
  EXPECT_EQ(rate_where_uneven(0), 1.0);
  EXPECT_GT(rate_where_uneven(0.01), 0.9);
  EXPECT_GT(rate_where_uneven(0.1), 0.35);
}

TEST(RepeatPredictor, AfterAnAddedUseTheRightAllocationsAreUpcoming)
{
  repeat_predictor predictor;
  load(predictor);
  for (std::size_t round = 0; round < 4; ++round) {
    for (std::size_t piece = 0; piece < 3; ++piece) {
      static_cast<void>(predictor.observe(allocation(100 * round + 20 + 4 * piece, 1 + piece)));
    }
    static_cast<void>(predictor.observe(use(0, 4)));
    if (round == 3) {  // not as before: one use more, twice
      static_cast<void>(predictor.observe(use(12, 4)));
      static_cast<void>(predictor.observe(use(12, 4)));
      static_cast<void>(predictor.observe(use(4, 4)));
      break;
    }
    static_cast<void>(predictor.observe(use(4, 4)));
    for (std::size_t piece = 0; piece < 3; ++piece) {
      static_cast<void>(predictor.observe(use(100 * round + 20 + 4 * piece, 1 + piece)));
    }
    for (std::size_t piece = 0; piece < 3; ++piece) {
      predictor.forget(at(100 * round + 20 + 4 * piece).address);
    }
  }
  std::vector<memory_range> ranges;
  for (auto const& each : predictor.upcoming(blocks(7))) {
    ranges.push_back(each.range);
  }
  EXPECT_EQ(ranges, (std::vector{at(320, 1), at(324, 2), at(328, 3), at(0, 4)}));
}

TEST(RepeatPredictor, PlacesOfALongRunAreBounded)
{
  repeat_predictor predictor{64};  // remembers few uses
  for (std::size_t piece = 0; piece < 6; ++piece) {
    static_cast<void>(predictor.observe(allocation(4 * piece, 4)));
  }
  static_cast<void>(go_round_pieces(predictor, 3, 40));
  auto const told = go_round_pieces(predictor, 3, 1);
  EXPECT_EQ(told[told.size() - 1], 2U * (6 * 3 - 2));
}

TEST(RepeatPredictor, UpcomingIsWhatComesWithoutWhatIsNotMadeYet)
{
  repeat_predictor predictor;
  load(predictor);
  iterate(predictor);
  iterate(predictor);
  static_cast<void>(predictor.observe(use(0, 4)));
  std::vector<memory_range> ranges;
  for (auto const& each : predictor.upcoming(blocks(1000))) {
    ranges.push_back(each.range);
  }
  ASSERT_GE(ranges.size(), 3U);
  EXPECT_EQ(ranges[0], at(4, 4));
  EXPECT_EQ(ranges[1], at(8, 4));
  EXPECT_EQ(ranges[2], at(12, 4));
  // The two uses of what is still to be allocated are left out, and the second one of the first.
  EXPECT_TRUE(ranges.size() == 3 || ranges[3] == at(0, 4));
}

TEST(RepeatPredictor, WhatIsUsedManyTimesInAnIterationComesOnceInOrder)
{
  repeat_predictor predictor;
  static_cast<void>(predictor.observe(allocation(20)));
  static_cast<void>(predictor.observe(allocation(0, 8)));
  for (int round = 0; round < 3; ++round) {
    static_cast<void>(predictor.observe(use(0, 8)));
    for (int time = 0; time < 1000; ++time) {
      static_cast<void>(predictor.observe(use(20)));
    }
  }
  static_cast<void>(predictor.observe(use(0, 8)));
  std::vector<std::pair<memory_range, use_tick>> expected;
  for (auto const& each : predictor.upcoming(blocks(100000))) {
    expected.emplace_back(each.range, each.ahead);
  }
  using found = std::vector<std::pair<memory_range, use_tick>>;
  EXPECT_EQ(expected, (found{{at(20), 1}, {at(0, 8), 1001}}));
  // What is used counts each time: to look no further than that is enough.
  EXPECT_EQ(predictor.upcoming(blocks(1000)).size(), 1U);
}

TEST(RepeatPredictor, UpcomingEndsWhereEnoughBytesAreTogether)
{
  repeat_predictor predictor;
  load(predictor);
  iterate(predictor);
  iterate(predictor);
  EXPECT_EQ(predictor.upcoming(blocks(5)).size(), 2U);
  EXPECT_TRUE(predictor.upcoming(0).empty());
}

TEST(RepeatPredictor, ProgramWithoutRepetitionIsNotForeseen)
{
  repeat_predictor predictor;
  std::mt19937 random{7};
  for (int i = 0; i < 2000; ++i) {
    static_cast<void>(predictor.observe(use(random() % 1000, 1 + random() % 50)));
  }
  EXPECT_LT(predictor.score().hit_rate(), 0.05);
}

TEST(RepeatPredictor, HistoryIsBoundedAndGoesOnForeseeing)
{
  repeat_predictor predictor{32};
  load(predictor);
  for (int i = 0; i < 200; ++i) {
    iterate(predictor);
  }
  EXPECT_GT(predictor.score().hit_rate(), 0.8);
  EXPECT_FALSE(predictor.upcoming(blocks(4)).empty());
}

TEST(CorrelationPredictor, RepetitionIsForeseenAlongTheChain)
{
  correlation_predictor predictor;
  load(predictor);
  for (int i = 0; i < 3; ++i) {
    iterate(predictor);
  }
  auto const next = predictor.upcoming(blocks(8));
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0].range, at(0, 4));
  EXPECT_EQ(next[1].range, at(4, 4));
  EXPECT_EQ(predictor.observe(use(0, 4)), 8U);
}

TEST(CorrelationPredictor, FreedMemoryIsNotExpectedUntilItIsAllocatedAgain)
{
  correlation_predictor predictor;
  load(predictor);
  for (int i = 0; i < 3; ++i) {
    iterate(predictor);
  }
  for (auto const& each : predictor.upcoming(blocks(1000))) {
    EXPECT_NE(each.range.address, at(20).address);
  }
  for (std::size_t base = 0; base < 4; ++base) {
    static_cast<void>(predictor.observe(use(base * 4, 4)));
  }
  static_cast<void>(predictor.observe(allocation(20, 3)));
  auto const next = predictor.upcoming(blocks(1));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].range, at(20, 3));
}

TEST(CorrelationPredictor, MemoryOfAProgramThatNeverRepeatsIsBounded)
{
  correlation_predictor predictor;
  std::size_t most = 0;
  for (std::size_t block = 0; block < 3 * correlation_predictor::most_contexts; ++block) {
    static_cast<void>(predictor.observe(allocation(block, 1)));
    predictor.forget(at(block).address);
    most = std::max(most, predictor.remembered());
  }
  EXPECT_LE(most, correlation_predictor::most_contexts);
  EXPECT_GT(most, correlation_predictor::most_contexts / 2);
}

TEST(CorrelationPredictor, RepetitionIsForeseenAgainOnceItBeganAnew)
{
  correlation_predictor predictor;
  for (std::size_t block = 0; block <= correlation_predictor::most_contexts; ++block) {
    static_cast<void>(predictor.observe(use(block)));
  }
  EXPECT_LT(predictor.remembered(), 8U);
  load(predictor);
  for (int i = 0; i < 3; ++i) {
    iterate(predictor);
  }
  EXPECT_EQ(predictor.upcoming(blocks(8)).size(), 2U);
}

TEST(CorrelationPredictor, ProgramWithoutRepetitionIsNotForeseen)
{
  correlation_predictor predictor;
  std::mt19937 random{7};
  for (int i = 0; i < 2000; ++i) {
    static_cast<void>(predictor.observe(use(random() % 1000, 1 + random() % 50)));
  }
  EXPECT_LT(predictor.score().hit_rate(), 0.05);
}

/** @brief The highest level ahead, by a look at each use of a round that is known. */
[[nodiscard]] expected_growth growth_in(std::vector<std::size_t> const& levels, std::size_t now)
{
  expected_growth highest;
  for (std::size_t ahead = 1; ahead <= levels.size(); ++ahead) {
    auto const then = levels[(now + ahead) % levels.size()];
    if (then < levels[now]) { break; }
    if (then > levels[now] + highest.bytes) {
      highest = {then - levels[now], static_cast<use_tick>(ahead)};
    }
  }
  return highest;
}

TEST(RepeatPredictor, GrowthIsTheHighestLevelOfTheLongestRounds)
{
  std::mt19937_64 random{3};
  for (std::size_t const length : {50U, 300U}) {
    std::vector<std::size_t> levels;
    for (std::size_t each = 0; each < length; ++each) {  // some rise for long, some fall early
      levels.push_back(random() % 50 == 0 ? random() % 2000 : 1000 + each / 2 + random() % 3);
      if (random() % 40 == 0) { levels.back() = random() % 450; }
    }
    repeat_predictor predictor{400};  // so that the oldest are dropped meanwhile
    for (std::size_t round = 0; round < 5; ++round) {
      for (std::size_t now = 0; now < length; ++now) {
        auto event       = use(2000 * now, 1 + now);
        event.live_bytes = levels[now];
        static_cast<void>(predictor.observe(event));
        if (round < 4) { continue; }
        auto const found    = predictor.growth();
        auto const expected = growth_in(levels, now);
        ASSERT_EQ(found.bytes, expected.bytes) << length << " at " << now;
        ASSERT_EQ(found.ahead, expected.ahead) << length << " at " << now;
      }
    }
  }
}

}  // namespace
}  // namespace rmm_uvm
