// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Kernels and their page faults (uvm_gpu_replayable_faults.c), faults of the CPU, and where a
// faulting page goes (block_select_processor_residency in uvm_va_block.c).
#include "block_spans.hpp"

#include <rmm_uvm/sim/density_prefetcher.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief Pages that a kernel with several accesses reads of one before it turns to the next. */
constexpr std::uint64_t pages_per_turn = pages_per_big_page;

}  // namespace

/** @brief How far a kernel is in one of its accesses: its cursor, and pages that it waits with. */
class uvm_model::progress {
 public:
  progress(kernel_access const& access, block_span const& span)
    : span_{span}, cursor_{access.pattern, span.last_page - span.first_page}, write_{access.write}
  {
  }

  /** @brief The pages of one block that come next. @return false at the end */
  bool next(std::uint64_t most, faults& found)
  {
    if (run_.count == 0 && !cursor_.next(most, run_)) { return false; }
    auto const page  = span_.first_page + run_.first;
    auto const begin = page % pages_per_block;
    auto const count = std::min<std::uint64_t>(run_.count, pages_per_block - begin);
    found            = {span_.base_block + static_cast<std::uint32_t>(page / pages_per_block),
                        page_set::range(begin, begin + count),
                        write_};
    run_             = {run_.first + count, run_.count - count};
    return true;
  }

 private:
  block_span span_;
  access_cursor cursor_;
  page_run run_;
  bool write_;
};

bool uvm_model::hits(std::uint32_t block, unsigned gpu) const noexcept
{
  return blocks_.all_on_gpu(block, gpu) && blocks_.nothing_discarded(block) &&
         !blocks_.policy(block).read_mostly;
}

page_set uvm_model::missing_for(std::uint32_t block,
                                unsigned gpu,
                                page_set const& pages,
                                bool write,
                                page_set& remote) const noexcept
{
  auto const& policy = blocks_.policy(block);
  auto const here    = blocks_.on_gpu(block, gpu);
  auto missing       = pages - here;
  if (write) {
    if (policy.read_mostly) {  // copies elsewhere have to go first
      auto copies = blocks_.on_host(block);
      for (unsigned peer = 0; peer < config_.gpus; ++peer) {
        if (peer != gpu) { copies |= blocks_.on_gpu(block, peer); }
      }
      missing |= pages & here & copies;
    }
    // What a read brought back after a discard is mapped for reading only.
    if (!blocks_.nothing_discarded(block) && !blocks_.keeps_mappings(block)) {
      missing |= pages & here & blocks_.discarded(block);
    }
  }
  auto const mapped = ((policy.accessed_by >> gpu) & 1U) != 0;
  if (missing.none() || (!mapped && policy.preferred == block_policy::nowhere) ||
      (policy.read_mostly && !write)) {
    return missing;
  }
  auto const reach = [&](int place) {
    return mapped ? std::cmp_not_equal(policy.preferred, gpu) : policy.preferred == place;
  };
  if (reach(host)) { remote |= missing & blocks_.on_host(block); }
  for (unsigned peer = 0; config_.peers && peer < config_.gpus; ++peer) {
    if (peer != gpu && reach(static_cast<int>(peer)) && config_.machine.peer_bytes_per_ns > 0) {
      remote |= missing & blocks_.on_gpu(block, peer);
    }
  }
  return missing - remote;
}

