// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Kernels: what they access, in which order, and where they stall on page faults.
#include <rmm_uvm/sim/density_prefetcher.hpp>
#include <rmm_uvm/sim/kernel_runner.hpp>

#include <algorithm>

namespace rmm_uvm::sim {
namespace {

/** @brief Pages that a kernel with several accesses reads of one before it turns to the next. */
constexpr std::uint64_t pages_per_turn = pages_per_big_page;

/** @brief Accesses after which a kernel asks whether it shall stop: a fraction of a millisecond. */
constexpr std::uint32_t accesses_per_question = 4096;

}  // namespace

/** @brief How far a kernel is in one of its accesses: its cursor, and pages that it waits with. */
class kernel_runner::progress {
 public:
  progress(kernel_access const& access, block_span const& span)
    : span_{span}, cursor_{access.pattern, span.last_page - span.first_page}, write_{access.write}
  {
  }

  /** @brief The pages of one block that come next. @return false at the end */
  bool next(std::uint64_t most, page_faults& found)
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

kernel_runner::kernel_runner(model_config const& config,
                             timeline& time,
                             program_clocks& clocks,
                             managed_ranges const& ranges,
                             block_table const& blocks,
                             model_account& account,
                             copy_waits const& waits,
                             fault_service& faults) noexcept
  : config_{config},
    timeline_{time},
    clocks_{clocks},
    ranges_{ranges},
    blocks_{blocks},
    account_{account},
    waits_{waits},
    faults_{faults}
{
}

bool kernel_runner::hits(std::uint32_t block, unsigned gpu) const noexcept
{
  return blocks_.all_on_gpu(block, gpu) && blocks_.nothing_discarded(block) &&
         !blocks_.policy(block).read_mostly;
}

struct kernel_runner::running_kernel {
  explicit running_kernel(kernel_launch const& launched) : kernel{launched} {}

  kernel_launch const& kernel;
  std::vector<progress> accesses;
  std::vector<page_faults> rest;  // of each access: a run that met more faults than may be pending
  std::vector<page_faults> waiting;  // for the next batches
  std::size_t outstanding{0};        // pages that may wait
  std::size_t pending{0};            // pages that do
  std::size_t going{0};              // accesses that have not ended
  std::size_t turn{0};               // whose it is
  std::uint32_t unasked{0};          // accesses since it was asked whether it shall stop
  bool stopped{false};
  double now_ns{0};
};

status kernel_runner::prepare(running_kernel& running) const
{
  auto const& kernel = running.kernel;
  if (kernel.gpu >= config_.gpus) { return {status_code::invalid_value, 0, "launch"}; }
  running.outstanding =
    kernel.outstanding_faults > 0 ? kernel.outstanding_faults : config_.machine.outstanding_faults;
  for (auto const& access : kernel.accesses) {
    auto const span = ranges_.find(access.range, false, clocks_.program());
    if (!span) { return {status_code::invalid_value, 0, "launch"}; }
    running.accesses.emplace_back(access, *span);
    if (access.pattern.kind == pattern_kind::pointer_chase) { running.outstanding = 1; }
  }
  running.going = running.accesses.size();
  running.rest.resize(running.going);
  return {};
}

void kernel_runner::access_pages(running_kernel& running, page_faults& given)
{
  auto const gpu = running.kernel.gpu;
  // What another stream or lane brings may not be there yet.
  running.now_ns = std::max(running.now_ns, waits_.arrival_ns(given.block));
  if (hits(given.block, gpu)) {
    account_.count(given.block, &model_counters::block_operations);
    running.now_ns +=
      static_cast<double>(given.pages.bytes()) / config_.machine.memory_bytes_per_ns;
    given.pages = {};
    return;
  }
  auto const& machine = config_.machine;
  page_set remote;
  auto const missing = faults_.missing_for(given.block, gpu, given.pages, given.write, remote);
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
    account_.count(given.block, &model_counters::remote_bytes, bytes);
  }
  if (asked.any()) {
    running.waiting.push_back({given.block, asked, given.write});
    running.pending += asked.count();
  } else {
    account_.count(given.block, &model_counters::block_operations);
  }
  given.pages = later;
}

void kernel_runner::ask_for_pages(running_kernel& running)
{
  auto const accesses = running.accesses.size();
  auto const most     = accesses > 1 ? pages_per_turn : pages_per_block;
  while (running.going > 0 && running.pending < running.outstanding) {
    if (++running.unasked >= accesses_per_question) {
      running.unasked    = 0;
      auto const& kernel = running.kernel;
      running.stopped    = kernel.shall_stop != nullptr && kernel.shall_stop(kernel.asker);
      if (running.stopped) { return; }
    }
    running.turn = running.turn + 1 < accesses ? running.turn + 1 : 0;
    auto& given  = running.rest[running.turn];
    if (given.pages.any() || running.accesses[running.turn].next(most, given)) {
      access_pages(running, given);
    } else if (given.block != chunk_lists::nobody) {
      given.block = chunk_lists::nobody;  // ended; it is passed over from now on
      --running.going;
    }
  }
}

status kernel_runner::launch(kernel_launch const& kernel)
{
  running_kernel running{kernel};
  if (auto const ready = prepare(running); !ready.ok()) { return ready; }
  auto const ready_ns = clocks_.stream_ns(kernel.stream);
  clocks_.spend(config_.machine.launch_ns);
  running.now_ns = std::max(ready_ns, clocks_.now_ns());
  status result;
  while (result.ok()) {
    ask_for_pages(running);
    if (running.stopped) { result = {status_code::driver_error, 0, "launch: stopped"}; }
    if (running.stopped || running.waiting.empty()) { break; }
    timeline_.begin(running.now_ns);
    result          = faults_.serve_batch(running.waiting, kernel.gpu);
    running.now_ns  = std::max(running.now_ns, timeline_.finish());
    running.pending = 0;
    for (auto const& each : running.waiting) {
      running.pending += each.pages.count();
    }
  }
  clocks_.issue(kernel.stream, running.now_ns + kernel.compute_ns);
  return result;
}

}  // namespace rmm_uvm::sim
