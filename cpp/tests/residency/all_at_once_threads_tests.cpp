// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Two programs on a node of three GPUs, which take each other's memory by a board. Threads of each
// allocate, use, free, hint and advise, while another one changes its budget, takes and gives
// slabs, and lets calls of its driver fail. No byte is lost, and nothing is left. Each run is
// another one: PROGRAMS_SEED, which is printed, makes the same choices again. Also run by the
// thread sanitizer.
#include "../support/blocks.hpp"
#include "../support/board_directory.hpp"
#include "../support/first_fit.hpp"
#include "../support/threads.hpp"
#include "random_allocations.hpp"

#include <rmm_uvm/ipc/board_lender.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr unsigned gpu_count       = 3;
constexpr std::size_t worker_count = 3;  // of a program; one more thread changes what they work on

/** @brief What chooses: of the environment, or another one each time. */
[[nodiscard]] std::uint64_t seed_of_this_run()
{
  auto const* const asked = std::getenv("PROGRAMS_SEED");
  auto const seed =
    asked != nullptr ? std::stoull(asked) : static_cast<std::uint64_t>(std::random_device{}());
  std::cout << "PROGRAMS_SEED=" << seed << '\n';
  return seed;
}

/** @brief A program on one GPU of the node, with a slab and a budget that comes and goes. */
class one_program {
 public:
  one_program(std::shared_ptr<sim::simulated_node> node,
              unsigned gpu,
              std::shared_ptr<ipc::harvest_board> board,
              std::uint64_t seed)
    : device{std::make_shared<sim::simulated_device>(std::move(node), gpu, features(seed))},
      residency{device, make_epoch_source(*device)},
      board_{std::move(board)},
      own_{static_cast<int>(gpu)}
  {
    std::vector<ipc::board_lender::named_device> names;
    for (int number = 0; std::cmp_less(number, gpu_count); ++number) {
      if (number != own_) { static_cast<void>(device->open_neighbor(number)); }
      names.push_back({number, tests::device_named(static_cast<std::uint8_t>(number))});
    }
    lender_ = std::make_shared<ipc::board_lender>(board_, std::move(names));
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    residency.on_slab(slab, nullptr, prefetch_mode::automatic);
    pool = std::make_unique<tests::first_fit>(slab);
  }

  void start(std::mt19937_64& random)
  {
    auto const flip      = [&random] { return random() % 2 == 0; };
    auto settings        = residency_settings::of(blocks(4 + random() % 12));
    settings.policy      = static_cast<eviction_policy>(random() % 4);
    settings.fetch       = random() % 4 != 0;
    settings.ahead       = flip();
    settings.rank_dead   = flip();
    settings.keep_copies = flip();
    settings.background  = random() % 4 != 0;
    settings.in_place    = random() % 4 != 0;
    settings.copy_beside = random() % 4 != 0;
    settings.multipath   = flip();
    settings.rates       = {51'000'000'000, 24'000'000'000, 205'000'000'000, 205'000'000'000};
    for (int number = 0; std::cmp_less(number, gpu_count); ++number) {
      if (number != own_) { settings.neighbors.push_back({.device_id = number}); }
    }
    if (flip()) { settings.lender = lender_; }
    settings.lends = settings.lender != nullptr;
    if (flip()) { settings.followed_bytes = settings.budget_bytes; }
    if (flip()) { settings.clock_end = 500; }
    residency.start_budget(settings);
  }

  /** @brief Starts, changes or ends the budget, or lets a call fail. */
  void disturb(std::mt19937_64& random)
  {
    static constexpr std::array calls{"prefetch",
                                      "migrate",
                                      "discard",
                                      "discard_and_prefetch",
                                      "advise",
                                      "order",
                                      "own_stream",
                                      "mark",
                                      "neighbor_memory",
                                      "read_neighbor_load",
                                      "memory"};
    switch (random() % 5) {
      case 0:
      case 1: start(random); break;
      case 2: {
        auto const budget_blocks = 4 + random() % 12;
        static_cast<void>(
          residency.change_budget(blocks(budget_blocks), blocks(budget_blocks - 1)));
        break;
      }
      case 3: residency.end_budget(); break;
      default:
        device->answers().plan(calls.at(random() % calls.size()),
                               {status_code::driver_error, 1, "injected"},
                               static_cast<unsigned>(random() % 4));
    }
  }

  /** @brief Takes a slab and gives it back; its end is cut off. */
  void take_and_give_a_slab(std::mt19937_64& random)
  {
    memory_range more{0, blocks(1 + random() % 4) - 4096};
    if (!device->allocate_managed(more.bytes, more.address).ok()) { return; }
    residency.on_slab(more, nullptr, prefetch_mode::automatic);
    residency.on_allocate(more, nullptr, prefetch_mode::automatic);
    static_cast<void>(device->program().touch(more, true));
    residency.on_free(more, nullptr);
    auto const kept = residency.on_slab_free(more.address);
    static_cast<void>(device->free_managed(more.address));
    residency.on_slab_freed(kept);
  }

  /** @brief Ends everything, and says what is left of it. */
  void expect_nothing_left()
  {
    static_cast<void>(device->answers().cancel());
    residency.flush();
    // Advice that could not be taken back, since the call failed, stays until it can be.
    EXPECT_TRUE(residency.advise(slab, {false, preferred_place::none}).failure.ok());
    EXPECT_EQ(residency.advised_bytes(), 0U);
    residency.end_budget();
    residency.on_slab_freed(residency.on_slab_free(slab.address));
    EXPECT_TRUE(device->free_managed(slab.address).ok());
    EXPECT_EQ(device->view().statistics().managed_bytes, 0U);
    EXPECT_EQ(device->view().statistics().resident_bytes, 0U);
  }

