// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "block_spans.hpp"

#include <rmm_uvm/sim/uvm_model.hpp>

#include <numeric>
#include <stdexcept>

namespace rmm_uvm::sim {
namespace {

[[nodiscard]] std::vector<unsigned> links_of(model_config const& config)
{
  if (!config.links.empty()) { return config.links; }
  std::vector<unsigned> own(config.gpus);
  std::iota(own.begin(), own.end(), 0U);
  return own;
}

}  // namespace

uvm_model::uvm_model(model_config const& config)
  : config_{config},
    timeline_{config.machine, links_of(config), config.programs * config.lanes},
    clocks_{config.programs, config.lanes},
    blocks_{config.gpus},
    account_{config_, blocks_},
    waits_{config_, timeline_, clocks_},
    mover_{config_, timeline_, clocks_, blocks_, account_, waits_},
    commands_{config_, timeline_, clocks_, ranges_, blocks_, account_, mover_},
    faults_{config_, timeline_, clocks_, blocks_, account_, mover_},
    kernels_{config_, timeline_, clocks_, ranges_, blocks_, account_, waits_, faults_}
{
}

void uvm_model::run_as(unsigned program, unsigned lane) noexcept
{
  clocks_.run_as(program, lane);
  timeline_.run_as(clocks_.lane_number());
  if (lane > 0) { wait_for_lane(0); }
}

void uvm_model::add_range(memory_range range)
{
  if (!ranges_.is_free(range)) { throw std::invalid_argument{"no free range of whole blocks"}; }
  auto const program = clocks_.program();
  auto const pages   = (range.bytes + page_bytes - 1) / page_bytes;
  auto const first   = blocks_.take(pages, range.address, program);
  auto const count   = static_cast<std::uint32_t>((pages + pages_per_block - 1) / pages_per_block);
  try {
    mover_.resize(blocks_.size());
    ranges_.add(range.address, {range.bytes, first, count, program});
  } catch (...) {
    blocks_.give_back(first, count);
    throw;
  }
  account_.add(program, &model_counters::managed_bytes, range.bytes);
  clocks_.spend(config_.machine.allocate_managed_ns);
}

bool uvm_model::remove_range(std::uintptr_t address) noexcept
{
  auto const gone = ranges_.beginning_at(address, clocks_.program());
  if (!gone) { return false; }
  synchronize();  // as cudaFree
  for (auto block = gone->first_block; block < gone->first_block + gone->block_count; ++block) {
    mover_.forget(block);
  }
  blocks_.give_back(gone->first_block, gone->block_count);
  account_.add(clocks_.program(), &model_counters::managed_bytes, 0 - gone->bytes);
  ranges_.remove(address);
  clocks_.spend(config_.machine.free_managed_ns);
  return true;
}

status uvm_model::allocate_device(unsigned gpu, std::size_t bytes)
{
  if (gpu >= config_.gpus) { return {status_code::invalid_value, 0, "allocate_device"}; }
  // Nothing is evicted for what cannot fit.
  if (bytes > config_.device_bytes) { return {status_code::out_of_memory, 0, "allocate_device"}; }
  timeline_.begin(now_ns());
  auto const room = mover_.make_room(gpu, bytes);
  clocks_.finish(timeline_.finish());
  if (!room.ok()) { return {room.code, 0, "allocate_device"}; }
  account_.add_device_bytes(clocks_.program(), gpu, bytes);
  clocks_.spend(config_.machine.allocate_device_ns);
  return {};
}

void uvm_model::free_device(unsigned gpu, std::size_t bytes) noexcept
{
  if (gpu >= config_.gpus || bytes > levels(gpu).device_bytes) { return; }
  account_.add_device_bytes(clocks_.program(), gpu, 0 - bytes);
  clocks_.spend(config_.machine.free_device_ns);
}

status uvm_model::cpu_touch(memory_range range, bool write)
{
  auto const span = find(range, false);
  if (!span) { return {status_code::invalid_value, 0, "cpu_touch"}; }
  timeline_.begin(now_ns());
  auto const done = each_block(*span, [&](std::uint32_t block, page_set const& pages) {
    return faults_.serve_cpu(block, pages, write);
  });
  clocks_.finish(timeline_.finish());
  return done;
}

block_policy uvm_model::advised(std::uintptr_t address) const noexcept
{
  auto const found = find({address, 1}, false);
  if (!found) { return {}; }
  auto const block = found->base_block + found->first_page / pages_per_block;
  return blocks_.policy(static_cast<std::uint32_t>(block));
}

bool uvm_model::for_each_block(
  memory_range range,
  bool inward,
  std::function<void(std::uintptr_t, page_set const&)> const& visit) const
{
  auto const span = find(range, inward);
  if (!span) { return false; }
  static_cast<void>(each_block(*span, [&](std::uint32_t block, page_set const& pages) {
    visit(blocks_.address(block), pages);
    return status{};
  }));
  return true;
}

std::size_t uvm_model::resident_bytes(memory_range range, int where) const noexcept
{
  auto const span = find(range, false);
  if (!span || !config_.is_place(where)) { return 0; }
  std::size_t sum = 0;
  static_cast<void>(each_block(*span, [&](std::uint32_t block, page_set const& pages) {
    auto const there =
      where == host ? blocks_.on_host(block) : blocks_.on_gpu(block, static_cast<unsigned>(where));
    auto const begin = blocks_.address(block);
    auto found       = there & pages;
    sum += found.bytes();
    // Only the bytes of the range: its first and last page may reach beyond it.
    if (range.address > begin && range.address - begin < va_block_bytes &&
        found.test((range.address - begin) / page_bytes)) {
      sum -= range.address % page_bytes;
    }
    if (range.end() > begin && range.end() - begin < va_block_bytes &&
        range.end() % page_bytes != 0 && found.test((range.end() - begin) / page_bytes)) {
      sum -= page_bytes - range.end() % page_bytes;
    }
    return status{};
  }));
  return sum;
}

}  // namespace rmm_uvm::sim
