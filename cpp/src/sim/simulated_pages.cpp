// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Commands and touches of the simulated device that move pages, handed to the model.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstring>

namespace rmm_uvm::sim {
namespace {

/** @brief What reads of discarded memory find in a device with backing; no test pattern uses it. */
constexpr int discarded_byte = 0xDB;
/** @brief Streams are names here: everything goes on one. */
constexpr std::uint64_t only_stream = 0;

/** @brief The model's name for advice. */
[[nodiscard]] constexpr advice modelled(memory_advice what) noexcept
{
  switch (what) {
    case memory_advice::read_mostly: return advice::read_mostly;
    case memory_advice::unset_read_mostly: return advice::unset_read_mostly;
    case memory_advice::preferred_location: return advice::preferred_location;
    case memory_advice::accessed_by: return advice::accessed_by;
    case memory_advice::unset_accessed_by: return advice::unset_accessed_by;
    case memory_advice::unset_preferred_location: break;
  }
  return advice::unset_preferred_location;
}

}  // namespace

void simulated_device::wipe(simulated_node::turn const& model, memory_range range) const
{
  if (!config_.backing) { return; }
  model->for_each_block(range, true, [](std::uintptr_t address, page_set const& pages) {
    for (auto page = pages.next(0); page < pages_per_block; page = pages.next(page + 1)) {
      std::memset(reinterpret_cast<void*>(address + page * page_bytes), discarded_byte, page_bytes);
    }
  });
}

status simulated_device::prefetch(memory_range range, location where, stream_handle stream) noexcept
try {
  auto const model = enter(stream);
  if (auto const failure = injected("prefetch")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "prefetch"); }
  return noted(finish(model, model->prefetch(range, place(where), only_stream)), range, where);
} catch (...) {
  return failed(status_code::out_of_memory, "prefetch");
}

status simulated_device::discard(std::span<memory_range const> ranges,
                                 stream_handle stream) noexcept
try {
  auto const model = enter(stream);
  if (auto const failure = injected("discard")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard");
  }
  for (auto const& range : ranges) {
    if (auto const done = finish(model, model->discard(range, true)); !done.ok()) { return done; }
    wipe(model, range);
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard");
}

status simulated_device::discard_and_prefetch(std::span<memory_range const> ranges,
                                              location where,
                                              stream_handle stream) noexcept
try {
  auto const model = enter(stream);
  if (auto const failure = injected("discard_and_prefetch")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard_and_prefetch");
  }
  for (auto const& range : ranges) {
    auto const done = finish(model, model->discard_and_prefetch(range, place(where), only_stream));
    if (done.code != status_code::invalid_value) { wipe(model, range); }
    if (!done.ok()) { return done; }
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard_and_prefetch");
}

status simulated_device::advise(memory_range range, memory_advice what, location where) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("advise")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "advise"); }
  return finish(model, model->advise(range, modelled(what), place(where)));
} catch (...) {
  return failed(status_code::out_of_memory, "advise");
}

block_policy simulated_device::advised(std::uintptr_t address) const noexcept
{
  auto const model = enter();
  return model->advised(address);
}

status simulated_device::touch(memory_range range, bool write) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("touch")) { return *failure; }
  auto const inside = model->range_of(range.address);
  if (!inside || range.bytes == 0 || range.bytes > inside->end() - range.address) {
    return failed(status_code::invalid_value, "touch");
  }
  if (auto* const observer = observer_.get()) {
    observer->touched(info_.device_id, range, write, false);
  }
  kernel_access const access{range, {}, write};
  return finish(model,
                model->launch({.accesses = {&access, 1}, .gpu = gpu_, .stream = only_stream}));
} catch (...) {
  return failed(status_code::out_of_memory, "touch");
}

status simulated_device::compute(double ns) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("compute")) { return *failure; }
  if (!(ns >= 0)) { return failed(status_code::invalid_value, "compute"); }
  return finish(model, model->launch({.compute_ns = ns, .gpu = gpu_, .stream = only_stream}));
} catch (...) {
  return failed(status_code::out_of_memory, "compute");
}

status simulated_device::cpu_touch(memory_range range, bool write) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("cpu_touch")) { return *failure; }
  auto const inside = model->range_of(range.address);
  if (!inside || range.bytes == 0 || range.bytes > inside->end() - range.address) {
    return failed(status_code::invalid_value, "cpu_touch");
  }
  if (auto* const observer = observer_.get()) {
    observer->touched(info_.device_id, range, write, true);
  }
  return finish(model, model->cpu_touch(range, write));
} catch (...) {
  return failed(status_code::out_of_memory, "cpu_touch");
}

}  // namespace rmm_uvm::sim
