// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Commands of the simulated device that move pages, handed to the model.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
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

/** @brief As much comes by one fault at least, where the kernel driver brings what is around it. */
constexpr std::size_t fault_bytes = std::size_t{64} << 10U;

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
  if (config_.integrated) { return noted({}, range, where); }
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
  if (!info_.discard.available || !config_.concurrent_managed_access) {
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
  if (!info_.discard.available || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard_and_prefetch");
  }
  for (auto const& range : ranges) {
    auto const done =
      gpu_.finish(model, model->discard_and_prefetch(range, gpu_.place(where), only_stream));
    if (config_.backing && done.code != status_code::invalid_value) { wipe(model, range); }
    if (!done.ok()) { return done; }
  }
  return noted({}, ranges, where);
} catch (...) {
  return failed(status_code::out_of_memory, "discard_and_prefetch");
}

status simulated_device::advise(memory_range range, memory_advice what, location where) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("advise")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "advise"); }
  if (config_.integrated) { return {}; }
  return gpu_.finish(model, model->advise(range, modelled(what), gpu_.place(where)));
} catch (...) {
  return failed(status_code::out_of_memory, "advise");
}

status simulated_device::not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept
try {
  if (auto const failure = answers_.met_by("not_on_host")) { return *failure; }
  if (!info_.host_pages.available) { return failed(status_code::not_supported, "not_on_host"); }
  auto const lies_there = [this](memory_range part) {
    return view_.resident_bytes(part, location::host()) == part.bytes;
  };
  auto const add = [&parts](memory_range part) {
    if (!parts.empty() && parts.back().end() == part.address) {
      parts.back().bytes += part.bytes;
    } else {
      parts.push_back(part);
    }
  };
  for (auto block = range.address; block < range.end();) {
    auto const end = std::min(va_block_floor(block) + va_block_bytes, range.end());
    if (!lies_there({block, end - block})) {
      for (auto at = block; at < end; at += fault_bytes) {
        memory_range const part{at, std::min(fault_bytes, end - at)};
        if (!lies_there(part)) { add(part); }
      }
    }
    block = end;
  }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "not_on_host");
}

}  // namespace rmm_uvm::sim
