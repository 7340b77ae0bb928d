// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Where pages are and how they move: make_resident and eviction of the kernel driver
// (uvm_va_block.c, uvm_pmm_gpu.c).
#include <rmm_uvm/sim/direct_times.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief Arrivals that are noted before those that are over are forgotten. */
constexpr std::size_t most_arrivals = 16384;

/** @brief The part of a block's time that so many of its pages take. */
[[nodiscard]] double part_of(double block_ns, page_set const& pages) noexcept
{
  return block_ns * static_cast<double>(pages.count()) / static_cast<double>(pages_per_block);
}

}  // namespace

void uvm_model::add_resident_bytes(std::uint32_t block, unsigned gpu, std::size_t bytes) noexcept
{
  auto const enter = [bytes](auto& levels) {
    levels.resident_bytes += bytes;
    levels.peak_resident_bytes = std::max(levels.peak_resident_bytes, levels.resident_bytes);
  };
  enter(counters_);
  enter(gpus_[gpu].levels);
  if (config_.programs == 1) { return; }
  enter(counted_[blocks_.program(block)]);
  enter(gpus_[gpu].of_programs[blocks_.program(block)]);
}

void uvm_model::report(direction way,
                       migration_cause cause,
                       std::uint32_t block,
                       std::size_t bytes) noexcept
{
  if (bytes == 0) { return; }
  auto const sum =
    way == direction::to_device ? &model_counters::to_device_bytes : &model_counters::to_host_bytes;
  count(block, sum, bytes);
  // Which of its pages, nobody asks.
  if (listener_ != nullptr) {
    listener_->moved(blocks_.program(block), way, cause, {blocks_.address(block), bytes});
  }
}

void uvm_model::release_chunk(std::uint32_t block, unsigned gpu) noexcept
{
  auto& chunks = gpus_[gpu].chunks;
  if (chunks.list_of(block) == chunk_list_id::none) { return; }
  chunks.move_to(block, chunk_list_id::none);
  add_resident_bytes(block, gpu, 0 - blocks_.chunk_bytes(block));
}

bool uvm_model::take_host_pages(std::uint32_t block, page_set const& pages)
{
  auto const taken = blocks_.host_pages(block);
  auto const fresh = pages - taken;
  if (fresh.none()) { return true; }
  if (fresh.bytes() > config_.host_bytes - counters_.host_page_bytes) { return false; }
  blocks_.set_host_pages(block, taken | fresh);
  count(block, &model_counters::host_page_bytes, fresh.bytes());
  timeline_.spend(static_cast<double>(fresh.count()) * config_.machine.host_page_ns);
  return true;
}

double uvm_model::to_host_ns(page_set const& pages, page_set const& discarded) const noexcept
{
  auto const dead = pages & discarded;
  return part_of(config_.machine.block_to_host_ns, pages - dead) +
         part_of(config_.machine.discarded_to_host_ns, dead);
}

/** @brief Works on what leaves for the host; past libcuda others of the program work beside it. */
void uvm_model::spend_to_host(double ns)
{
  if (!direct_) {
    timeline_.spend(ns);
    return;
  }
  auto const lane     = static_cast<unsigned>(clock_number_ % config_.lanes);
  auto const alone_ns = ns * direct_times::to_host_alone_fraction;
  auto& alone         = to_host_alone_[program_];
  timeline_.spend(ns - alone_ns);
  auto const begin = alone.pause(lane, timeline_.worked_ns(), alone_ns);
  alone.work(lane, begin, begin + alone_ns);
  timeline_.spend(begin + alone_ns - timeline_.worked_ns());
}

void uvm_model::wait_for_room(std::uint32_t block, unsigned gpu)
{
  if (config_.lanes == 1) { return; }
  // Room may have been made in another lane of the program, and for this; so all of it is waited
  // for. Not what others had leave: their clocks are elsewhere.
  timeline_.hold_next_copy(std::max(gpus_[gpu].left_ns[program_], arrival_ns(block)));
}

void uvm_model::note_departure(unsigned gpu) noexcept
{
  auto& left_ns = gpus_[gpu].left_ns[program_];
  left_ns       = std::max(left_ns, timeline_.copied_ns());
}