status uvm_model::serve_block(faults const& asked, unsigned gpu)
{
  auto const block = asked.block;
  page_set remote;
  auto const faulted = missing_for(block, gpu, asked.pages, asked.write, remote);
  if (faulted.none()) { return {}; }  // an earlier service of the batch brought them along
  auto const& machine = config_.machine;
  auto const& policy  = blocks_.policy(block);
  auto const dead     = blocks_.nothing_discarded(block) ? page_set{} : blocks_.discarded(block);
  auto const here     = blocks_.on_gpu(block, gpu);
  // Discarded pages fault one by one, and the driver's prefetcher leaves them alone.
  auto const bare = faulted & dead;
  ++counters_.fault_services;
  timeline_.spend(machine.fault_block_ns);
  if (bare.any()) {
    counters_.fault_services += bare.count() - (bare == faulted ? 1 : 0);
    timeline_.spend(static_cast<double>(bare.count()) * machine.discarded_fault_ns);
  }
  auto const on_host = blocks_.on_host(block);
  auto populated     = here | on_host;
  for (unsigned peer = 0; peer < config_.gpus; ++peer) {
    populated |= blocks_.on_gpu(block, peer);
  }
  auto const at_home   = std::cmp_equal(policy.preferred, gpu);
  auto const duplicate = policy.read_mostly && !asked.write;
  if (policy.preferred != block_policy::nowhere && !at_home && !duplicate) {
    // The page belongs elsewhere: it goes there, and this GPU reads it through a mapping.
    if (policy.preferred == host) {
      counters_.remote_bytes += faulted.bytes();
      timeline_.spend(static_cast<double>(faulted.bytes()) / machine.remote_bytes_per_ns);
      return to_host(block, faulted, faulted, migration_cause::coherence, false);
    }
    if (config_.peers && machine.peer_bytes_per_ns > 0) {
      return to_device(block,
                       static_cast<unsigned>(policy.preferred),
                       faulted,
                       faulted,
                       migration_cause::coherence,
                       false);
    }
  }
  if ((faulted & on_host).any()) { timeline_.spend(machine.unmap_ns); }
  auto const live = faulted - bare;
  auto coming     = faulted;
  if (live.any()) {
    auto const all = config_.driver.prefetch && live.count() >= config_.driver.min_faults &&
                         at_home && populated.none()
                       ? blocks_.whole(block)
                       : prefetched_with(here, live, blocks_.page_count(block), config_.driver);
    coming |= all - dead;
  }
  auto const moved = to_device(block, gpu, coming, faulted, migration_cause::coherence, duplicate);
  if (!moved.ok()) { return moved; }
  if (asked.write && dead.any() && !blocks_.keeps_mappings(block)) {
    blocks_.set_discarded(block, dead - faulted);
  }
  return {};
}

status uvm_model::serve_batch(std::vector<faults>& waiting, unsigned gpu)
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
  std::sort(waiting.begin(), end, [](faults const& a, faults const& b) {
    return a.block != b.block ? a.block < b.block : a.write && !b.write;
  });
  auto const entries =
    std::lround(static_cast<double>(distinct) * (1 + machine.duplicate_fraction));
  ++counters_.fault_batches;
  counters_.gpu_faults += static_cast<std::uint64_t>(entries);
  timeline_.spend(machine.batch_ns + static_cast<double>(entries) * machine.fault_ns);
  auto const evicted_before = counters_.evicted_blocks;
  served_.clear();
  for (auto it = waiting.begin(); it != end;) {
    auto together = *it;
    for (++it; it != end && it->block == together.block && it->write == together.write; ++it) {
      together.pages |= it->pages;
    }
    if (auto const done = serve_block(together, gpu); !done.ok()) { return done; }
    served_.push_back(together);
  }
  timeline_.wait_for_copies();  // the replay comes after them
  waiting.erase(waiting.begin(), end);
  if (counters_.evicted_blocks == evicted_before) { return {}; }
  // What a later block of the batch pushed out before the replay faults again. The last one stays,
  // so that every batch finishes something.
  for (auto& each : served_) {
    page_set remote;
    each.pages = missing_for(each.block, gpu, each.pages, each.write, remote);
    if (each.pages.any()) { waiting.push_back(each); }
  }
  return {};
}

struct uvm_model::running_kernel {
  explicit running_kernel(kernel_launch const& launched) : kernel{launched} {}

  kernel_launch const& kernel;
  std::vector<progress> accesses;
  std::vector<faults> rest;     // of each access: a run that met more faults than may be pending
  std::vector<faults> waiting;  // for the next batches
  std::size_t outstanding{0};   // pages that may wait
  std::size_t pending{0};       // pages that do
  std::size_t going{0};         // accesses that have not ended
  std::size_t turn{0};          // whose it is
  double now_ns{0};
};

status uvm_model::prepare(running_kernel& running) const
{
  auto const& kernel = running.kernel;
  if (kernel.gpu >= config_.gpus) { return {status_code::invalid_value, 0, "launch"}; }
  running.outstanding =
    kernel.outstanding_faults > 0 ? kernel.outstanding_faults : config_.machine.outstanding_faults;
  for (auto const& access : kernel.accesses) {
    auto const span = find(access.range, false);
    if (!span) { return {status_code::invalid_value, 0, "launch"}; }
    running.accesses.emplace_back(access, *span);
    if (access.pattern.kind == pattern_kind::pointer_chase) { running.outstanding = 1; }
  }
  running.going = running.accesses.size();
  running.rest.resize(running.going);
  return {};
}

