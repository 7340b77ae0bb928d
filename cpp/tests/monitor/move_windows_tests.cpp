// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Whose pages moved, as far as short windows tell, with a clock that goes from sleep to sleep.
#include "../support/fake_interpreter.hpp"
#include "../support/forked.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/monitor/move_windows.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr int of_one             = 4;  // the lines of the program
constexpr int of_other           = 6;

// Of the thread that runs the test.
tests::fake_interpreter* running = nullptr;

std::uintptr_t running_state() noexcept { return running == nullptr ? 0 : running->state(); }

bool described(code_place place, code_line& line)
{
  line.line = static_cast<int>(place.instruction);
  return true;
}

/** @brief Time passes when the test says so: from one sleep of the only sleeper to the next. */
class stepped_clock final : public clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() noexcept override
  {
    std::lock_guard const lock{mutex_};
    return now_ns_;
  }
  [[nodiscard]] bool sleep_until(std::uint64_t deadline_ns,
                                 std::atomic<bool> const& cancelled) noexcept override
  {
    std::unique_lock lock{mutex_};
    deadline_ns_ = deadline_ns;
    asleep_      = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return cancelled.load() || now_ns_ >= deadline_ns; });
    asleep_ = false;
    return !cancelled.load();
  }
  void wake() noexcept override
  {
    std::lock_guard const lock{mutex_};
    changed_.notify_all();
  }

  /** @brief The sleeper wakes in time, and does what it has to. */
  void end_sleep()
  {
    std::unique_lock lock{mutex_};
    ASSERT_TRUE(changed_.wait_for(lock, 30s, [&] { return asleep_; }));
    now_ns_ = std::max(now_ns_, deadline_ns_);
    asleep_ = false;
    changed_.notify_all();
  }
  /** @brief The same; it sleeps again when this returns. */
  void step()
  {
    end_sleep();
    std::unique_lock lock{mutex_};
    ASSERT_TRUE(changed_.wait_for(lock, 30s, [&] { return asleep_; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t now_ns_{1'000'000'000};
  std::uint64_t deadline_ns_{0};
  bool asleep_{false};
};

/** @brief What a window will see, and how it answers. */
struct played_queue {
  std::vector<seen_move> moves;
  availability begins{};
  std::uint64_t lost{0};
  bool without_memory{false};
  std::atomic<int> begun{0};
  std::atomic<bool> hangs{false};
};

class playing_queue final : public move_queue {
 public:
  explicit playing_queue(std::shared_ptr<played_queue> played) : played_{std::move(played)} {}
  [[nodiscard]] availability begin() override
  {
    ++played_->begun;
    played_->hangs.wait(true);
    return played_->begins;
  }
  std::uint64_t end(std::vector<seen_move>& moves) override
  {
    if (played_->without_memory) { throw std::bad_alloc{}; }
    moves.insert(moves.end(), played_->moves.begin(), played_->moves.end());
    return played_->lost;
  }

 private:
  std::shared_ptr<played_queue> played_;
};

class MoveWindows : public testing::Test {
 protected:
  MoveWindows()
  {
    running = &python;
    allocate(one, of_one);
    allocate(other, of_other);
    windows.start();
  }
  ~MoveWindows() override { running = nullptr; }

  void allocate(memory_range range, int line)
  {
    python.at(0, static_cast<std::size_t>(line));
    account->allocated(0, range, nullptr);
  }
  /** @brief So many bytes come to the device. */
  void come(std::uint64_t bytes) { driver->counted.host_to_device_bytes += bytes; }
  /** @brief A window sees pages move. */
  void see(memory_range pages,
           migration_cause cause = migration_cause::coherence,
           bool to_device        = true)
  {
    queue->moves.push_back({pages, pages.bytes, to_device, cause});
  }
  /** @brief The counters are looked at, and the window is over that this opens. */
  void look_through_a_window()
  {
    clock->step();
    clock->step();
    queue->moves.clear();
  }
  [[nodiscard]] moved_bytes moved_of(int line) const
  {
    auto const told = account->report();
    for (auto const& path : told.paths) {
      if (!path.lines.empty() && told.lines[path.lines[0]].line == line) { return path.moved; }
    }
    return {};
  }

  memory_range const one{va_block_bytes, 4 * mebibyte};
  memory_range const other{16 * va_block_bytes, 4 * mebibyte};
  tests::fake_interpreter python{true};
  std::shared_ptr<line_account> account =
    std::make_shared<line_account>(interpreter{running_state, described, python.layout().value()});
  std::shared_ptr<tests::recording_driver> driver = std::make_shared<tests::recording_driver>();
  std::shared_ptr<played_queue> queue             = std::make_shared<played_queue>();
  std::shared_ptr<stepped_clock> clock            = std::make_shared<stepped_clock>();
  window_settings settings{.patience = 50ms};
  move_windows windows{driver, std::make_unique<playing_queue>(queue), account, settings, clock};
};

TEST_F(MoveWindows, WhatTheySeeStandsForAllThatMoved)
{
  come(100 * mebibyte);
  see({one.address, 3 * page_bytes});
  see({other.address + page_bytes, page_bytes}, migration_cause::prefetch);
  look_through_a_window();
  EXPECT_EQ(moved_of(of_one).faulted, 75 * mebibyte);
  EXPECT_EQ(moved_of(of_other).faulted, 25 * mebibyte);
  auto const told = windows.totals();
  EXPECT_EQ(told.windows, 1U);
  EXPECT_EQ(told.open_ns, settings.length_ns);
  EXPECT_EQ(told.run_ns, settings.look_ns + settings.length_ns);
  EXPECT_EQ(told.faulted_bytes, 100 * mebibyte);
  EXPECT_EQ(told.seen_bytes, 4 * page_bytes);
  EXPECT_EQ(told.lost_moves, 0U);
}

TEST_F(MoveWindows, AreNotOpenedWhereNothingMovesByItself)
{
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(driver->prefetch(one, location::device(0), nullptr).ok());
    come(one.bytes);
    clock->step();
  }
  EXPECT_EQ(windows.totals().windows, 0U);
  EXPECT_EQ(queue->begun, 0);
  windows.stop();
  EXPECT_EQ(windows.totals().faulted_bytes, 0U);
}

TEST_F(MoveWindows, DoNotTellWhatWasAskedFor)
{
  ASSERT_TRUE(driver->prefetch(one, location::device(0), nullptr).ok());
  come(one.bytes + 6 * mebibyte);
  see({one.address, page_bytes}, migration_cause::user);
  see({other.address, page_bytes});
  look_through_a_window();
  EXPECT_EQ(moved_of(of_one).faulted, 0U);
  EXPECT_EQ(moved_of(of_other).faulted, 6 * mebibyte);
}

TEST_F(MoveWindows, TakeOffWhatOthersAskedFor)
{
  come(100 * mebibyte);  // and this driver was asked for nothing
  see({one.address, 3 * page_bytes}, migration_cause::user);
  see({other.address, page_bytes});
  look_through_a_window();
  EXPECT_EQ(moved_of(of_other).faulted, 25 * mebibyte);
  EXPECT_EQ(windows.totals().faulted_bytes, 25 * mebibyte);
}

TEST_F(MoveWindows, TellEvictionsFromWhatTheHostReads)
{
  driver->counted.device_to_host_bytes += 10 * mebibyte;
  see({one.address, page_bytes}, migration_cause::eviction, false);
  see({other.address, page_bytes}, migration_cause::coherence, false);
  look_through_a_window();
  EXPECT_EQ(moved_of(of_one).evicted, 5 * mebibyte);
  EXPECT_EQ(moved_of(of_other).read_back, 5 * mebibyte);
  EXPECT_EQ(windows.totals().faulted_bytes, 0U);
}

TEST_F(MoveWindows, OfOneThatSawNothingTheNextTells)
{
  come(10 * mebibyte);
  look_through_a_window();
  EXPECT_EQ(moved_of(of_one).faulted, 0U);
  see({one.address, page_bytes});
  while (windows.totals().windows < 2) {
    come(mebibyte);
    clock->step();
  }
  EXPECT_GT(moved_of(of_one).faulted, 10 * mebibyte);
  EXPECT_EQ(moved_of(of_one).faulted, driver->counted.host_to_device_bytes);
}

TEST_F(MoveWindows, TakeTwoPercentOfTheTimeThatPagesMove)
{
  for (int idle = 0; idle < 1000; ++idle) {  // does not count for later
    clock->step();
  }
  auto const before = windows.totals();
  see({one.address, page_bytes});
  for (int round = 0; round < 1000; ++round) {
    come(mebibyte);
    clock->step();
  }
  auto const after   = windows.totals();
  auto const open_ns = static_cast<double>(after.open_ns - before.open_ns);
  auto const run_ns  = static_cast<double>(after.run_ns - before.run_ns);
  EXPECT_LE(open_ns, 0.02 * run_ns + static_cast<double>(settings.length_ns));
  EXPECT_GT(open_ns, 0.015 * run_ns);
}

TEST_F(MoveWindows, ThatAreRefusedEndAndSayWhy)
{
  queue->begins = availability::no("the kernel driver said no");
  come(mebibyte);
  clock->end_sleep();
  auto const end = std::chrono::steady_clock::now() + 30s;
  while (windows.refused().empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(windows.refused(), "the kernel driver said no");
  windows.stop();
  windows.start();
  EXPECT_EQ(queue->begun, 1);
  EXPECT_EQ(windows.totals().windows, 0U);
  EXPECT_EQ(windows.totals().faulted_bytes, mebibyte);  // which nobody saw
}

TEST_F(MoveWindows, ThatEndWithoutMemoryAreFollowedByOthers)
{
  queue->without_memory = true;
  come(mebibyte);
  look_through_a_window();
  queue->without_memory = false;
  queue->lost           = 7;
  see({one.address, page_bytes});
  while (windows.totals().windows < 2) {
    come(mebibyte);
    clock->step();
  }
  EXPECT_EQ(moved_of(of_one).faulted, driver->counted.host_to_device_bytes);
  EXPECT_EQ(windows.totals().lost_moves, 7U);
}

TEST_F(MoveWindows, OnlyTellWhatMovesWhileTheyAreStarted)
{
  windows.stop();
  windows.stop();
  auto const run_ns = windows.totals().run_ns;
  come(50 * mebibyte);
  windows.start();
  windows.start();
  see({one.address, page_bytes});
  come(mebibyte);
  look_through_a_window();
  come(3 * mebibyte);
  windows.stop();
  EXPECT_EQ(moved_of(of_one).faulted, mebibyte);
  EXPECT_EQ(windows.totals().faulted_bytes, 4 * mebibyte);
  EXPECT_EQ(windows.totals().run_ns, run_ns + settings.look_ns + settings.length_ns);
}

TEST_F(MoveWindows, WhoseDeviceHangsAreLeftAloneAndHaveNoSecondThread)
{
  queue->hangs = true;
  come(mebibyte);
  clock->end_sleep();
  auto const end = std::chrono::steady_clock::now() + 30s;
  while (queue->begun == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  windows.stop();
  windows.start();
  queue->hangs = false;
  queue->hangs.notify_all();
  EXPECT_EQ(queue->begun, 1);
}

/** @brief A simulated device that tells what moves in windows alone, as a GPU does. */
[[nodiscard]] std::shared_ptr<sim::simulated_device> untold_device()
{
  sim::simulated_device_config config;
  config.capacity_bytes = 64 * va_block_bytes;
  config.tells_moves    = false;
  return std::make_shared<sim::simulated_device>(config);
}

TEST(MoveWindowsOfADevice, SeeWhatItsKernelsFaultIn)
{
  tests::fake_interpreter python{true};
  running = &python;
  auto const account =
    std::make_shared<line_account>(interpreter{running_state, described, python.layout().value()});
  auto const device = untold_device();
  auto const clock  = std::make_shared<stepped_clock>();
  auto opened       = device->open_moves();
  ASSERT_TRUE(opened.queue) << opened.opened.reason;
  move_windows windows{device, std::move(opened.queue), account, {}, clock};
  device->traffic_observers().set_account(account);
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(va_block_bytes, address).ok());
  account->allocated(0, {address, va_block_bytes}, nullptr);
  running             = nullptr;
  auto const fault_in = [&] {
    ASSERT_TRUE(device->program().cpu_touch({address, va_block_bytes}, true).ok());
    ASSERT_TRUE(device->program().touch({address, va_block_bytes}, true).ok());
  };
  fault_in();  // before they are started, it is not theirs to tell
  windows.start();
  fault_in();
  clock->step();
  fault_in();
  clock->step();
  windows.stop();
  auto const told = account->report();
  ASSERT_EQ(told.objects.size(), 1U);
  EXPECT_EQ(told.objects[0].moved.faulted, 2 * va_block_bytes);
  EXPECT_EQ(told.objects[0].moved.read_back, 2 * va_block_bytes);
  EXPECT_EQ(windows.totals().seen_bytes, va_block_bytes);
}

TEST(MoveWindowsOfADevice, AreOpenedOnlyWhereItTells)
{
  sim::simulated_device_config config;
  config.capacity_bytes = va_block_bytes;
  config.counters       = false;
  EXPECT_FALSE(sim::simulated_device{config}.open_moves().opened.reason.empty());
  config.counters                  = true;
  config.concurrent_managed_access = false;
  EXPECT_FALSE(sim::simulated_device{config}.open_moves().opened.reason.empty());
  config.concurrent_managed_access = true;
  sim::simulated_device device{config};
  device.answers().plan("open_moves", {status_code::driver_error, 1, "open_moves"}, 0);
  EXPECT_FALSE(device.open_moves().queue);
  auto const opened = device.open_moves();
  ASSERT_TRUE(opened.queue);
  device.answers().plan("begin", {status_code::driver_error, 1, "begin"}, 0);
  EXPECT_NE(opened.queue->begin().reason.find("begin"), std::string::npos);
  EXPECT_TRUE(opened.queue->begin().available);
}

TEST(MoveWindowsOfADevice, InAForkedChildAreNotThereAndLeaveNoLockTaken)
{
  tests::fake_interpreter python{true};
  auto const account =
    std::make_shared<line_account>(interpreter{running_state, described, python.layout().value()});
  auto const device = untold_device();
  auto opened       = device->open_moves();
  ASSERT_TRUE(opened.queue);
  auto windows = std::make_unique<move_windows>(
    device,
    std::move(opened.queue),
    account,
    window_settings{.length_ns = 1'000, .look_ns = 1'000, .most_fraction = 1.0});
  std::uintptr_t address = 0;
  ASSERT_TRUE(device->allocate_managed(va_block_bytes, address).ok());
  account->allocated(0, {address, va_block_bytes}, nullptr);
  windows->start();
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(device->program().cpu_touch({address, va_block_bytes}, true).ok());
    ASSERT_TRUE(device->program().touch({address, va_block_bytes}, true).ok());
    EXPECT_TRUE(tests::in_child([&] {
      device_memory memory;
      bool const free = device->memory(memory).ok() && account->report().paths.size() == 1;
      static_cast<void>(windows->totals());
      windows->start();
      windows->stop();
      windows.reset();
      return free;
    }));
  }
  windows->stop();
  EXPECT_GT(windows->totals().windows, 0U);
}

}  // namespace
}  // namespace rmm_uvm::monitor
