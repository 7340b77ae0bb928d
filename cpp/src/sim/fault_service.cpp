// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Page faults of GPUs, batch by batch (uvm_gpu_replayable_faults.c), those of the CPU, and where a
// faulting page goes (block_select_processor_residency in uvm_va_block.c).
#include <rmm_uvm/sim/density_prefetcher.hpp>
#include <rmm_uvm/sim/fault_service.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rmm_uvm::sim {

fault_service::fault_service(model_config const& config,
                             timeline& time,
                             program_clocks const& clocks,
                             block_table& blocks,
                             model_account& account,
                             page_mover& mover) noexcept
  : config_{config},
    timeline_{time},
    clocks_{clocks},
    blocks_{blocks},
    account_{account},
    mover_{mover}
{
}

page_set fault_service::missing_for(std::uint32_t block,
                                    unsigned gpu,
                                    page_set const& pages,
                                    bool write,
                                    page_set& remote) const noexcept
{
  auto const policy = blocks_.policy(block);
  auto const here   = blocks_.on_gpu(block, gpu);
  auto missing      = pages - here;
  if (write) {
    if (policy.read_mostly) { missing |= pages & here & blocks_.read_only(block); }
    // What a read brought back after a discard is mapped for reading only.
    if (!blocks_.nothing_discarded(block) && !blocks_.keeps_mappings(block)) {
      missing |= pages & here & blocks_.discarded(block);
    }
  }
  auto const mapped = ((unsigned{policy.accessed_by} >> gpu) & 1U) != 0;
  if (missing.none() || (!mapped && policy.preferred == block_policy::nowhere) ||
      policy.read_mostly) {  // which the accessing GPU always gets a copy of
    return missing;
  }
  auto const reach = [&](int place) {
    return mapped ? std::cmp_not_equal(policy.preferred, gpu) : policy.preferred == place;
  };
  if (reach(host_place)) { remote |= missing & blocks_.in_host_memory(block); }
  for (unsigned peer = 0; config_.peers && peer < config_.gpus; ++peer) {
    if (peer != gpu && reach(static_cast<int>(peer)) && config_.reaches(gpu, peer)) {
      remote |= missing & blocks_.on_gpu(block, peer);
    }
  }
  return missing - remote;
}

page_set fault_service::missing_of(block_faults const& asked,
                                   unsigned gpu,
                                   page_set& writes) const noexcept
{
  page_set remote;
  writes = {};
  if (asked.writes.none()) { return missing_for(asked.block, gpu, asked.reads, false, remote); }
  writes = missing_for(asked.block, gpu, asked.writes, true, remote);
  if (asked.reads.none()) { return writes; }
  auto const reads = asked.reads - asked.writes;  // the stronger access counts
  return writes | missing_for(asked.block, gpu, reads, false, remote);
}

void fault_service::spend_on_unmapping(std::uint32_t block,
                                       unsigned gpu,
                                       page_set const& coming,
                                       page_set const& writes) noexcept
{
  // Who has the pages mapped loses them, or the right to write them: for each a change of its page
  // table, which its memory accesses have to wait for.
  auto const shared = blocks_.policy(block).read_mostly;
  if (!shared && config_.gpus == 1) {  // the usual case
    if ((coming & blocks_.on_host(block)).any()) { timeline_.spend(config_.machine.unmap_ns); }
    return;
  }
  auto const leave = shared ? (coming - blocks_.read_only(block)) | writes : coming;
  auto others      = (leave & blocks_.on_host(block)).any() ? 1 : 0;
  for (unsigned peer = 0; peer < config_.gpus; ++peer) {
    // What this GPU wrote before and gets again beside a fault, it may read from now on.
    auto gone = leave;
    if (peer == gpu) { gone = shared ? leave - writes : page_set{}; }
    if ((gone & blocks_.on_gpu(block, peer)).any()) { ++others; }
  }
  timeline_.spend(others * config_.machine.unmap_ns);
}

