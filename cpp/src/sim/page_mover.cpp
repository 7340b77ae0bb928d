// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// make_resident and eviction of the kernel driver (uvm_va_block.c, uvm_pmm_gpu.c).
#include <rmm_uvm/sim/direct_times.hpp>
#include <rmm_uvm/sim/page_mover.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief The part of a block's time that so many of its pages take. */
[[nodiscard]] double part_of(double block_ns, page_set const& pages) noexcept
{
  return block_ns * static_cast<double>(pages.count()) / static_cast<double>(pages_per_block);
}

}  // namespace

page_mover::page_mover(model_config const& config,
                       timeline& time,
                       program_clocks const& clocks,
                       block_table& blocks,
                       model_account& account,
                       copy_waits& waits)
  : config_{config},
    timeline_{time},
    clocks_{clocks},
    blocks_{blocks},
    account_{account},
    waits_{waits},
    host_{config, time, blocks, account},
    chunks_(config.gpus),
    to_host_alone_(config.programs, link_engine{config.lanes})
{
}

void page_mover::resize(std::size_t blocks)
{
  for (auto& chunks : chunks_) {
    chunks.resize(blocks);
  }
  host_.resize(blocks);
  waits_.resize(blocks);
}

void page_mover::forget(std::uint32_t block) noexcept
{
  for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
    release_chunk(block, gpu);
  }
  waits_.forget(block);
  host_.forget(block);
}

void page_mover::drop_chunks(std::uint32_t block) noexcept
{
  for (auto& chunks : chunks_) {
    if (chunks.list_of(block) == chunk_list_id::used) {
      chunks.move_to(block, chunk_list_id::discarded);
    }
  }
}

std::size_t page_mover::bytes() const noexcept
{
  auto sum = host_.bytes();
  for (auto const& chunks : chunks_) {
    sum += chunks.bytes();
  }
  return sum;
}

void page_mover::release_chunk(std::uint32_t block, unsigned gpu) noexcept
{
  auto& chunks = chunks_[gpu];
  if (chunks.list_of(block) == chunk_list_id::none) { return; }
  chunks.move_to(block, chunk_list_id::none);
  account_.add_resident_bytes(block, gpu, 0 - held_bytes(block, gpu));
}

double page_mover::to_host_ns(page_set const& pages, page_set const& discarded) const noexcept
{
  auto const dead = pages & discarded;
  return part_of(config_.machine.block_to_host_ns, pages - dead) +
         part_of(config_.machine.discarded_to_host_ns, dead);
}

/** @brief Works on what leaves for the host; past libcuda others of the program work beside it. */
void page_mover::spend_to_host(double ns)
{
  if (!direct_) {
    timeline_.spend(ns);
    return;
  }
  auto const lane     = clocks_.lane();
  auto const alone_ns = ns * direct_times::to_host_alone_fraction;
  auto& alone         = to_host_alone_[clocks_.program()];
  timeline_.spend(ns - alone_ns);
  auto const begin = alone.pause(lane, timeline_.worked_ns(), alone_ns);
  alone.work(lane, begin, begin + alone_ns);
  timeline_.spend(begin + alone_ns - timeline_.worked_ns());
}

void page_mover::leave_gpu(std::uint32_t block, unsigned gpu, page_set const& pages)
{
  auto const here = blocks_.on_gpu(block, gpu);
  if ((here & pages).none()) { return; }
  auto const left = here - pages;
  if (config_.driver.evict_pages) {
    account_.add_resident_bytes(block, gpu, 0 - (here & pages).bytes());
    if (left.none()) { chunks_[gpu].move_to(block, chunk_list_id::none); }
  } else if (left.none()) {
    // The chunk stays with the block, first in line for whoever needs memory.
    chunks_[gpu].move_to(block, chunk_list_id::unused);
  }
  blocks_.set_on_gpu(block, gpu, left);
}

page_set page_mover::resident_anywhere(std::uint32_t block) const noexcept
{
  auto pages = blocks_.on_host(block);
  for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
    pages |= blocks_.on_gpu(block, gpu);
  }
  return pages;
}

