// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Commands and observations of the simulated device; moving pages is in simulated_pages.cpp.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief cudaMalloc hands out multiples of this. Source: seen on an H200, CUDA 13.0. */
constexpr std::size_t device_granularity_bytes = 512;

[[nodiscard]] constexpr status failed(status_code code, char const* call) noexcept
{
  return {code, 0, call};
}

}  // namespace

simulated_device::simulated_device(simulated_device_config const& config) : config_{config}
{
  info_.device_id      = config.device_id;
  info_.name           = "simulated device";
  info_.total_bytes    = config.capacity_bytes;
  info_.driver_version = 13000;
  info_.simulated      = true;
  if (!config.concurrent_managed_access) {
    info_.concurrent_managed_access =
      availability::no("the simulated device was made without concurrent managed access");
  }
  if (!config.discard) {
    info_.discard = availability::no("the simulated device was made without discard");
  }
}

std::optional<status> simulated_device::injected(std::string_view call)
{
  auto const it = std::find_if(
    failures_.begin(), failures_.end(), [&](auto const& planned) { return planned.call == call; });
  if (it == failures_.end()) { return std::nullopt; }
  if (it->skip > 0) {
    --it->skip;
    return std::nullopt;
  }
  auto const failure = it->failure;
  failures_.erase(it);
  return failure;
}

void simulated_device::fail_call(std::string_view call, status failure, unsigned skip)
{
  std::lock_guard const lock{mutex_};
  failures_.push_back({std::string{call}, failure, skip});
}

void simulated_device::set_capture_state(stream_handle stream, capture_state state)
{
  std::lock_guard const lock{mutex_};
  capture_states_.insert_or_assign(stream, state);
}

capture_state simulated_device::capturing(stream_handle stream) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = capture_states_.find(stream);
  return it == capture_states_.end() ? capture_state::none : it->second;
}

std::size_t simulated_device::free_bytes() const noexcept
{
  return config_.capacity_bytes - totals_.device_bytes - totals_.resident_bytes;
}

status simulated_device::memory(device_memory& memory) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("memory")) { return *failure; }
  memory = {free_bytes(), config_.capacity_bytes};
  return {};
}

status simulated_device::allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("allocate_managed")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_managed"); }
  managed_allocation allocation;
  allocation.addresses =
    address_range{bytes, config_.backing ? backing_kind::own : backing_kind::none};
  if (allocation.addresses.address() == 0) {
    return failed(status_code::out_of_memory, "allocate_managed");
  }
  auto const pages = (bytes + page_bytes - 1) / page_bytes;
  allocation.bytes = bytes;
  allocation.blocks.resize((pages + pages_per_block - 1) / pages_per_block);
  if (auto const rest = pages % pages_per_block; rest != 0) {
    allocation.blocks.back().page_count = static_cast<std::uint16_t>(rest);
  }
  address = allocation.addresses.address();
  for (std::size_t index = 0; index < allocation.blocks.size(); ++index) {
    allocation.blocks[index].address = address + index * va_block_bytes;
  }
  managed_.emplace(address, std::move(allocation));
  totals_.managed_bytes += bytes;
  spend(config_.costs.allocate_managed_ns);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_managed");
}

status simulated_device::free_managed(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("free_managed")) { return *failure; }
  auto const it = managed_.find(address);
  if (it == managed_.end()) { return failed(status_code::invalid_value, "free_managed"); }
  for (auto& block : it->second.blocks) {
    release(block);
    totals_.host_page_bytes -= block.host_pages.count() * page_bytes;
  }
  totals_.managed_bytes -= it->second.bytes;
  managed_.erase(it);
  spend(config_.costs.free_managed_ns);
  return {};
}

