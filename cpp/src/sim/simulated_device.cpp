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

[[nodiscard]] std::shared_ptr<simulated_node> node_of(simulated_device_config const& config)
{
  simulated_node_config result;
  result.gpus           = config.neighbors + 1;
  result.capacity_bytes = config.capacity_bytes;
  result.host_bytes     = config.host_bytes;
  result.kernel_time    = false;  // time is the driver's alone,
  result.beside         = false;  // one operation after the other
  result.machine        = config.machine;
  result.driver         = config.driver;
  return std::make_shared<simulated_node>(result);
}

/** @brief Ordinals are numbers in the node; one that is too large has the last of them. */
[[nodiscard]] unsigned number_of(simulated_device_config const& config) noexcept
{
  return std::min(static_cast<unsigned>(std::max(config.device_id, 0)), config.neighbors);
}

}  // namespace

simulated_device::simulated_device(simulated_device_config const& config)
  : simulated_device{node_of(config), number_of(config), config}
{
  info_.device_id = config.device_id;
}

simulated_device::simulated_device(std::shared_ptr<simulated_node> node,
                                   unsigned gpu,
                                   simulated_device_config const& features)
  : config_{features},
    node_{std::move(node)},
    gpu_{gpu},
    migrating_{gpu, node_->config().beside, features.places_at_once}
{
  info_.device_id      = static_cast<int>(gpu);
  info_.name           = "simulated device";
  info_.uuid           = uuid_of(gpu);
  info_.total_bytes    = node_->config().capacity_bytes;
  info_.driver_version = 13000;
  info_.simulated      = true;
  if (!features.concurrent_managed_access) {
    info_.concurrent_managed_access =
      availability::no("the simulated device was made without concurrent managed access");
  }
  if (!features.discard) {
    info_.discard = availability::no("the simulated device was made without discard");
  }
  if (!features.direct_migration) {
    info_.direct_migration =
      availability::no("the simulated device was made without direct migration");
  } else if (features.concurrent_managed_access) {
    info_.direct_migration = availability::yes();
  } else {
    info_.direct_migration = info_.concurrent_managed_access;
  }
}

simulated_device::~simulated_device()
{
  if (node_.use_count() == 1) { return; }  // the node goes, too
  auto const model = enter();
  for (auto const& [address, addresses] : managed_) {
    static_cast<void>(model->remove_range(address));
  }
  for (auto const& [address, allocation] : device_) {
    model->free_device(gpu_, allocation.bytes);
  }
  account().tallies.clear();
  node_->publish();
}

status simulated_device::finish(simulated_node::turn const& model, status done) noexcept
{
  // One operation after the other: each is over before the program's next begins.
  model->synchronize();
  node_->publish();
  return done;
}

std::optional<status> simulated_device::injected(std::string_view call) const
{
  return answers_.met_by(call);
}

void simulated_device::fail_call(std::string_view call, status failure, unsigned skip)
{
  auto const model = enter();
  answers_.plan(call, failure, skip);
}

std::size_t simulated_device::cancel_failures()
{
  auto const model = enter();
  return answers_.cancel();
}

void simulated_device::set_capture_state(stream_handle stream, capture_state state)
{
  auto const model = enter();
  capture_states_.insert_or_assign(stream, state);
}

unsigned simulated_device::lane_of(stream_handle stream) const noexcept
{
  if (!node_->config().beside) { return 0; }
  auto const* const name = static_cast<char const*>(stream);
  for (unsigned number = 0; number < own_stream_count; ++number) {
    if (name == &own_streams_[number]) { return number + 1; }
  }
  return 0;
}

status simulated_device::order(stream_handle later, stream_handle earlier) noexcept
{
  auto const model = enter(later);
  if (auto const failure = injected("order")) { return *failure; }
  // Everything happens in call order: what was issued is done. Only its time may be later.
  model->wait_for_lane(lane_of(earlier));
  return {};
}

status simulated_device::mark(std::size_t, stream_handle) noexcept
{
  auto const model = enter();
  return injected("mark").value_or(status{});
}

bool simulated_device::passed(std::size_t) noexcept { return true; }

bool simulated_device::idle(stream_handle) noexcept { return true; }

status simulated_device::own_stream(own_stream_use which, stream_handle& stream) noexcept
{
  auto const model = enter();
  if (auto const failure = injected("own_stream")) { return *failure; }
  // A name that no stream of a program has.
  stream = &own_streams_[static_cast<std::size_t>(which)];
  return {};
}

capture_state simulated_device::capturing(stream_handle stream) noexcept
{
  auto const model = enter();
  auto const it    = capture_states_.find(stream);
  return it == capture_states_.end() ? capture_state::none : it->second;
}

status simulated_device::memory(device_memory& memory) noexcept
{
  auto const model = enter();
  if (auto const failure = injected("memory")) { return *failure; }
  memory = {model->free_bytes(gpu_), info_.total_bytes};
  return {};
}

status simulated_device::allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("allocate_managed")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_managed"); }
  address_range addresses{bytes, config_.backing ? backing_kind::own : backing_kind::none};
  auto const taken = addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_managed"); }
  auto const entered = managed_.emplace(taken, std::move(addresses)).first;
  try {
    model->add_range({taken, bytes});
  } catch (...) {
    managed_.erase(entered);
    throw;
  }
  address = taken;
  return finish(model, {});
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_managed");
}