void page_mover::leave_others(std::uint32_t block, page_set const& pages, int stays)
{
  if (stays != host_place && !blocks_.none_on_host(block)) {
    if (host_.has_third_tier()) { host_.leave(block, pages); }
    blocks_.set_on_host(block, blocks_.on_host(block) - pages);
  }
  for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
    if (std::cmp_not_equal(gpu, stays)) { leave_gpu(block, gpu, pages); }
  }
}

status page_mover::evict(std::uint32_t block, unsigned gpu, std::size_t bytes)
{
  account_.count(block, &model_counters::block_operations);
  account_.count(block, &model_counters::evicted_blocks);
  // Discarded pages go to the host too, wherever they are not: as pages without contents.
  auto const discarded = blocks_.discarded(block);
  auto const here      = blocks_.on_gpu(block, gpu);
  auto const in_part   = config_.driver.evict_pages && bytes < here.bytes();
  auto const leaving =
    in_part ? here.first((bytes + page_bytes - 1) / page_bytes) : here | discarded;
  if (leaving.any()) {
    // Written back whether dirty or not; not copied: pages that the host has, and discarded ones.
    auto const on_host = blocks_.on_host(block);
    auto const copied  = leaving - on_host - discarded;
    if (!host_.take(block, leaving)) {
      // As the kernel driver: no other victim is tried, the next request begins with another one.
      chunks_[gpu].move_to(block, chunk_list_id::used);
      account_.count(block, &model_counters::evicted_blocks, std::uint64_t{0} - 1);
      return {status_code::out_of_memory, 0, "evict"};
    }
    spend_to_host(to_host_ns(leaving, discarded));
    timeline_.copy(direction::to_host, gpu, copied.bytes(), copied.runs());
    timeline_.hold_next_copy();
    waits_.note_departure(gpu);
    account_.report(direction::to_host, migration_cause::eviction, block, copied.bytes());
    account_.count(block, &model_counters::evicted_bytes, copied.bytes());
    account_.count(block, &model_counters::dropped_bytes, (leaving & discarded).bytes());
    blocks_.set_on_host(block, on_host | leaving);
    if (in_part) {
      account_.add_resident_bytes(block, gpu, 0 - leaving.bytes());
      blocks_.set_on_gpu(block, gpu, here - leaving);
    } else {
      release_chunk(block, gpu);
      blocks_.set_on_gpu(block, gpu, {});
    }
    if (config_.gpus > 1) { leave_others(block, leaving, host_place); }
  } else {
    release_chunk(block, gpu);
  }
  return {};
}

status page_mover::make_room(unsigned gpu, std::size_t bytes, std::uint32_t keep)
{
  for (auto free = free_bytes(gpu); free < bytes; free = free_bytes(gpu)) {
    auto const victim = chunks_[gpu].victim();
    if (victim == chunk_lists::nobody || victim == keep) {
      return {status_code::out_of_memory, 0, "make_room"};
    }
    if (auto const evicted = evict(victim, gpu, bytes - free); !evicted.ok()) { return evicted; }
  }
  return {};
}

status page_mover::take_memory(std::uint32_t block, unsigned gpu, page_set const& pages)
{
  auto& chunks = chunks_[gpu];
  if (config_.driver.evict_pages) {
    chunks.move_to(block, chunk_list_id::used);  // all others go before it
    return make_room(gpu, (pages - blocks_.on_gpu(block, gpu)).bytes(), block);
  }
  auto const bytes = blocks_.chunk_bytes(block);
  if (auto const room = make_room(gpu, bytes); !room.ok()) { return room; }
  account_.add_resident_bytes(block, gpu, bytes);
  chunks.move_to(block, chunk_list_id::used);
  return {};
}

bool page_mover::copy_from_gpus(
  std::uint32_t block, unsigned gpu, page_set& rest, bool duplicate, bool direct)
{
  for (unsigned peer = 0; peer < config_.gpus && rest.any(); ++peer) {
    if (peer == gpu || config_.reaches(gpu, peer) != direct) { continue; }
    auto const from = rest & blocks_.on_gpu(block, peer);
    if (from.none()) { continue; }
    if (!direct) {  // by way of pages of the host_place; a copy of what is read mostly stays in
                    // them
      if (!host_.take(block, from)) { return false; }
      if (duplicate) { blocks_.set_on_host(block, blocks_.on_host(block) | from); }
    }
    waits_.wait_for_room(block, gpu);
    timeline_.copy_between(peer, gpu, from.bytes(), from.runs(), direct);
    waits_.note_departure(peer);
    waits_.note_arrival(block);
    account_.count(block, &model_counters::peer_bytes, from.bytes());
    rest -= from;
  }
  return true;
}

