// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// One kind of the model's work, for a profiler: model_operations prefetched|faulted|found [ROUNDS].
// The same work as benchmarks/planner/model_speed.py times; benchmarks/planner/model_profile.py
// builds and runs it.
#include <rmm_uvm/sim/uvm_model.hpp>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using rmm_uvm::sim::kernel_access;
using rmm_uvm::sim::kernel_launch;
using rmm_uvm::sim::model_config;
using rmm_uvm::sim::uvm_model;

constexpr std::size_t gib        = std::size_t{1} << 30U;
constexpr std::size_t data_bytes = 10 * gib;
constexpr std::size_t call_bytes = std::size_t{64} << 20U;
constexpr std::uintptr_t data    = std::uintptr_t{1} << 40U;

void read_all(uvm_model& model, std::size_t bytes)
{
  std::vector<kernel_access> accesses(1);
  accesses[0].range = {data, bytes};
  kernel_launch kernel;
  kernel.accesses = accesses;
  if (!model.launch(kernel).ok()) { std::abort(); }
}

}  // namespace

int main(int count, char** words)
{
  std::string_view const kind = count > 1 ? words[1] : "";
  int const rounds            = count > 2 ? std::atoi(words[2]) : 1;
  model_config config;
  config.device_bytes = 8 * gib;
  uvm_model model{config};
  model.add_range({data, data_bytes});
  if (!model.cpu_touch({data, data_bytes}, true).ok()) { return 1; }
  if (!model.prefetch({data, 4 * gib}, 0, 0).ok()) { return 1; }
  for (int round = 0; round < rounds; ++round) {
    if (kind == "prefetched") {
      for (std::size_t offset = 0; offset < data_bytes; offset += call_bytes) {
        if (!model.prefetch({data + offset, call_bytes}, 0, 0).ok()) { return 1; }
      }
    } else if (kind == "faulted") {
      read_all(model, data_bytes);
    } else if (kind == "found") {
      read_all(model, 4 * gib);
    } else {
      return 2;
    }
  }
  return 0;
}
