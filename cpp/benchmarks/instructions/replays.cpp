// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The simulated device: the planner's replay of a recording, and the model's work for each block.
#include "paths.hpp"

#include <rmm_uvm/replay/replayer.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm::benchmarks {
namespace {

constexpr std::uintptr_t data    = std::uintptr_t{1} << 40U;
constexpr std::size_t data_bytes = 5 * gib;  // on a card of 4
constexpr std::size_t blocks     = data_bytes / va_block_bytes;

/** @brief Memory that is taken, used and given back, over twice the device's size. */
[[nodiscard]] std::vector<replay::replay_event> recorded(std::size_t events)
{
  constexpr std::size_t bytes   = 16 * mib;
  constexpr std::size_t places  = 64;
  constexpr std::size_t to_live = places / 2;
  std::vector<replay::replay_event> program;
  for (std::size_t turn = 0; program.size() < events; ++turn) {
    auto const add = [&](replay::event_kind kind, std::size_t place) {
      program.push_back(
        {kind, replay::writes, 0, 0, data + place % places * bytes, bytes, program.size()});
    };
    if (turn >= to_live) { add(replay::event_kind::free, turn - to_live); }
    add(replay::event_kind::allocate, turn);
    add(replay::event_kind::touch, turn);
    if (turn >= to_live) { add(replay::event_kind::touch, turn + 1 - to_live); }
  }
  return program;
}

[[nodiscard]] std::unique_ptr<sim::uvm_model> filled_model()
{
  sim::model_config config;
  config.device_bytes = 4 * gib;
  auto model          = std::make_unique<sim::uvm_model>(config);
  model->add_range({data, data_bytes});
  require(model->cpu_touch({data, data_bytes}, true).ok());
  require(model->prefetch({data, 4 * gib}, 0, 0).ok());
  return model;
}

void launch(sim::uvm_model& model, std::size_t bytes)
{
  std::array<sim::kernel_access, 1> accesses;
  accesses[0].range = {data, bytes};
  sim::kernel_launch kernel;
  kernel.accesses = accesses;
  require(model.launch(kernel).ok());
}

[[gnu::noipa]] void hot_path_replay(replay::replayer& replayer,
                                    std::vector<replay::replay_event> const& events,
                                    std::size_t /* rounds */)
{
  replayer.feed(events);
}

// Of the model a round is a block of 2 MiB.
[[gnu::noipa]] void hot_path_model_prefetched(sim::uvm_model& model, std::size_t rounds)
{
  constexpr std::size_t call_blocks = 32;
  for (std::size_t block = 0; block < rounds; block += call_blocks) {
    auto const from = data + block * va_block_bytes;
    require(model.prefetch({from, call_blocks * va_block_bytes}, 0, 0).ok());
  }
}

[[gnu::noipa]] void hot_path_model_faulted(sim::uvm_model& model, std::size_t rounds)
{
  launch(model, rounds * va_block_bytes);
}

[[gnu::noipa]] void hot_path_model_found(sim::uvm_model& model, std::size_t rounds)
{
  launch(model, rounds * va_block_bytes);
}

}  // namespace

void count_replays()
{
  auto const program = recorded(20'000);
  sim::simulated_device_config config;
  config.capacity_bytes = gib / 4;
  std::array const slabs{memory_range{data, gib}};
  replay::replay_settings settings;
  settings.last_time_ns = program.back().time_ns;
  replay::replayer replayer{std::make_shared<sim::simulated_device>(config), slabs, settings};
  count("replay", hot_path_replay, program.size(), replayer, program);
  require(replayer.replayed() == program.size());

  auto model = filled_model();
  count("model_prefetched", hot_path_model_prefetched, blocks, *model);
  model = filled_model();
  count("model_faulted", hot_path_model_faulted, blocks, *model);
  model = filled_model();
  count("model_found", hot_path_model_found, 4 * gib / va_block_bytes, *model);
}

}  // namespace rmm_uvm::benchmarks