bool page_mover::copy_from_host(std::uint32_t block,
                                unsigned gpu,
                                page_set const& copied,
                                page_set const& asked,
                                migration_cause cause)
{
  if (!host_.recall(block, copied)) { return false; }
  if (cause == migration_cause::user) {
    timeline_.spend(part_of(config_.machine.block_to_device_ns, copied));
    if (direct_) { timeline_.spend(part_of(direct_times::block_to_device_ns, copied)); }
  }
  waits_.wait_for_room(block, gpu);
  timeline_.copy(direction::to_device, gpu, copied.bytes(), copied.runs());
  waits_.note_arrival(block);
  auto const wanted = (copied & asked).bytes();
  account_.report(direction::to_device, cause, block, wanted);
  account_.report(direction::to_device, migration_cause::prefetch, block, copied.bytes() - wanted);
  return true;
}

status page_mover::to_device(std::uint32_t block,
                             unsigned gpu,
                             page_set const& pages,
                             page_set const& asked,
                             migration_cause cause,
                             bool duplicate)
{
  account_.count(block, &model_counters::block_operations);
  auto const& machine  = config_.machine;
  auto& chunks         = chunks_[gpu];
  auto const by_page   = config_.driver.evict_pages;
  auto const has_chunk = !by_page && chunks.list_of(block) != chunk_list_id::none;
  if (!has_chunk) {
    if (auto const taken = take_memory(block, gpu, pages); !taken.ok()) { return taken; }
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
      if (!copy_from_host(block, gpu, copied, asked, cause)) {
        return {status_code::out_of_memory, 0, "to_device"};
      }
      rest -= copied;
    }
    if (config_.gpus > 1 && !copy_from_gpus(block, gpu, rest, duplicate, false)) {
      return {status_code::out_of_memory, 0, "to_device"};
    }
    auto const filled = rest | (missing & dead);
    if (filled.any()) {
      account_.count(block, &model_counters::filled_bytes, filled.bytes());
      if (called) {
        timeline_.spend(
          part_of(has_chunk ? machine.refill_block_ns : machine.populate_block_ns, filled));
      }
      waits_.note_arrival(block);
    }
    if (by_page) { account_.add_resident_bytes(block, gpu, missing.bytes()); }
    blocks_.set_on_gpu(block, gpu, here | missing);
  }
  if (!duplicate) { leave_others(block, pages, static_cast<int>(gpu)); }
  chunks.move_to(block, chunk_list_id::used);
  return {};
}

status page_mover::to_host(std::uint32_t block,
                           page_set const& pages,
                           page_set const& asked,
                           migration_cause cause,
                           bool duplicate)
{
  account_.count(block, &model_counters::block_operations);
  auto const on_host = blocks_.on_host(block);
  auto const coming  = pages - on_host;
  if (!host_.recall(block, pages) || !host_.take(block, coming)) {
    return {status_code::out_of_memory, 0, "to_host"};
  }
  auto const discarded = blocks_.discarded(block);
  if (cause == migration_cause::user) { spend_to_host(to_host_ns(coming, discarded)); }
  auto rest = coming - discarded;
  for (unsigned gpu = 0; gpu < config_.gpus && rest.any(); ++gpu) {
    auto const copied = rest & blocks_.on_gpu(block, gpu);
    if (copied.none()) { continue; }
    timeline_.copy(direction::to_host, gpu, copied.bytes(), copied.runs());
    waits_.note_departure(gpu);
    auto const wanted = (copied & asked).bytes();
    account_.report(direction::to_host, cause, block, wanted);
    account_.report(direction::to_host, migration_cause::prefetch, block, copied.bytes() - wanted);
    rest -= copied;
  }
  blocks_.set_on_host(block, on_host | pages);
  if (!duplicate) { leave_others(block, pages, host_place); }
  return {};
}

}  // namespace rmm_uvm::sim
