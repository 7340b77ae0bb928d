// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/host_memory.hpp>

namespace rmm_uvm::sim {

void host_memory::add(std::uint32_t block, page_set const& pages)
{
  blocks_.set_host_pages(block, blocks_.host_pages(block) | pages);
  account_.count(block, &model_counters::host_page_bytes, pages.bytes());
  if (has_third_tier()) { order_.move_to(block, chunk_list_id::used); }
}

bool host_memory::take(std::uint32_t block, page_set const& pages)
{
  auto fresh = pages - blocks_.host_pages(block);
  if (has_third_tier()) {
    fresh -= blocks_.on_host(block);  // it has them already
    if (order_.list_of(block) == chunk_list_id::unused) {
      order_.move_to(block, chunk_list_id::used);
    }
  }
  if (fresh.none()) { return true; }
  if (!make_room(block, fresh.bytes())) { return false; }
  add(block, fresh);
  timeline_.spend(static_cast<double>(fresh.count()) * config_.machine.host_page_ns);
  return true;
}

bool host_memory::recall(std::uint32_t block, page_set const& pages)
{
  if (!has_third_tier()) { return true; }
  auto const coming = pages & on_third_tier(block);
  if (coming.none()) { return true; }
  // What makes room for them may take theirs.
  account_.count(block, &model_counters::third_tier_bytes, 0 - coming.bytes());
  if (!make_room(block, coming.bytes())) {
    account_.count(block, &model_counters::third_tier_bytes, coming.bytes());
    return false;
  }
  add(block, coming);
  auto const read = coming - blocks_.discarded(block);  // all else was not written there either
  if (read.any()) {
    auto const& tier = config_.behind_host;
    account_.count(block, &model_counters::from_third_tier_bytes, read.bytes());
    timeline_.spend(tier.operation_ns + static_cast<double>(read.bytes()) / tier.read_bytes_per_ns);
  }
  return true;
}

bool host_memory::make_room(std::uint32_t block, std::size_t bytes)
{
  auto const room = [&] { return config_.host_bytes - account_.counters().host_page_bytes; };
  if (bytes <= room()) { return true; }
  if (!has_third_tier()) { return false; }
  while (bytes > room()) {
    auto oldest = order_.victim();
    if (oldest == block) {  // it is what room is made for
      order_.move_to(block, chunk_list_id::used);
      oldest = order_.victim();
    }
    if (oldest == chunk_lists::nobody || oldest == block || !push_on(oldest)) { return false; }
  }
  return true;
}

bool host_memory::push_on(std::uint32_t block)
{
  auto const& tier = config_.behind_host;
  auto const taken = blocks_.host_pages(block);
  // What is on a GPU alone has nothing here but old contents.
  auto const stored = taken & blocks_.on_host(block);
  if (account_.counters().third_tier_bytes + stored.bytes() > tier.capacity_bytes) { return false; }
  auto const written = stored - blocks_.discarded(block);
  if (written.any()) {
    timeline_.spend(tier.operation_ns +
                    static_cast<double>(written.bytes()) / tier.write_bytes_per_ns);
  }
  account_.count(block, &model_counters::to_third_tier_bytes, written.bytes());
  account_.count(block, &model_counters::third_tier_bytes, stored.bytes());
  account_.count(block, &model_counters::host_page_bytes, 0 - taken.bytes());
  blocks_.set_host_pages(block, {});
  order_.move_to(block, chunk_list_id::none);
  return true;
}

void host_memory::leave(std::uint32_t block, page_set const& pages) noexcept
{
  auto const gone = pages & on_third_tier(block);
  account_.count(block, &model_counters::third_tier_bytes, 0 - gone.bytes());
  // Memory in which nothing is left that counts is the first to be given up.
  if (order_.list_of(block) != chunk_list_id::none && (blocks_.on_host(block) - pages).none()) {
    order_.move_to(block, chunk_list_id::unused);
  }
}

void host_memory::forget(std::uint32_t block) noexcept
{
  account_.count(block, &model_counters::host_page_bytes, 0 - blocks_.host_pages(block).bytes());
  if (!has_third_tier()) { return; }
  leave(block, blocks_.whole(block));
  order_.move_to(block, chunk_list_id::none);
}

}  // namespace rmm_uvm::sim
