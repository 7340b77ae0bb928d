// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Commands and observations of the simulated device; moving pages is in simulated_pages.cpp.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief cudaMalloc hands out multiples of this. Source: seen on an H200, CUDA 13.0. */
constexpr std::size_t device_granularity_bytes = 512;

[[nodiscard]] constexpr status failed(status_code code, char const* call) noexcept
{
  return {code, 0, call};
}

[[nodiscard]] model_config model_of(simulated_device_config const& config)
{
  model_config result;
  result.machine = config.machine;
  // Time is the driver's alone: kernels take none of their own here.
  result.machine.launch_ns           = 0;
  result.machine.memory_bytes_per_ns = std::numeric_limits<double>::infinity();
  result.driver                      = config.driver;
  result.device_bytes                = config.capacity_bytes;
  result.host_bytes                  = config.host_bytes;
  result.gpus                        = config.neighbors + 1;
  return result;
}

}  // namespace

/** @brief Enters the model's migrations into the tallies that are attached. */
class simulated_device::listener final : public migration_listener {
 public:
  explicit listener(std::vector<migration_tally*> const& tallies) : tallies_{tallies} {}
  void moved(direction way, migration_cause cause, memory_range pages) noexcept override
  {
    for (auto* const tally : tallies_) {
      if (way == direction::to_device) {
        tally->to_device(cause, pages);
      } else {
        tally->to_host(cause, pages);
      }
    }
  }

 private:
  std::vector<migration_tally*> const& tallies_;
};

simulated_device::simulated_device(simulated_device_config const& config)
  : config_{config}, model_{model_of(config)}, listener_{std::make_unique<listener>(tallies_)}
{
  model_.listen(listener_.get());
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

simulated_device::~simulated_device() = default;

status simulated_device::finish(status done) noexcept
{
  // One operation after the other: each is over before the next begins.
  model_.synchronize();
  auto const& now = model_.counters();
  host_to_device_bytes_.store(now.to_device_bytes, std::memory_order_relaxed);
  device_to_host_bytes_.store(now.to_host_bytes, std::memory_order_relaxed);
  resident_bytes_.store(model_.levels(0).resident_bytes, std::memory_order_relaxed);
  auto const groups = now.fault_services - published_.fault_services;
  auto const cpu    = now.cpu_faults - published_.cpu_faults;
  if (faults_requested()) {
    gpu_faults_.fetch_add(now.gpu_faults - published_.gpu_faults, std::memory_order_relaxed);
    cpu_faults_.fetch_add(cpu, std::memory_order_relaxed);
  }
  for (auto* const tally : tallies_) {
    tally->count(&cause_totals::gpu_fault_groups, groups);
    tally->count(&cause_totals::cpu_faults, cpu);
  }
  published_ = now;
  return done;
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

status simulated_device::order(stream_handle, stream_handle) noexcept
{
  std::lock_guard const lock{mutex_};
  // Everything happens in call order: what was issued is done.
  return injected("order").value_or(status{});
}

status simulated_device::mark(std::size_t, stream_handle) noexcept
{
  std::lock_guard const lock{mutex_};
  return injected("mark").value_or(status{});
}

bool simulated_device::passed(std::size_t) noexcept { return true; }

status simulated_device::own_stream(own_stream_use which, stream_handle& stream) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("own_stream")) { return *failure; }
  // A name that no stream of a program has.
  stream = &own_streams_[static_cast<std::size_t>(which)];
  return {};
}

capture_state simulated_device::capturing(stream_handle stream) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = capture_states_.find(stream);
  return it == capture_states_.end() ? capture_state::none : it->second;
}

status simulated_device::memory(device_memory& memory) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("memory")) { return *failure; }
  memory = {model_.free_bytes(0), config_.capacity_bytes};
  return {};
}

status simulated_device::allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("allocate_managed")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_managed"); }
  address_range addresses{bytes, config_.backing ? backing_kind::own : backing_kind::none};
  auto const taken = addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_managed"); }
  auto const entered = managed_.emplace(taken, std::move(addresses)).first;
  try {
    model_.add_range({taken, bytes});
  } catch (...) {
    managed_.erase(entered);
    throw;
  }
  address = taken;
  return finish({});
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_managed");
}

status simulated_device::free_managed(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("free_managed")) { return *failure; }
  if (!model_.remove_range(address)) { return failed(status_code::invalid_value, "free_managed"); }
  managed_.erase(address);
  return finish({});
}

status simulated_device::allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("allocate_device")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_device"); }
  // Before the rounding, which could overflow.
  if (bytes > config_.capacity_bytes) {
    return failed(status_code::out_of_memory, "allocate_device");
  }
  auto const rounded =
    (bytes + device_granularity_bytes - 1) / device_granularity_bytes * device_granularity_bytes;
  // Shared: as cudaMalloc memory, and as managed memory cannot, it can be opened by others.
  device_allocation allocation{
    rounded, address_range{rounded, config_.backing ? backing_kind::shared : backing_kind::none}};
  auto const taken = allocation.addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_device"); }
  auto const entered = device_.emplace(taken, std::move(allocation)).first;
  auto const made    = model_.allocate_device(0, rounded);
  if (!made.ok()) {
    device_.erase(entered);
    return finish(made);
  }
  address = taken;
  return finish({});
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_device");
}

status simulated_device::free_device(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const it = device_.find(address);
  if (it == device_.end()) { return failed(status_code::invalid_value, "free_device"); }
  model_.free_device(0, it->second.bytes);
  device_.erase(it);
  return finish({});
}

std::optional<memory_kind> simulated_device::find_memory(std::uintptr_t address) const noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const found = model_.range_of(address)) {
    return memory_kind{true, false, found->address, found->bytes, info_.device_id};
  }
  auto const after = device_.upper_bound(address);
  if (after == device_.begin()) { return std::nullopt; }
  auto const it = std::prev(after);
  if (address - it->first >= it->second.bytes) { return std::nullopt; }
  return memory_kind{false, true, it->first, it->second.bytes, info_.device_id};
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
  auto const& counted = model_.counters();
  auto const& levels  = model_.levels(0);
  return {.host_to_device_bytes = counted.to_device_bytes,
          .device_to_host_bytes = counted.to_host_bytes,
          .evicted_bytes        = counted.evicted_bytes,
          .evicted_blocks       = counted.evicted_blocks,
          .dropped_bytes        = counted.dropped_bytes,
          .gpu_fault_groups     = counted.fault_services,
          .gpu_faults           = counted.gpu_faults,
          .cpu_faults           = counted.cpu_faults,
          .modelled_ns          = static_cast<std::uint64_t>(model_.now_ns()),
          .managed_bytes        = counted.managed_bytes,
          .device_bytes         = levels.device_bytes,
          .resident_bytes       = levels.resident_bytes,
          .peak_resident_bytes  = levels.peak_resident_bytes,
          .host_page_bytes      = counted.host_page_bytes,
          .neighbor_bytes      = counted.resident_bytes - levels.resident_bytes};
}

}  // namespace rmm_uvm::sim