void uvm_model::access_pages(running_kernel& running, faults& given)
{
  auto const gpu = running.kernel.gpu;
  if (hits(given.block, gpu)) {
    ++counters_.block_operations;
    running.now_ns +=
      static_cast<double>(given.pages.bytes()) / config_.machine.memory_bytes_per_ns;
    given.pages = {};
    return;
  }
  auto const& machine = config_.machine;
  page_set remote;
  auto const missing = missing_for(given.block, gpu, given.pages, given.write, remote);
  auto const room    = running.outstanding - running.pending;
  auto const asked   = missing.count() > room ? missing.first(room) : missing;
  // What may not be asked for yet comes later; all else is done with, or waits.
  auto const later = missing - asked;
  auto const done  = given.pages - later;
  running.now_ns += static_cast<double>((done - remote).bytes()) / machine.memory_bytes_per_ns;
  if (auto const bytes = (remote & done).bytes(); bytes > 0) {
    auto const on_host   = (remote & done & blocks_.on_host(given.block)).bytes();
    auto const peer_rate = machine.peer_remote_bytes_per_ns;
    running.now_ns += static_cast<double>(on_host) / machine.remote_bytes_per_ns;
    if (peer_rate > 0) { running.now_ns += static_cast<double>(bytes - on_host) / peer_rate; }
    counters_.remote_bytes += bytes;
  }
  if (asked.any()) {
    running.waiting.push_back({given.block, asked, given.write});
    running.pending += asked.count();
  } else {
    ++counters_.block_operations;
  }
  given.pages = later;
}

void uvm_model::ask_for_pages(running_kernel& running)
{
  auto const most = running.accesses.size() > 1 ? pages_per_turn : pages_per_block;
  while (running.going > 0 && running.pending < running.outstanding) {
    running.turn = (running.turn + 1) % running.accesses.size();
    auto& given  = running.rest[running.turn];
    if (given.pages.any() || running.accesses[running.turn].next(most, given)) {
      access_pages(running, given);
    } else if (given.block != chunk_lists::nobody) {
      given.block = chunk_lists::nobody;  // ended; it is passed over from now on
      --running.going;
    }
  }
}

status uvm_model::launch(kernel_launch const& kernel)
{
  running_kernel running{kernel};
  if (auto const ready = prepare(running); !ready.ok()) { return ready; }
  auto& ready = streams_[kernel.stream];
  host_ns_ += config_.machine.launch_ns;
  running.now_ns = std::max(ready, host_ns_);
  status result;
  while (result.ok()) {
    ask_for_pages(running);
    if (running.waiting.empty()) { break; }
    timeline_.begin(running.now_ns);
    result          = serve_batch(running.waiting, kernel.gpu);
    running.now_ns  = std::max(running.now_ns, timeline_.finish());
    running.pending = 0;
    for (auto const& each : running.waiting) {
      running.pending += each.pages.count();
    }
  }
  ready    = running.now_ns + kernel.compute_ns;
  last_ns_ = std::max(last_ns_, ready);
  return result;
}

status uvm_model::serve_cpu(std::uint32_t block, page_set const& pages, bool write)
{
  auto const& machine  = config_.machine;
  auto const& policy   = blocks_.policy(block);
  auto const duplicate = policy.read_mostly && !write;
  auto wanted          = pages - blocks_.on_host(block);
  if (write && policy.read_mostly) {
    for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
      wanted |= pages & blocks_.on_gpu(block, gpu);
    }
  }
  while (wanted.any()) {  // one fault at a time
    auto const first   = wanted.next(0);
    auto const fault   = page_set::range(first, first + 1);
    auto const on_host = blocks_.on_host(block);
    auto const coming =
      fault | prefetched_with(on_host, fault, blocks_.page_count(block), config_.driver);
    ++counters_.cpu_faults;
    timeline_.spend(machine.cpu_fault_ns);
    auto const moved = to_host(block, coming, fault, migration_cause::coherence, duplicate);
    if (!moved.ok()) { return moved; }
    timeline_.wait_for_copies();
    wanted -= coming;
  }
  if (write && !blocks_.nothing_discarded(block) && !blocks_.keeps_mappings(block)) {
    blocks_.set_discarded(block, blocks_.discarded(block) - pages);
  }
  return {};
}

status uvm_model::cpu_touch(memory_range range, bool write)
{
  auto const span = find(range, false);
  if (!span) { return {status_code::invalid_value, 0, "cpu_touch"}; }
  timeline_.begin(host_ns_);
  auto const done = each_block(*span, [&](std::uint32_t block, page_set const& pages) {
    return serve_cpu(block, pages, write);
  });
  host_ns_        = std::max(host_ns_, timeline_.finish());
  last_ns_        = std::max(last_ns_, host_ns_);
  return done;
}

}  // namespace rmm_uvm::sim
