// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What programs ask of the kernel driver: prefetch, discard, advice (uvm_migrate.c, uvm_policy.c).
#include "block_spans.hpp"

#include <rmm_uvm/sim/direct_times.hpp>
#include <rmm_uvm/sim/page_commands.hpp>
#include <rmm_uvm/sim/portable_math.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {

page_commands::page_commands(model_config const& config,
                             timeline& time,
                             program_clocks& clocks,
                             managed_ranges const& ranges,
                             block_table& blocks,
                             model_account& account,
                             page_mover& mover) noexcept
  : config_{config},
    timeline_{time},
    clocks_{clocks},
    ranges_{ranges},
    blocks_{blocks},
    account_{account},
    mover_{mover}
{
}

bool page_commands::begin_call(std::uint64_t stream)
{
  auto const ready_ns = clocks_.stream_ns(stream);
  auto const deferred = ready_ns > clocks_.now_ns();
  timeline_.begin(deferred ? ready_ns : clocks_.now_ns());
  timeline_.spend(config_.machine.call_ns);
  if (deferred) { clocks_.spend(config_.machine.deferred_call_ns); }
  return deferred;
}

void page_commands::end_call(std::uint64_t stream, bool deferred)
{
  // On an idle stream the call itself does the work; behind other work the driver does, later.
  if (!deferred) { clocks_.wait_until(timeline_.worked_ns()); }
  clocks_.issue(stream, std::max(clocks_.stream_ns(stream), timeline_.finish()));
  clocks_.done(clocks_.now_ns());
}

status page_commands::prefetch_block(std::uint32_t block, page_set pages, int where)
{
  auto const duplicate = blocks_.policy(block).read_mostly;
  auto const to_gpu    = where != host_place;
  if (to_gpu && config_.gpus > 1 && !config_.peers) {
    // Without peer access the driver leaves a peer's pages where they are, and says nothing.
    for (unsigned peer = 0; peer < config_.gpus; ++peer) {
      if (std::cmp_not_equal(peer, where)) { pages -= blocks_.on_gpu(block, peer); }
    }
    if (pages.none()) { return {}; }
  }
  auto const user = migration_cause::user;
  auto const moved =
    to_gpu ? mover_.to_device(block, static_cast<unsigned>(where), pages, pages, user, duplicate)
           : mover_.to_host(block, pages, pages, user, duplicate);
  if (!moved.ok()) { return moved; }
  if (!blocks_.nothing_discarded(block)) {
    blocks_.set_discarded(block, blocks_.discarded(block) - pages);
  }
  if (duplicate) { blocks_.set_read_only(block, blocks_.read_only(block) | pages); }
  return {};
}

void page_commands::finish_deferred(std::size_t to_device_bytes)
{
  // The driver's own thread does what a stream deferred, one call at a time and to its end.
  timeline_.wait_for_copies();
  if (to_device_bytes == 0) { return; }
  auto const& machine = config_.machine;
  auto const count    = static_cast<double>(to_device_bytes) / static_cast<double>(va_block_bytes);
  timeline_.spend(machine.prefetch_ramp_ns *
                  (1 - exponential(-count / machine.prefetch_ramp_blocks)));
}

status page_commands::prefetch_blocks(block_span const& span, int where, bool deferred)
{
  auto const blocks =
    (span.last_page + pages_per_block - 1) / pages_per_block - span.first_page / pages_per_block;
  // To a GPU, a call for more than one block runs twice over the range: when the range does not
  // fit, the second pass moves it all again (uvm_migrate.c, uvm_migrate).
  auto const passes      = where != host_place && blocks > 1 && config_.driver.two_passes ? 2 : 1;
  auto const from_before = account_.counters().to_device_bytes;
  for (int pass = 0; pass < passes; ++pass) {
    auto const done = each_block(span, [&](std::uint32_t block, page_set const& pages) {
      if (blocks > 1) { timeline_.spend(config_.machine.resident_block_ns); }
      return prefetch_block(block, pages, where);
    });
    if (!done.ok()) { return done; }
  }
  if (deferred) { finish_deferred(account_.counters().to_device_bytes - from_before); }
  return {};
}

status page_commands::prefetch(memory_range range, int where, std::uint64_t stream)
{
  auto const span = ranges_.find(range, false, clocks_.program());
  if (!span || !config_.is_place(where)) { return {status_code::invalid_value, 0, "prefetch"}; }
  auto const deferred = begin_call(stream);
  auto const done     = prefetch_blocks(*span, where, deferred);
  end_call(stream, deferred);
  return done;
}