status fault_service::share(std::uint32_t block,
                            unsigned gpu,
                            page_set const& coming,
                            page_set const& faulted,
                            page_set const& writes)
{
  // Of what is read mostly, pages that are written go to who writes. All others that are served
  // with them are copied for reading, even if they were there to be written: the driver's
  // prefetcher does not leave out what is there (uvm_va_block_get_prefetch_hint), and what enters
  // read duplication loses the right to write (block_prep_read_duplicate_mapping).
  auto const cause  = migration_cause::coherence;
  auto const copied = coming - writes;
  if (copied.any()) {
    auto const done = mover_.to_device(block, gpu, copied, faulted, cause, true);
    if (!done.ok()) { return done; }
  }
  if (writes.any()) {
    auto const done = mover_.to_device(block, gpu, writes, faulted, cause, false);
    if (!done.ok()) { return done; }
  }
  blocks_.set_read_only(block, (blocks_.read_only(block) | copied) - writes);
  return {};
}

status fault_service::serve_block(block_faults const& asked, unsigned gpu)
{
  auto const block = asked.block;
  page_set writes;
  auto const faulted = missing_of(asked, gpu, writes);
  if (faulted.none()) { return {}; }  // an earlier service of the batch brought them along
  auto const& machine = config_.machine;
  auto const policy   = blocks_.policy(block);
  auto const dead     = blocks_.nothing_discarded(block) ? page_set{} : blocks_.discarded(block);
  auto const here     = blocks_.on_gpu(block, gpu);
  // Discarded pages fault one by one, and the driver's prefetcher leaves them alone.
  auto const bare = faulted & dead;
  account_.count(block, &model_counters::fault_services);
  timeline_.spend(machine.fault_block_ns);
  if (bare.any()) {
    account_.count(
      block, &model_counters::fault_services, bare.count() - (bare == faulted ? 1 : 0));
    timeline_.spend(static_cast<double>(bare.count()) * machine.discarded_fault_ns);
  }
  auto const at_home = std::cmp_equal(policy.preferred, gpu);
  if (policy.preferred != block_policy::nowhere && !at_home && !policy.read_mostly) {
    // The page belongs elsewhere: it goes there, and this GPU reads it through a mapping.
    if (policy.preferred == host_place) {
      account_.count(block, &model_counters::remote_bytes, faulted.bytes());
      timeline_.spend(static_cast<double>(faulted.bytes()) / machine.remote_bytes_per_ns);
      return mover_.to_host(block, faulted, faulted, migration_cause::coherence, false);
    }
    if (config_.reaches(gpu, static_cast<unsigned>(policy.preferred))) {
      return mover_.to_device(block,
                              static_cast<unsigned>(policy.preferred),
                              faulted,
                              faulted,
                              migration_cause::coherence,
                              false);
    }
  }
  auto const live = faulted - bare;
  auto coming     = faulted;
  if (live.any()) {
    auto const whole = config_.driver.prefetch && live.count() >= config_.driver.min_faults &&
                       at_home && mover_.resident_anywhere(block).none();
    auto const all = whole ? blocks_.whole(block)
                           : served_with(here, live, blocks_.page_count(block), config_.driver);
    coming |= (policy.read_mostly ? all : all - here) - dead;
  }
  spend_on_unmapping(block, gpu, coming, writes);
  auto const cause = migration_cause::coherence;
  auto const moved = policy.read_mostly
                       ? share(block, gpu, coming, faulted, writes)
                       : mover_.to_device(block, gpu, coming, faulted, cause, false);
  if (!moved.ok()) { return moved; }
  if (writes.any() && dead.any() && !blocks_.keeps_mappings(block)) {
    blocks_.set_discarded(block, dead - writes);
  }
  return {};
}

void fault_service::ask_again(unsigned gpu, std::vector<page_faults>& waiting) const
{
  // What a later block of the batch pushed out before the replay faults again. The last one stays,
  // so that every batch finishes something.
  page_set writes;
  for (auto const& each : served_) {
    auto const reads = missing_of(each, gpu, writes) - writes;
    if (reads.any()) { waiting.push_back({each.block, reads, false}); }
    if (writes.any()) { waiting.push_back({each.block, writes, true}); }
  }
}

