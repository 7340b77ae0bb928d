// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/forked.hpp"

#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using tests::in_child;

/** @brief Writes down what it hears. */
class listener final : fork_participant {
 public:
  listener(fork_turn turn, std::string name, std::vector<std::string>& heard)
    : name_{std::move(name)}, heard_{heard}, forks_{turn, *this}
  {
  }
  steady_clock::time_point end;

 private:
  void before_fork(steady_clock::time_point until) noexcept override
  {
    end = until;
    heard_.push_back("before " + name_);
  }
  void after_fork_in_parent() noexcept override { heard_.push_back("parent " + name_); }
  void after_fork_in_child() noexcept override { heard_.push_back("child " + name_); }

  std::string name_;
  std::vector<std::string>& heard_;
  fork_participation forks_;
};

class Forks : public testing::Test {
 protected:
  std::vector<std::string> heard;
  // Not in their order: a turn is no matter of who came first.
  listener descriptor{fork_turn::descriptors, "descriptor", heard};
  listener sampler{fork_turn::samplers, "sampler", heard};
  listener gate{fork_turn::gates, "gate", heard};
};

using words = std::vector<std::string>;

TEST_F(Forks, ComeByInTheirOrderAndAreOverInTheOppositeOne)
{
  words const in_a_child{"before sampler",
                         "before gate",
                         "before descriptor",
                         "child descriptor",
                         "child gate",
                         "child sampler"};
  EXPECT_TRUE(in_child([&] { return heard == in_a_child; }));
  EXPECT_EQ(heard,
            (words{"before sampler",
                   "before gate",
                   "before descriptor",
                   "parent descriptor",
                   "parent gate",
                   "parent sampler"}));
}

TEST_F(Forks, AllWaitUntilTheSameMomentAtMost)
{
  auto const begin = steady_clock::now();
  EXPECT_TRUE(in_child([] { return true; }));
  EXPECT_GE(sampler.end, begin + 5s);
  EXPECT_LE(sampler.end, steady_clock::now() + 5s);
  EXPECT_EQ(sampler.end, gate.end);
  EXPECT_EQ(sampler.end, descriptor.end);
}

TEST_F(Forks, ChildOfAChildIsNotToldToWhomTheFirstOneWasNews)
{
  EXPECT_TRUE(in_child([&] {
    heard.clear();
    listener const own{fork_turn::gates, "own", heard};
    return in_child([&] { return heard == words{"before own", "child own"}; }) &&
           heard == words{"before own", "parent own"};
  }));
}

TEST_F(Forks, WhoIsGoneHearsOfNothing)
{
  {
    listener const first{fork_turn::gates, "first", heard};
    auto second = std::make_unique<listener>(fork_turn::gates, "second", heard);
    listener const third{fork_turn::gates, "third", heard};
    second.reset();  // in the middle of the list
    EXPECT_TRUE(in_child([] { return true; }));
    EXPECT_EQ(heard.size(), 10U);
    EXPECT_EQ(heard[1], "before third");
    EXPECT_EQ(heard[2], "before first");
  }
  heard.clear();
  EXPECT_TRUE(in_child([] { return true; }));
  EXPECT_EQ(heard.size(), 6U);
}

TEST_F(Forks, WhoIsDroppedInAChildIsNotLookedFor)
{
  auto dropped = std::make_unique<listener>(fork_turn::gates, "dropped", heard);
  EXPECT_TRUE(in_child([&] {
    listener const own{fork_turn::gates, "own", heard};
    dropped.reset();
    heard.clear();
    return in_child([] { return true; }) && heard == words{"before own", "parent own"};
  }));
}

TEST(ProcessMark, IsHereInItsOwnProcessOnly)
{
  process_mark const mark;
  EXPECT_TRUE(mark.here());
  EXPECT_TRUE(in_child([&] {
    process_mark const own;
    return !mark.here() && own.here() && in_child([&] { return !mark.here() && !own.here(); }) &&
           own.here();
  }));
  EXPECT_TRUE(mark.here());
}

}  // namespace
}  // namespace rmm_uvm