void uvm_model::note_arrival(std::uint32_t block)
{
  if (config_.lanes == 1) { return; }
  if (arrivals_.size() >= most_arrivals) {
    auto const now_ns = clock_of(program_, 0).host_ns;
    std::erase_if(arrivals_, [now_ns](auto const& one) { return one.second <= now_ns; });
  }
  arrivals_[block] = timeline_.copied_ns();
}

double uvm_model::arrival_ns(std::uint32_t block) const noexcept
{
  auto const it = arrivals_.find(block);
  return it == arrivals_.end() ? 0 : it->second;
}

void uvm_model::leave_gpu(std::uint32_t block, unsigned gpu, page_set const& pages)
{
  auto const here = blocks_.on_gpu(block, gpu);
  if ((here & pages).none()) { return; }
  auto const left = here - pages;
  blocks_.set_on_gpu(block, gpu, left);
  // The chunk stays with the block, first in line for whoever needs memory.
  if (left.none()) { gpus_[gpu].chunks.move_to(block, chunk_list_id::unused); }
}

page_set uvm_model::resident_anywhere(std::uint32_t block) const noexcept
{
  auto pages = blocks_.on_host(block);
  for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
    pages |= blocks_.on_gpu(block, gpu);
  }
  return pages;
}

void uvm_model::leave_others(std::uint32_t block, page_set const& pages, int stays)
{
  if (stays != host && !blocks_.none_on_host(block)) {
    blocks_.set_on_host(block, blocks_.on_host(block) - pages);
  }
  for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
    if (std::cmp_not_equal(gpu, stays)) { leave_gpu(block, gpu, pages); }
  }
}

status uvm_model::evict(std::uint32_t block, unsigned gpu)
{
  count(block, &model_counters::block_operations);
  count(block, &model_counters::evicted_blocks);
  // Discarded pages go to the host too, wherever they are not: as pages without contents.
  auto const discarded = blocks_.discarded(block);
  auto const leaving   = blocks_.on_gpu(block, gpu) | discarded;
  if (leaving.any()) {
    // Written back whether dirty or not; not copied: pages that the host has, and discarded ones.
    auto const on_host = blocks_.on_host(block);
    auto const copied  = leaving - on_host - discarded;
    if (!take_host_pages(block, leaving)) {
      // As the kernel driver: no other victim is tried, the next request begins with another one.
      gpus_[gpu].chunks.move_to(block, chunk_list_id::used);
      count(block, &model_counters::evicted_blocks, std::uint64_t{0} - 1);
      return {status_code::out_of_memory, 0, "evict"};
    }
    spend_to_host(to_host_ns(leaving, discarded));
    timeline_.copy(direction::to_host, gpu, copied.bytes(), copied.runs());
    timeline_.hold_next_copy();
    note_departure(gpu);
    report(direction::to_host, migration_cause::eviction, block, copied.bytes());
    count(block, &model_counters::evicted_bytes, copied.bytes());
    count(block, &model_counters::dropped_bytes, (leaving & discarded).bytes());
    blocks_.set_on_host(block, on_host | leaving);
    blocks_.set_on_gpu(block, gpu, {});
    if (config_.gpus > 1) { leave_others(block, leaving, host); }
  }
  release_chunk(block, gpu);
  return {};
}

status uvm_model::make_room(unsigned gpu, std::size_t bytes)
{
  while (free_bytes(gpu) < bytes) {
    auto const victim = gpus_[gpu].chunks.victim();
    if (victim == chunk_lists::nobody) { return {status_code::out_of_memory, 0, "make_room"}; }
    if (auto const evicted = evict(victim, gpu); !evicted.ok()) { return evicted; }
  }
  return {};
}

bool uvm_model::copy_from_gpus(
  std::uint32_t block, unsigned gpu, page_set& rest, bool duplicate, bool direct)
{
  for (unsigned peer = 0; peer < config_.gpus && rest.any(); ++peer) {
    if (peer == gpu || reaches(gpu, peer) != direct) { continue; }
    auto const from = rest & blocks_.on_gpu(block, peer);
    if (from.none()) { continue; }
    if (!direct) {  // by way of pages of the host; a copy of what is read mostly stays in them
      if (!take_host_pages(block, from)) { return false; }
      if (duplicate) { blocks_.set_on_host(block, blocks_.on_host(block) | from); }
    }
    wait_for_room(block, gpu);
    timeline_.copy_between(peer, gpu, from.bytes(), from.runs(), direct);
    note_departure(peer);
    note_arrival(block);
    count(block, &model_counters::peer_bytes, from.bytes());
    rest -= from;
  }
  return true;
}

