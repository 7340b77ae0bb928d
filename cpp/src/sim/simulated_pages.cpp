// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How pages of the simulated device move: prefetch, discard, touch, eviction.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace rmm_uvm::sim {
namespace {

/** @brief Pages that a fault brings at least: a 64 KiB big page (uvm_perf_prefetch.c, "growth"). */
constexpr std::size_t fault_group_pages = 16;

/** @brief What reads of discarded memory find in a device with backing; no test pattern uses it. */
constexpr int discarded_byte = 0xDB;

[[nodiscard]] constexpr status failed(status_code code, char const* call) noexcept
{
  return {code, 0, call};
}

[[nodiscard]] double bytes_of(page_mask const& pages) noexcept
{
  return static_cast<double>(pages.count() * page_bytes);
}

/** @brief The 64 KiB groups that hold any of `pages`. */
[[nodiscard]] page_mask grow_to_groups(page_mask const& pages) noexcept
{
  page_mask grown;
  for (std::size_t first = 0; first < pages_per_block; first += fault_group_pages) {
    auto const group = mask_of(first, first + fault_group_pages);
    if ((pages & group).any()) { grown |= group; }
  }
  return grown;
}

}  // namespace

std::optional<std::vector<simulated_device::page_span>> simulated_device::pages_of(
  memory_range range, bool inward)
{
  auto it = managed_.upper_bound(range.address);
  if (it == managed_.begin()) { return std::nullopt; }
  it                = std::prev(it);
  auto const base   = it->first;
  auto const offset = range.address - base;
  // Not by `range.end()`, which an absurd length takes past the end of the address space.
  if (range.bytes == 0 || offset > it->second.bytes || range.bytes > it->second.bytes - offset) {
    return std::nullopt;
  }
  auto first = (range.address - base) / page_bytes;
  auto last  = (range.end() - base + page_bytes - 1) / page_bytes;
  if (inward) {  // a page that other bytes share is left alone, except at the allocation's own end
    first = (range.address - base + page_bytes - 1) / page_bytes;
    if (range.end() < base + it->second.bytes) { last = (range.end() - base) / page_bytes; }
  }
  std::vector<page_span> spans;
  while (first < last) {
    auto const index = first / pages_per_block;
    auto const end   = std::min(last, (index + 1) * pages_per_block);
    spans.push_back({&it->second.blocks[index],
                     mask_of(first - index * pages_per_block, end - index * pages_per_block),
                     base + index * va_block_bytes});
    first = end;
  }
  return spans;
}

void simulated_device::move_to(va_block& block, chunk_list_id list)
{
  if (block.list == chunk_list_id::used) { used_.remove(block); }
  if (block.list == chunk_list_id::unused) { unused_.remove(block); }
  block.list = list;
  if (list == chunk_list_id::used) { used_.push_back(block); }
  if (list == chunk_list_id::unused) { unused_.push_back(block); }
}

void simulated_device::set_resident_bytes(std::size_t bytes) noexcept
{
  totals_.resident_bytes      = bytes;
  totals_.peak_resident_bytes = std::max(totals_.peak_resident_bytes, bytes);
  resident_bytes_.store(bytes, std::memory_order_relaxed);
}

void simulated_device::release(va_block& block)
{
  if (block.list == chunk_list_id::none) { return; }
  move_to(block, chunk_list_id::none);
  set_resident_bytes(totals_.resident_bytes - block.chunk_bytes());
}

bool simulated_device::take_host_pages(va_block& block, page_mask pages)
{
  auto const fresh = pages & ~block.host_pages;
  auto const bytes = fresh.count() * page_bytes;
  if (bytes > config_.host_bytes - totals_.host_page_bytes) { return false; }
  block.host_pages |= fresh;
  totals_.host_page_bytes += bytes;
  return true;
}

void simulated_device::count_to_device(va_block const& block,
                                       page_mask const& copied,
                                       migration_cause cause)
{
  auto const bytes = copied.count() * page_bytes;
  host_to_device_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes == 0) { return; }
  for (auto* const tally : tallies_) {
    tally->to_device(cause, {block.address, bytes});  // which of its pages, nobody asks
  }
}

void simulated_device::count_to_host(va_block const& block,
                                     page_mask const& copied,
                                     migration_cause cause)
{
  auto const bytes = copied.count() * page_bytes;
  device_to_host_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes == 0) { return; }
  for (auto* const tally : tallies_) {
    tally->to_host(cause, {block.address, bytes});
  }
}

void simulated_device::count_faults(std::uint64_t gpu_fault_groups, std::uint64_t cpu_faults)
{
  totals_.gpu_fault_groups += gpu_fault_groups;
  totals_.cpu_faults += cpu_faults;
  if (faults_requested()) {
    gpu_faults_.fetch_add(gpu_fault_groups, std::memory_order_relaxed);
    cpu_faults_.fetch_add(cpu_faults, std::memory_order_relaxed);
  }
  for (auto* const tally : tallies_) {
    tally->count(&cause_totals::gpu_fault_groups, gpu_fault_groups);
    tally->count(&cause_totals::cpu_faults, cpu_faults);
  }
}