status page_commands::migrate(memory_range range, int where)
{
  auto const span = ranges_.find(range, false, clocks_.program());
  if (!span || !config_.is_place(where)) { return {status_code::invalid_value, 0, "migrate"}; }
  struct under_way {
    page_mover& mover;
    explicit under_way(page_mover& of) noexcept : mover{of} { mover.set_direct(true); }
    under_way(under_way const&)            = delete;
    under_way& operator=(under_way const&) = delete;
    under_way(under_way&&)                 = delete;
    under_way& operator=(under_way&&)      = delete;
    ~under_way() { mover.set_direct(false); }
  } const marked{mover_};
  timeline_.begin(clocks_.now_ns());
  timeline_.spend(config_.machine.call_ns + direct_times::call_ns);
  auto const done = prefetch_blocks(*span, where, false);
  clocks_.finish(timeline_.finish());
  return done;
}

void page_commands::discard_blocks(block_span const& span, bool unmap, bool with_prefetch)
{
  // Discard and prefetch in one call costs less than the two: what a block takes is in the
  // prefetch.
  auto const block_ns = with_prefetch ? 0.0 : config_.machine.discard_block_ns;
  static_cast<void>(each_block(span, [&](std::uint32_t block, page_set const& pages) {
    account_.count(block, &model_counters::block_operations);
    timeline_.spend(block_ns);
    if (with_prefetch && !blocks_.none_on_host(block)) {
      timeline_.spend(config_.machine.discarded_block_ns);
    }
    auto const discarded = blocks_.discarded(block) | pages;
    blocks_.set_discarded(block, discarded);
    blocks_.set_keeps_mappings(block, !unmap);
    if (unmap) {
      blocks_.set_read_only(block, blocks_.read_only(block) - pages);
      mover_.leave_others(block, pages, -2);
      return status{};
    }
    auto const everything = discarded == blocks_.whole(block);
    if (everything) { mover_.drop_chunks(block); }
    return status{};
  }));
}

status page_commands::discard(memory_range range, bool unmap)
{
  auto const span = ranges_.find(range, true, clocks_.program());
  if (!span) { return {status_code::invalid_value, 0, "discard"}; }
  timeline_.begin(clocks_.now_ns());
  timeline_.spend(config_.machine.call_ns);
  discard_blocks(*span, unmap, false);
  clocks_.finish(timeline_.worked_ns());
  return {};
}

status page_commands::discard_and_prefetch(memory_range range, int where, std::uint64_t stream)
{
  auto const whole_pages = ranges_.find(range, true, clocks_.program());
  auto const span        = ranges_.find(range, false, clocks_.program());
  if (!whole_pages || !span || !config_.is_place(where)) {
    return {status_code::invalid_value, 0, "discard_and_prefetch"};
  }
  auto const deferred = begin_call(stream);
  discard_blocks(*whole_pages, true, true);
  auto const done = prefetch_blocks(*span, where, deferred);
  end_call(stream, deferred);
  return done;
}

void page_commands::leave_one_copy(std::uint32_t block)
{
  // Where it belongs if it is there, then on the host, then on the first GPU that has it
  // (va_block_unset_read_duplication_locked).
  auto const stay = [&](int place) {
    auto const here = place == host_place ? blocks_.on_host(block)
                                          : blocks_.on_gpu(block, static_cast<unsigned>(place));
    if (here.any()) { mover_.leave_others(block, here, place); }
  };
  auto const preferred = blocks_.policy(block).preferred;
  if (preferred != block_policy::nowhere) { stay(preferred); }
  for (int place = host_place; std::cmp_less(place, config_.gpus); ++place) {
    stay(place);
  }
  blocks_.set_read_only(block, {});
}

status page_commands::advise(memory_range range, advice what, int where)
{
  auto const span = ranges_.find(range, false, clocks_.program());
  if (!span || !config_.is_place(where)) { return {status_code::invalid_value, 0, "advise"}; }
  clocks_.spend(config_.machine.call_ns);
  unsigned const bit = where < 0 ? 0U : 1U << static_cast<unsigned>(where);
  return each_block(*span, [&](std::uint32_t block, page_set const&) {
    auto policy = blocks_.policy(block);
    switch (what) {
      case advice::read_mostly:
        policy.read_mostly = true;
        blocks_.set_read_only(block, mover_.resident_anywhere(block));
        break;
      case advice::unset_read_mostly:
        policy.read_mostly = false;
        leave_one_copy(block);
        break;
      case advice::preferred_location: policy.preferred = static_cast<std::int8_t>(where); break;
      case advice::unset_preferred_location: policy.preferred = block_policy::nowhere; break;
      case advice::accessed_by:
        policy.accessed_by = static_cast<std::uint8_t>(policy.accessed_by | bit);
        break;
      case advice::unset_accessed_by:
        policy.accessed_by = static_cast<std::uint8_t>(policy.accessed_by & ~bit);
        break;
    }
    blocks_.set_policy(block, policy);
    return status{};
  });
}

}  // namespace rmm_uvm::sim