status simulated_device::free_managed(std::uintptr_t address) noexcept
{
  auto const model = enter();
  if (auto const failure = injected("free_managed")) { return *failure; }
  if (!model->remove_range(address)) { return failed(status_code::invalid_value, "free_managed"); }
  managed_.erase(address);
  return finish(model, {});
}

status simulated_device::allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("allocate_device")) { return *failure; }
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_device"); }
  // Before the rounding, which could overflow.
  if (bytes > info_.total_bytes) { return failed(status_code::out_of_memory, "allocate_device"); }
  auto const rounded =
    (bytes + device_granularity_bytes - 1) / device_granularity_bytes * device_granularity_bytes;
  // Shared: as cudaMalloc memory, and as managed memory cannot, it can be opened by others.
  device_allocation allocation{
    rounded, address_range{rounded, config_.backing ? backing_kind::shared : backing_kind::none}};
  auto const taken = allocation.addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_device"); }
  auto const entered = device_.emplace(taken, std::move(allocation)).first;
  auto const made    = model->allocate_device(gpu_, rounded);
  if (!made.ok()) {
    device_.erase(entered);
    return finish(model, made);
  }
  address = taken;
  return finish(model, {});
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_device");
}

status simulated_device::free_device(std::uintptr_t address) noexcept
{
  auto const model = enter();
  auto const it    = device_.find(address);
  if (it == device_.end()) { return failed(status_code::invalid_value, "free_device"); }
  model->free_device(gpu_, it->second.bytes);
  device_.erase(it);
  return finish(model, {});
}

std::optional<memory_kind> simulated_device::find_memory(std::uintptr_t address) const noexcept
{
  auto const model = enter();
  if (auto const found = model->range_of(address)) {
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
  auto const model = enter();
  auto const it    = device_.find(base);
  return it == device_.end() ? -1 : it->second.addresses.descriptor();
}

std::optional<status> simulated_device::planned_answer(std::string_view call) const
{
  auto const model = enter();
  return injected(call);
}

std::optional<availability> simulated_device::planned_refusal(std::string_view call) const
{
  auto const planned = planned_answer(call);
  if (!planned) { return std::nullopt; }
  return availability::no(std::string{planned->call} + " answered " + to_string(planned->code));
}

status simulated_device::synchronize(stream_handle stream) noexcept
{
  auto const model = enter();
  if (auto const failure = injected("synchronize")) { return *failure; }
  model->wait_for_lane(lane_of(stream));
  return {};
}

availability simulated_device::available() const
{
  if (auto const planned = planned_refusal("available")) { return *planned; }
  return config_.counters ? availability::yes()
                          : availability::no("the simulated device was made without counters");
}

migration_totals simulated_device::read() const noexcept
{
  if (!config_.counters) { return {}; }
  auto const& counted = account();
  return {counted.host_to_device_bytes.load(std::memory_order_relaxed),
          counted.device_to_host_bytes.load(std::memory_order_relaxed),
          counted.cpu_faults.load(std::memory_order_relaxed),
          counted.gpu_faults.load(std::memory_order_relaxed)};
}

availability simulated_device::request_faults() const
{
  if (auto const planned = planned_refusal("request_faults")) { return *planned; }
  auto const counted = available();
  if (counted.available) { account().fault_requests.fetch_add(1, std::memory_order_relaxed); }
  return counted;
}

void simulated_device::release_faults() const noexcept
{
  account().fault_requests.fetch_sub(1, std::memory_order_relaxed);
}

availability simulated_device::attach(migration_tally& tally)
{
  if (!config_.counters) { return available(); }
  if (!config_.concurrent_managed_access) { return info_.concurrent_managed_access; }
  auto const model = enter();
  auto& tallies    = account().tallies;
  if (std::find(tallies.begin(), tallies.end(), &tally) == tallies.end()) {
    tallies.push_back(&tally);
  }
  return availability::yes();
}

void simulated_device::detach(migration_tally& tally) noexcept
{
  auto const model = enter();
  std::erase(account().tallies, &tally);
}

simulated_statistics simulated_device::statistics() const noexcept
{
  auto const model    = enter();
  auto const& counted = model->counters(gpu_);
  auto const& levels  = model->levels(gpu_, gpu_);
  auto const& all     = model->levels(gpu_);
  return {.host_to_device_bytes = counted.to_device_bytes,
          .device_to_host_bytes = counted.to_host_bytes,
          .evicted_bytes        = counted.evicted_bytes,
          .evicted_blocks       = counted.evicted_blocks,
          .dropped_bytes        = counted.dropped_bytes,
          .gpu_fault_groups     = counted.fault_services,
          .gpu_faults           = counted.gpu_faults,
          .cpu_faults           = counted.cpu_faults,
          .modelled_ns          = static_cast<std::uint64_t>(model->now_ns()),
          .managed_bytes        = counted.managed_bytes,
          .device_bytes         = all.device_bytes,
          .resident_bytes       = levels.resident_bytes,
          .peak_resident_bytes  = levels.peak_resident_bytes,
          .host_page_bytes      = counted.host_page_bytes,
          .neighbor_bytes       = counted.resident_bytes - levels.resident_bytes,
          .lent_bytes           = all.resident_bytes - levels.resident_bytes};
}

}  // namespace rmm_uvm::sim