status simulated_device::allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("allocate_device")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_device"); }
  // Before the rounding, which could overflow; nothing is evicted for what cannot fit.
  if (bytes > config_.capacity_bytes) {
    return failed(status_code::out_of_memory, "allocate_device");
  }
  auto const rounded =
    (bytes + device_granularity_bytes - 1) / device_granularity_bytes * device_granularity_bytes;
  if (auto const room = make_room(rounded); !room.ok()) {
    return failed(room.code, "allocate_device");
  }
  // Shared: as cudaMalloc memory, and as managed memory cannot, it can be opened by others.
  device_allocation allocation{
    rounded, address_range{rounded, config_.backing ? backing_kind::shared : backing_kind::none}};
  address = allocation.addresses.address();
  if (address == 0) { return failed(status_code::out_of_memory, "allocate_device"); }
  device_.emplace(address, std::move(allocation));
  totals_.device_bytes += rounded;
  spend(config_.costs.allocate_device_ns);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_device");
}

status simulated_device::free_device(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = device_.find(address);
  if (it == device_.end()) { return failed(status_code::invalid_value, "free_device"); }
  totals_.device_bytes -= it->second.bytes;
  device_.erase(it);
  spend(config_.costs.free_device_ns);
  return {};
}

std::optional<memory_kind> simulated_device::find_memory(std::uintptr_t address) const noexcept
{
  auto const within = [&](auto const& allocations) {
    auto const after = allocations.upper_bound(address);
    if (after == allocations.begin()) { return allocations.end(); }
    auto const it = std::prev(after);
    return address - it->first < it->second.bytes ? it : allocations.end();
  };
  std::lock_guard const lock{mutex_};
  if (auto const it = within(managed_); it != managed_.end()) {
    return memory_kind{true, false, it->first, it->second.bytes, info_.device_id};
  }
  if (auto const it = within(device_); it != device_.end()) {
    return memory_kind{false, true, it->first, it->second.bytes, info_.device_id};
  }
  return std::nullopt;
}

int simulated_device::shared_descriptor(std::uintptr_t base) const noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = device_.find(base);
  return it == device_.end() ? -1 : it->second.addresses.descriptor();
}

std::optional<status> simulated_device::planned_answer(std::string_view call)
{
  std::lock_guard const lock{mutex_};
  return injected(call);
}

status simulated_device::synchronize(stream_handle /*stream*/) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("synchronize")) { return *failure; }
  return {};
}

availability simulated_device::available() const
{
  return config_.counters ? availability::yes()
                          : availability::no("the simulated device was made without counters");
}

migration_totals simulated_device::read() const noexcept
{
  if (!config_.counters) { return {}; }
  return {host_to_device_bytes_.load(std::memory_order_relaxed),
          device_to_host_bytes_.load(std::memory_order_relaxed),
          cpu_faults_.load(std::memory_order_relaxed),
          gpu_faults_.load(std::memory_order_relaxed)};
}

availability simulated_device::request_faults() const
{
  auto const counted = available();
  if (counted.available) { fault_requests_.fetch_add(1, std::memory_order_relaxed); }
  return counted;
}

void simulated_device::release_faults() const noexcept
{
  fault_requests_.fetch_sub(1, std::memory_order_relaxed);
}

availability simulated_device::attach(migration_tally& tally)
{
  if (!config_.counters) { return available(); }
  if (!config_.concurrent_managed_access) { return info_.concurrent_managed_access; }
  std::lock_guard const lock{mutex_};
  if (std::find(tallies_.begin(), tallies_.end(), &tally) == tallies_.end()) {
    tallies_.push_back(&tally);
  }
  return availability::yes();
}

void simulated_device::detach(migration_tally& tally) noexcept
{
  std::lock_guard const lock{mutex_};
  std::erase(tallies_, &tally);
}

simulated_statistics simulated_device::statistics() const noexcept
{
  std::lock_guard const lock{mutex_};
  auto result                 = totals_;
  result.host_to_device_bytes = host_to_device_bytes_.load(std::memory_order_relaxed);
  result.device_to_host_bytes = device_to_host_bytes_.load(std::memory_order_relaxed);
  result.modelled_ns          = static_cast<std::uint64_t>(modelled_ns_);
  return result;
}

}  // namespace rmm_uvm::sim