  std::shared_ptr<sim::simulated_device> device;
  managed_residency residency;
  memory_range slab{0, blocks(24) - 4096};
  std::unique_ptr<tests::first_fit> pool;

 private:
  [[nodiscard]] static sim::simulated_device_config features(std::uint64_t seed)
  {
    sim::simulated_device_config config;
    config.backing          = true;
    config.direct_migration = seed % 2 == 0;
    return config;
  }

  std::shared_ptr<ipc::harvest_board> board_;
  std::shared_ptr<ipc::board_lender> lender_;
  int own_;
};

/** @brief One thread of it. */
class worker final : public tests::random_allocations {
 public:
  /** @param wrong drop what is alive now and then, as the twin of the test does */
  worker(one_program& program, std::uint64_t seed, bool wrong)
    : random_allocations{seed, 17}, program_{program}, wrong_{wrong}
  {
  }

 private:
  [[nodiscard]] stream_handle any_stream()
  {
    return reinterpret_cast<stream_handle>(0x100 * any_of(4));  // NOLINT: a name, or the default
  }
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes) override
  {
    auto const address = program_.pool->take(bytes);
    if (!address) { return address; }
    memory_range const made{*address, bytes};
    if (any_of(6) == 0) {
      program_.residency.on_reuse(
        {made, made, any_of(2) * bytes / 2}, any_stream(), any_of(2) == 0);
    } else {
      program_.residency.on_allocate(made, any_stream(), prefetch_mode::automatic);
    }
    static_cast<void>(program_.device->program().touch(made, true));
    return address;
  }
  void give(memory_range range) override
  {
    program_.residency.on_free(range, any_stream(), any_of(8) != 0);
    program_.pool->give(range.address, range.bytes);
  }
  [[nodiscard]] bool use(memory_range range, std::uint64_t choice) override
  {
    auto& residency   = program_.residency;
    auto const stream = any_stream();
    switch (choice) {
      case 7: static_cast<void>(residency.evict(range, stream)); return false;
      case 8: residency.bring(range, stream); return false;
      case 9:
        residency.pin(range);
        static_cast<void>(residency.evict(range, stream));
        residency.unpin(range);
        return false;
      case 10: {
        advice_change change;
        if (any_of(2) == 0) { change.read_mostly = any_of(2) == 0; }
        if (any_of(2) == 0) { change.preferred = static_cast<preferred_place>(any_of(3)); }
        static_cast<void>(residency.advise(range, change));
        return false;
      }
      case 11: {
        static_cast<void>(residency.take_live_blocks(any_of(2) == 0));
        static_cast<void>(residency.budget_statistics());
        return false;
      }
      case 12:
        residency.run_pending();
        if (wrong_) { static_cast<void>(program_.device->discard({&range, 1}, nullptr)); }
        return false;
      case 13:
        static_cast<void>(residency.confirm_present(stream));
        static_cast<void>(program_.device->program().cpu_touch(range, true));
        return true;
      default: {
        use_event const used{use_kind::touch, range, range.address, 0, choice == 14};
        residency.on_touch({&used, 1}, stream);
        static_cast<void>(program_.device->program().touch(range, choice != 14));
        return true;
      }
    }
  }

  one_program& program_;
  bool wrong_;
};

/** @brief How often contents did not hold, where all that is chosen comes of one seed. */
[[nodiscard]] std::size_t lost_by_all(std::uint64_t seed, int rounds, bool wrong)
{
  std::mt19937_64 random{seed};
  tests::board_directory const folder;
  sim::simulated_node_config machine;
  machine.gpus           = gpu_count;
  machine.capacity_bytes = blocks(20);
  machine.kernel_time    = false;
  auto const node        = std::make_shared<sim::simulated_node>(machine);
  std::array const boards{std::shared_ptr<ipc::harvest_board>{folder.join()},
                          std::shared_ptr<ipc::harvest_board>{folder.join()}};
  std::array<std::unique_ptr<one_program>, 2> programs;
  for (unsigned gpu = 0; gpu < programs.size(); ++gpu) {
    programs.at(gpu) = std::make_unique<one_program>(node, gpu, boards.at(gpu), random());
  }
  auto const first_worker = random();
  std::atomic<std::size_t> lost{0};
  std::atomic<std::size_t> running{worker_count * programs.size()};
  tests::on_threads((worker_count + 1) * programs.size(), [&](std::size_t index) {
    auto& program = *programs.at(index % programs.size());
    if (index < worker_count * programs.size()) {
      worker one{program, first_worker + index, wrong};
      lost += one.run(rounds, [] {});
      --running;
      return;
    }
    std::mt19937_64 changes{first_worker + index};
    while (running > 0) {
      program.disturb(changes);
      program.take_and_give_a_slab(changes);
      std::this_thread::sleep_for(std::chrono::microseconds{changes() % 3000});
    }
  });
  for (auto const& program : programs) {
    program->expect_nothing_left();
  }
  for (auto const& board : boards) {
    for (std::uint8_t number = 0; number < gpu_count; ++number) {
      EXPECT_EQ(board->held(tests::device_named(number)), 0U);
    }
  }
  return lost;
}

TEST(AllAtOnce, ThreadsOfTwoProgramsLoseNoByteAndLeaveNothing)
{
  EXPECT_EQ(lost_by_all(seed_of_this_run(), tests::rounds_of(1500), false), 0U);
}

TEST(AllAtOnce, BytesOfLiveMemoryThatAreDroppedAreSeen) { EXPECT_GT(lost_by_all(1, 30, true), 0U); }

}  // namespace
}  // namespace rmm_uvm