status simulated_device::evict(va_block& block)
{
  // Written back whether dirty or not; not copied: pages that the host has, and discarded ones.
  auto const dropped = block.on_device & block.discarded;
  auto const copied  = block.on_device & ~block.on_host & ~block.discarded;
  if (!take_host_pages(block, block.on_device)) {
    // As the kernel driver: no other victim is tried, the next request begins with another one.
    move_to(block, chunk_list_id::used);
    return failed(status_code::out_of_memory, "evict");
  }
  auto const bytes = copied.count() * page_bytes;
  count_to_host(block, copied, migration_cause::eviction);
  totals_.evicted_bytes += bytes;
  totals_.dropped_bytes += dropped.count() * page_bytes;
  spend(static_cast<double>(bytes) / config_.costs.eviction_bytes_per_ns);
  block.on_host |= block.on_device;
  block.on_device.reset();
  release(block);
  return {};
}

status simulated_device::make_room(std::size_t bytes)
{
  while (free_bytes() < bytes) {
    auto* const victim = unused_.head() != nullptr ? unused_.head() : used_.head();
    if (victim == nullptr) { return failed(status_code::out_of_memory, "make_room"); }
    if (auto const evicted = evict(*victim); !evicted.ok()) { return evicted; }
  }
  return {};
}

status simulated_device::migrate_to_device(
  va_block& block, page_mask pages, double rate, double fill_rate, migration_cause cause)
{
  if (block.list == chunk_list_id::none) {
    if (auto const room = make_room(block.chunk_bytes()); !room.ok()) { return room; }
    set_resident_bytes(totals_.resident_bytes + block.chunk_bytes());
  }
  auto const missing = pages & ~block.on_device;
  auto const copied  = missing & block.on_host & ~block.discarded;
  auto const filled  = missing & ~copied;
  count_to_device(block, copied, cause);
  spend(bytes_of(copied) / rate + bytes_of(filled) / fill_rate);
  block.on_device |= pages;
  block.on_host &= ~pages;
  move_to(block, chunk_list_id::used);
  return {};
}

status simulated_device::migrate_to_host(va_block& block,
                                         page_mask pages,
                                         double rate,
                                         migration_cause cause)
{
  auto const leaving = pages & block.on_device;
  auto const copied  = leaving & ~block.on_host & ~block.discarded;
  if (!take_host_pages(block, pages)) { return failed(status_code::out_of_memory, "to_host"); }
  count_to_host(block, copied, cause);
  spend(bytes_of(copied) / rate);
  block.on_device &= ~pages;
  block.on_host |= pages;
  // The chunk stays with the block, first in line for whoever needs memory.
  if (leaving.any() && block.on_device.none()) { move_to(block, chunk_list_id::unused); }
  return {};
}

status simulated_device::prefetch_locked(memory_range range, location where)
{
  auto const spans = pages_of(range, false);
  if (!spans) { return failed(status_code::invalid_value, "prefetch"); }
  auto const& costs = config_.costs;
  spend(costs.call_ns);
  // A prefetch to the device of more than one block runs twice over the range: when the range does
  // not fit, the second pass moves it all again (uvm_migrate.c, uvm_migrate).
  auto const passes = !where.is_host() && spans->size() > 1 ? 2 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    for (auto const& [block, pages, address] : *spans) {
      spend(pass == 0 && spans->size() > 1 ? costs.resident_block_ns : 0.0);
      bool const has_chunk = block->list != chunk_list_id::none;
      if (!has_chunk && (block->discarded & pages).any()) { spend(costs.discarded_block_ns); }
      auto const fill_rate = has_chunk ? costs.refill_bytes_per_ns : costs.populate_bytes_per_ns;
      auto const moved =
        where.is_host()
          ? migrate_to_host(
              *block, pages, costs.prefetch_to_host_bytes_per_ns, migration_cause::user)
          : migrate_to_device(*block,
                              pages,
                              costs.prefetch_to_device_bytes_per_ns,
                              fill_rate,
                              migration_cause::user);
      if (!moved.ok()) { return moved; }
      block->discarded &= ~pages;
    }
  }
  return {};
}

status simulated_device::prefetch(memory_range range, location where, stream_handle) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("prefetch")) { return *failure; }
  if (!config_.concurrent_managed_access) { return failed(status_code::not_supported, "prefetch"); }
  return noted(prefetch_locked(range, where), range, where);
} catch (...) {
  return failed(status_code::out_of_memory, "prefetch");
}

