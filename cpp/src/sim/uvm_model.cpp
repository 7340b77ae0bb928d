// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Ranges, memory and observations of the model; what moves pages is in the other uvm_*.cpp.
#include "block_spans.hpp"

#include <rmm_uvm/sim/uvm_model.hpp>

#include <algorithm>
#include <iterator>
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
    blocks_{config.gpus},
    gpus_(config.gpus),
    counted_(config.programs > 1 ? config.programs : 0),
    clocks_(std::size_t{config.programs} * config.lanes),
    to_host_alone_(config.programs, link_engine{config.lanes})
{
  for (auto& gpu : gpus_) {
    gpu.of_programs.resize(counted_.size());
    gpu.left_ns.resize(config.programs);
  }
}

void uvm_model::run_as(unsigned program, unsigned lane) noexcept
{
  program_      = program;
  clock_number_ = std::size_t{program} * config_.lanes + lane;
  timeline_.run_as(static_cast<unsigned>(clock_number_));
  if (lane > 0) { wait_for_lane(0); }
}

double uvm_model::latest_ns() const noexcept
{
  double latest = 0;
  for (auto const& each : clocks_) {
    latest = std::max(latest, each.host_ns);
  }
  return latest;
}

bool uvm_model::is_free(memory_range range) const noexcept
{
  // Numbers of blocks in the address space have 32 bits.
  constexpr auto end = std::uintptr_t{1} << 53U;
  if (range.bytes == 0 || range.address % va_block_bytes != 0 || range.address >= end ||
      range.bytes > end - range.address) {
    return false;
  }
  auto const next = ranges_.lower_bound(range.address);
  if (next != ranges_.end() && next->first - range.address < range.bytes) { return false; }
  if (next == ranges_.begin()) { return true; }
  auto const& before = *std::prev(next);
  return range.address - before.first >= before.second.bytes;
}

void uvm_model::add_range(memory_range range)
{
  if (!is_free(range)) { throw std::invalid_argument{"no free range of whole blocks"}; }
  auto const pages = (range.bytes + page_bytes - 1) / page_bytes;
  auto const first = blocks_.take(pages, range.address, program_);
  auto const count = static_cast<std::uint32_t>((pages + pages_per_block - 1) / pages_per_block);
  try {
    for (auto& gpu : gpus_) {
      gpu.chunks.resize(blocks_.size());
    }
    ranges_.emplace(range.address, managed_range{range.bytes, first, count, program_});
  } catch (...) {
    blocks_.give_back(first, count);
    throw;
  }
  add(program_, &model_counters::managed_bytes, range.bytes);
  own().host_ns += config_.machine.allocate_managed_ns;
}

bool uvm_model::remove_range(std::uintptr_t address) noexcept
{
  auto const it = ranges_.find(address);
  if (it == ranges_.end() || it->second.program != program_) { return false; }
  synchronize();  // as cudaFree
  auto const& gone = it->second;
  for (auto block = gone.first_block; block < gone.first_block + gone.block_count; ++block) {
    for (unsigned gpu = 0; gpu < config_.gpus; ++gpu) {
      release_chunk(block, gpu);
    }
    arrivals_.erase(block);
    count(block, &model_counters::host_page_bytes, 0 - blocks_.host_pages(block).bytes());
  }
  blocks_.give_back(gone.first_block, gone.block_count);
  add(program_, &model_counters::managed_bytes, 0 - gone.bytes);
  ranges_.erase(it);
  own().host_ns += config_.machine.free_managed_ns;
  return true;
}

status uvm_model::allocate_device(unsigned gpu, std::size_t bytes)
{
  if (gpu >= config_.gpus) { return {status_code::invalid_value, 0, "allocate_device"}; }
  // Nothing is evicted for what cannot fit.
  if (bytes > config_.device_bytes) { return {status_code::out_of_memory, 0, "allocate_device"}; }
  timeline_.begin(own().host_ns);
  auto const room = make_room(gpu, bytes);
  own().host_ns   = std::max(own().host_ns, timeline_.finish());
  own().last_ns   = std::max(own().last_ns, own().host_ns);
  if (!room.ok()) { return {room.code, 0, "allocate_device"}; }
  gpus_[gpu].levels.device_bytes += bytes;
  add(program_, &model_counters::device_bytes, bytes);
  own().host_ns += config_.machine.allocate_device_ns;
  return {};
}

void uvm_model::free_device(unsigned gpu, std::size_t bytes) noexcept
{
  if (gpu >= config_.gpus || bytes > gpus_[gpu].levels.device_bytes) { return; }
  gpus_[gpu].levels.device_bytes -= bytes;
  add(program_, &model_counters::device_bytes, 0 - bytes);
  own().host_ns += config_.machine.free_device_ns;
}

void uvm_model::synchronize(std::uint64_t stream) noexcept
{
  auto const it = own().streams.find(stream);
  if (it != own().streams.end()) { own().host_ns = std::max(own().host_ns, it->second); }
}

void uvm_model::synchronize() noexcept { own().host_ns = std::max(own().host_ns, own().last_ns); }

std::optional<uvm_model::block_span> uvm_model::find(memory_range range, bool inward) const noexcept
{
  auto it = ranges_.upper_bound(range.address);
  if (it == ranges_.begin()) { return std::nullopt; }
  it               = std::prev(it);
  auto const bytes = it->second.bytes;
  if (it->second.program != program_) { return std::nullopt; }  // another process' memory
  auto const offset = range.address - it->first;
  // Not by `range.end()`, which an absurd length takes past the end of the address space.
  if (range.bytes == 0 || offset > bytes || range.bytes > bytes - offset) { return std::nullopt; }
  auto const end = offset + range.bytes;
  auto first     = offset / page_bytes;
  auto last      = (end + page_bytes - 1) / page_bytes;
  if (inward) {  // a page that other bytes share is left alone, except at the range's own end
    first = (offset + page_bytes - 1) / page_bytes;
    if (end < bytes) { last = end / page_bytes; }
  }
  return block_span{it->second.first_block, first, std::max(first, last)};
}

block_policy uvm_model::advised(std::uintptr_t address) const noexcept
{
  auto const found = find({address, 1}, false);
  if (!found) { return {}; }
  auto const block = found->base_block + found->first_page / pages_per_block;
  return blocks_.policy(static_cast<std::uint32_t>(block));
}

std::optional<memory_range> uvm_model::range_of(std::uintptr_t address) const noexcept
{
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) { return std::nullopt; }
  it = std::prev(it);
  if (it->second.program != program_) { return std::nullopt; }
  if (address - it->first >= it->second.bytes) { return std::nullopt; }
  return memory_range{it->first, it->second.bytes};
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
  if (!span || !is_place(where)) { return 0; }
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

std::size_t uvm_model::footprint_bytes() const noexcept
{
  auto sum = blocks_.bytes();
  for (auto const& gpu : gpus_) {
    sum += gpu.chunks.bytes();
  }
  return sum;
}

}  // namespace rmm_uvm::sim
