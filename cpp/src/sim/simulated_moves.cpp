// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_moves.hpp>

#include <utility>

namespace rmm_uvm::sim {

simulated_moves::simulated_moves(node_gpu gpu, planned_answers& answers)
  : gpu_{std::move(gpu)}, answers_{answers}
{
  window_.moves.reserve(most_moves);
}

simulated_moves::~simulated_moves() { close(); }

availability simulated_moves::begin()
{
  if (auto const planned = answers_.refusal_met_by("begin")) { return *planned; }
  auto const model = gpu_.enter();
  window_.moves.clear();
  window_.lost = 0;
  gpu_.account().windows.push_back(&window_);
  return availability::yes();
}

std::uint64_t simulated_moves::end(std::vector<seen_move>& moves)
{
  close();
  moves.insert(moves.end(), window_.moves.begin(), window_.moves.end());
  return window_.lost;
}

void simulated_moves::close() noexcept
{
  auto const model = gpu_.enter();
  std::erase(gpu_.account().windows, &window_);
}

}  // namespace rmm_uvm::sim
