// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Commands of the simulated device that move pages, handed to the model.
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

/** @brief Writes over the whole pages of a range that was discarded. */
void wipe(simulated_node::turn const& model, memory_range range)
{
  model->for_each_block(range, true, [](std::uintptr_t address, page_set const& pages) {
    for (auto page = pages.next(0); page < pages_per_block; page = pages.next(page + 1)) {
      std::memset(reinterpret_cast<void*>(address + page * page_bytes), discarded_byte, page_bytes);
    }
  });
}

}  // namespace

status simulated_device::prefetch(memory_range range, location where, stream_handle stream) noexcept
try {
  auto const model = gpu_.enter(streams_.lane_of(stream));
  if (auto const failure = answers_.met_by("prefetch")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "prefetch"); }
  return noted(
    gpu_.finish(model, model->prefetch(range, gpu_.place(where), only_stream)), range, where);
} catch (...) {
  return failed(status_code::out_of_memory, "prefetch");
}

status simulated_device::discard(std::span<memory_range const> ranges,
                                 stream_handle stream) noexcept
try {
  auto const model = gpu_.enter(streams_.lane_of(stream));
  if (auto const failure = answers_.met_by("discard")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard");
  }
  for (auto const& range : ranges) {
    if (auto const done = gpu_.finish(model, model->discard(range, true)); !done.ok()) {
      return done;
    }
    if (config_.backing) { wipe(model, range); }
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard");
}

status simulated_device::discard_and_prefetch(std::span<memory_range const> ranges,
                                              location where,
                                              stream_handle stream) noexcept
try {
  auto const model = gpu_.enter(streams_.lane_of(stream));
  if (auto const failure = answers_.met_by("discard_and_prefetch")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard_and_prefetch");
  }
  for (auto const& range : ranges) {
    auto const done =
      gpu_.finish(model, model->discard_and_prefetch(range, gpu_.place(where), only_stream));
    if (config_.backing && done.code != status_code::invalid_value) { wipe(model, range); }
    if (!done.ok()) { return done; }
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard_and_prefetch");
}

status simulated_device::advise(memory_range range, memory_advice what, location where) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("advise")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "advise"); }
  return gpu_.finish(model, model->advise(range, modelled(what), gpu_.place(where)));
} catch (...) {
  return failed(status_code::out_of_memory, "advise");
}

}  // namespace rmm_uvm::sim