status simulated_device::discard_locked(memory_range range, double block_ns)
{
  auto const spans = pages_of(range, true);
  if (!spans) { return failed(status_code::invalid_value, "discard"); }
  for (auto const& [block, pages, address] : *spans) {
    spend(block_ns);
    block->on_device &= ~pages;
    block->on_host &= ~pages;
    block->discarded |= pages;
    if (block->list != chunk_list_id::none && block->on_device.none()) {
      move_to(*block, chunk_list_id::unused);
    }
    if (!config_.backing) { continue; }
    for (std::size_t page = 0; page < pages_per_block; ++page) {
      if (pages.test(page)) {
        std::memset(
          reinterpret_cast<void*>(address + page * page_bytes), discarded_byte, page_bytes);
      }
    }
  }
  return {};
}

status simulated_device::discard(std::span<memory_range const> ranges, stream_handle) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("discard")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard");
  }
  for (auto const& range : ranges) {
    if (auto const done = discard_locked(range, config_.costs.discard_block_ns); !done.ok()) {
      return done;
    }
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard");
}

status simulated_device::discard_and_prefetch(std::span<memory_range const> ranges,
                                              location where,
                                              stream_handle) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("discard_and_prefetch")) { return *failure; }
  if (!config_.discard || !config_.concurrent_managed_access) {
    return failed(status_code::not_supported, "discard_and_prefetch");
  }
  for (auto const& range : ranges) {
    // One call does both, and costs less than the two: its cost is in the prefetch.
    if (auto const done = discard_locked(range, 0.0); !done.ok()) { return done; }
    if (auto const done = prefetch_locked(range, where); !done.ok()) { return done; }
  }
  return noted({}, ranges);
} catch (...) {
  return failed(status_code::out_of_memory, "discard_and_prefetch");
}

status simulated_device::touch(memory_range range, bool write) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("touch")) { return *failure; }
  auto const spans = pages_of(range, false);
  if (!spans) { return failed(status_code::invalid_value, "touch"); }
  if (auto* const observer = observer_.get()) {
    observer->touched(info_.device_id, range, write, false);
  }
  auto const& costs = config_.costs;
  for (auto const& [block, pages, address] : *spans) {
    auto const missing = pages & ~block->on_device;
    // A hit changes nothing: the kernel driver does not see it.
    if (missing.none()) {
      if (write) { block->discarded &= ~pages; }
      continue;
    }
    auto const bare  = missing & block->discarded;  // refault one by one
    auto const whole = mask_of(0, block->page_count);
    auto const grown = grow_to_groups(missing & ~bare) & whole & ~block->discarded;
    count_faults(bare.count() + (grown.count() + fault_group_pages - 1) / fault_group_pages, 0);
    spend(static_cast<double>(bare.count()) * costs.discarded_fault_ns);
    auto const moved = migrate_to_device(*block,
                                         grown | bare,
                                         costs.fault_to_device_bytes_per_ns,
                                         costs.first_touch_bytes_per_ns,
                                         migration_cause::coherence);
    if (!moved.ok()) { return moved; }
    if (write) { block->discarded &= ~pages; }
  }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "touch");
}

status simulated_device::cpu_touch(memory_range range, bool write) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("cpu_touch")) { return *failure; }
  auto const spans = pages_of(range, false);
  if (!spans) { return failed(status_code::invalid_value, "cpu_touch"); }
  if (auto* const observer = observer_.get()) {
    observer->touched(info_.device_id, range, write, true);
  }
  for (auto const& [block, pages, address] : *spans) {
    auto const missing = pages & ~block->on_host;
    if (missing.any()) {
      auto const grown = grow_to_groups(missing) & mask_of(0, block->page_count);
      count_faults(0, (grown.count() + fault_group_pages - 1) / fault_group_pages);
      auto const moved = migrate_to_host(
        *block, grown, config_.costs.fault_to_host_bytes_per_ns, migration_cause::coherence);
      if (!moved.ok()) { return moved; }
    }
    if (write) { block->discarded &= ~pages; }
  }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "cpu_touch");
}

std::size_t simulated_device::resident_bytes(memory_range range) const noexcept
{
  std::lock_guard const lock{mutex_};
  auto it = managed_.upper_bound(range.address);
  if (it == managed_.begin()) { return 0; }
  it               = std::prev(it);
  std::size_t sum  = 0;
  auto const begin = std::max(range.address, it->first);
  auto const end   = std::min(range.end(), it->first + it->second.bytes);
  for (auto address = begin / page_bytes * page_bytes; address < end; address += page_bytes) {
    auto const page = (address - it->first) / page_bytes;
    if (it->second.blocks[page / pages_per_block].on_device.test(page % pages_per_block)) {
      sum += std::min(end, address + page_bytes) - std::max(begin, address);
    }
  }
  return sum;
}

}  // namespace rmm_uvm::sim