status uvm_model::to_device(std::uint32_t block,
                            unsigned gpu,
                            page_set const& pages,
                            page_set const& asked,
                            migration_cause cause,
                            bool duplicate)
{
  count(block, &model_counters::block_operations);
  auto const& machine  = config_.machine;
  auto& chunks         = gpus_[gpu].chunks;
  auto const has_chunk = chunks.list_of(block) != chunk_list_id::none;
  if (!has_chunk) {
    auto const bytes = blocks_.chunk_bytes(block);
    if (auto const room = make_room(gpu, bytes); !room.ok()) { return room; }
    add_resident_bytes(block, gpu, bytes);
    chunks.move_to(block, chunk_list_id::used);
  }
  auto const called = cause == migration_cause::user;
  auto const here   = blocks_.on_gpu(block, gpu);
  auto missing      = pages - here;
  if (missing.any()) {
    auto const dead = blocks_.nothing_discarded(block) ? page_set{} : blocks_.discarded(block);
    auto rest       = missing - dead;
    // From where it is closest: another GPU comes before the host, if it can be reached.
    if (config_.gpus > 1) { static_cast<void>(copy_from_gpus(block, gpu, rest, duplicate, true)); }
    auto const copied = rest & blocks_.on_host(block);
    if (copied.any()) {
      if (called) {
        timeline_.spend(part_of(machine.block_to_device_ns, copied));
        if (direct_) { timeline_.spend(part_of(direct_times::block_to_device_ns, copied)); }
      }
      wait_for_room(block, gpu);
      timeline_.copy(direction::to_device, gpu, copied.bytes(), copied.runs());
      note_arrival(block);
      auto const wanted = (copied & asked).bytes();
      report(direction::to_device, cause, block, wanted);
      report(direction::to_device, migration_cause::prefetch, block, copied.bytes() - wanted);
      rest -= copied;
    }
    if (config_.gpus > 1 && !copy_from_gpus(block, gpu, rest, duplicate, false)) {
      return {status_code::out_of_memory, 0, "to_device"};
    }
    auto const filled = rest | (missing & dead);
    if (filled.any()) {
      count(block, &model_counters::filled_bytes, filled.bytes());
      if (called) {
        timeline_.spend(
          part_of(has_chunk ? machine.refill_block_ns : machine.populate_block_ns, filled));
      }
    }
    blocks_.set_on_gpu(block, gpu, here | missing);
  }
  if (!duplicate) { leave_others(block, pages, static_cast<int>(gpu)); }
  chunks.move_to(block, chunk_list_id::used);
  return {};
}

status uvm_model::to_host(std::uint32_t block,
                          page_set const& pages,
                          page_set const& asked,
                          migration_cause cause,
                          bool duplicate)
{
  count(block, &model_counters::block_operations);
  auto const on_host = blocks_.on_host(block);
  auto const coming  = pages - on_host;
  if (!take_host_pages(block, coming)) { return {status_code::out_of_memory, 0, "to_host"}; }
  auto const discarded = blocks_.discarded(block);
  if (cause == migration_cause::user) { spend_to_host(to_host_ns(coming, discarded)); }
  auto rest = coming - discarded;
  for (unsigned gpu = 0; gpu < config_.gpus && rest.any(); ++gpu) {
    auto const copied = rest & blocks_.on_gpu(block, gpu);
    if (copied.none()) { continue; }
    timeline_.copy(direction::to_host, gpu, copied.bytes(), copied.runs());
    note_departure(gpu);
    auto const wanted = (copied & asked).bytes();
    report(direction::to_host, cause, block, wanted);
    report(direction::to_host, migration_cause::prefetch, block, copied.bytes() - wanted);
    rest -= copied;
  }
  blocks_.set_on_host(block, on_host | pages);
  if (!duplicate) { leave_others(block, pages, host); }
  return {};
}

}  // namespace rmm_uvm::sim
