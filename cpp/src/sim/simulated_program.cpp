// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_program.hpp>

#include <cstdint>

namespace rmm_uvm::sim {
namespace {

/** @brief Streams are names here: everything goes on one. */
constexpr std::uint64_t kernel_stream = 0;

}  // namespace

status simulated_program::touch(memory_range range, bool write) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("touch")) { return *failure; }
  auto const inside = model->range_of(range.address);
  if (!inside || range.bytes == 0 || range.bytes > inside->end() - range.address) {
    return failed(status_code::invalid_value, "touch");
  }
  if (auto* const observer = observer_.get()) {
    observer->touched(gpu_.ordinal(), range, write, false);
  }
  kernel_access const access{range, {}, write};
  return gpu_.finish(
    model,
    model->launch({.accesses = {&access, 1}, .gpu = gpu_.number(), .stream = kernel_stream}));
} catch (...) {
  return failed(status_code::out_of_memory, "touch");
}

status simulated_program::cpu_touch(memory_range range, bool write) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("cpu_touch")) { return *failure; }
  auto const inside = model->range_of(range.address);
  if (!inside || range.bytes == 0 || range.bytes > inside->end() - range.address) {
    return failed(status_code::invalid_value, "cpu_touch");
  }
  if (auto* const observer = observer_.get()) {
    observer->touched(gpu_.ordinal(), range, write, true);
  }
  if (integrated_) {  // there is one memory: pages stay where a kernel would have them
    kernel_access const access{range, {}, write};
    return gpu_.finish(
      model,
      model->launch({.accesses = {&access, 1}, .gpu = gpu_.number(), .stream = kernel_stream}));
  }
  return gpu_.finish(model, model->cpu_touch(range, write));
} catch (...) {
  return failed(status_code::out_of_memory, "cpu_touch");
}

status simulated_program::compute(double ns) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("compute")) { return *failure; }
  if (!(ns >= 0)) { return failed(status_code::invalid_value, "compute"); }
  return gpu_.finish(
    model, model->launch({.compute_ns = ns, .gpu = gpu_.number(), .stream = kernel_stream}));
} catch (...) {
  return failed(status_code::out_of_memory, "compute");
}

void simulated_program::migrate_beside(bool beside) noexcept
{
  auto const model = gpu_.enter();
  threads_.migrate_beside(beside);
}

status simulated_program::allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("allocate_device")) { return *failure; }
  return allocations_.allocate_device(model, bytes, address);
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_device");
}

status simulated_program::free_device(std::uintptr_t address) noexcept
{
  auto const model = gpu_.enter();
  return allocations_.free_device(model, address);
}

}  // namespace rmm_uvm::sim