status fault_service::serve_batch(std::vector<page_faults>& waiting, unsigned gpu)
{
  auto const& machine = config_.machine;
  auto const most =
    std::max(std::size_t{1},
             static_cast<std::size_t>(machine.batch_faults / (1 + machine.duplicate_fraction)));
  // What does not fit into a batch is dropped by the driver and raised again.
  std::size_t distinct = 0;
  std::size_t served   = 0;
  while (served < waiting.size() && distinct + waiting[served].pages.count() <= most) {
    distinct += waiting[served++].pages.count();
  }
  if (served == 0) {  // more pages of one block than a batch takes
    auto const first = waiting.front().pages.first(most);
    waiting.insert(waiting.begin(), {waiting.front().block, first, waiting.front().write});
    waiting[1].pages -= first;
    served   = 1;
    distinct = most;
  }
  auto const end = waiting.begin() + static_cast<std::ptrdiff_t>(served);
  std::sort(waiting.begin(), end, [](page_faults const& a, page_faults const& b) {
    return a.block < b.block;
  });
  auto const entries =
    std::lround(static_cast<double>(distinct) * (1 + machine.duplicate_fraction));
  account_.add(clocks_.program(), &model_counters::fault_batches, 1);
  account_.add(clocks_.program(), &model_counters::gpu_faults, static_cast<std::uint64_t>(entries));
  timeline_.spend(machine.batch_ns + static_cast<double>(entries) * machine.fault_ns);
  auto const evicted_before = account_.counters().evicted_blocks;
  served_.clear();
  // A block is served once for all of its faults, whatever they are (service_fault_batch_block).
  for (auto it = waiting.begin(); it != end;) {
    auto& together = served_.emplace_back();
    together.block = it->block;
    for (; it != end && it->block == together.block; ++it) {
      (it->write ? together.writes : together.reads) |= it->pages;
    }
    if (auto const done = serve_block(together, gpu); !done.ok()) { return done; }
  }
  timeline_.wait_for_copies();  // the replay comes after them
  waiting.erase(waiting.begin(), end);
  if (account_.counters().evicted_blocks != evicted_before) { ask_again(gpu, waiting); }
  return {};
}

status fault_service::serve_cpu(std::uint32_t block, page_set const& pages, bool write)
{
  auto const& machine = config_.machine;
  auto const cause    = migration_cause::coherence;
  auto const shared   = blocks_.policy(block).read_mostly;
  auto wanted         = pages - blocks_.in_host_memory(block);
  if (write && shared) { wanted |= pages & blocks_.read_only(block); }
  while (wanted.any()) {  // one fault at a time
    auto const first   = wanted.next(0);
    auto const fault   = page_set::range(first, first + 1);
    auto const on_host = blocks_.in_host_memory(block);
    auto const coming =
      fault | prefetched_with(on_host, fault, blocks_.page_count(block), config_.driver);
    account_.count(block, &model_counters::cpu_faults);
    timeline_.spend(machine.cpu_fault_ns);
    // What is read mostly is written page by page: see `share`.
    auto copied = page_set{};
    if (shared) { copied = write ? coming - fault : coming; }
    auto const moved = coming - copied;
    auto done        = mover_.to_host(block, moved, fault, cause, false);
    if (done.ok() && copied.any()) { done = mover_.to_host(block, copied, fault, cause, true); }
    if (!done.ok()) { return done; }
    if (shared) { blocks_.set_read_only(block, (blocks_.read_only(block) | copied) - moved); }
    timeline_.wait_for_copies();
    wanted -= write && shared ? fault : coming;
  }
  if (write && !blocks_.nothing_discarded(block) && !blocks_.keeps_mappings(block)) {
    blocks_.set_discarded(block, blocks_.discarded(block) - pages);
  }
  return {};
}

}  // namespace rmm_uvm::sim
