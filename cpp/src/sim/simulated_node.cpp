// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_node.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace rmm_uvm::sim {
namespace {

void check(simulated_node_config const& config)
{
  auto const gpus = std::to_string(config.gpus);
  if (config.gpus == 0 || config.gpus > uvm_model::most_gpus) {
    throw std::invalid_argument{gpus + " GPUs: a simulated node has 1 to " +
                                std::to_string(uvm_model::most_gpus)};
  }
  if (config.capacity_bytes == 0 || config.capacity_bytes % va_block_bytes != 0) {
    throw std::invalid_argument{std::to_string(config.capacity_bytes) +
                                " bytes: a simulated GPU has a multiple of 2 MiB"};
  }
  auto const outside = [&](unsigned link) { return link >= config.gpus; };
  if (!config.links.empty() && (config.links.size() != config.gpus ||
                                std::any_of(config.links.begin(), config.links.end(), outside))) {
    throw std::invalid_argument{"links to the host: name one for each of " + gpus +
                                " GPUs, numbered from 0 and below that"};
  }
}

[[nodiscard]] std::vector<unsigned> groups_of(simulated_node_config const& config)
{
  std::vector<unsigned> groups(config.gpus);
  for (unsigned gpu = 0; gpu < config.gpus; ++gpu) {
    switch (config.topology) {
      case node_topology::nvswitch: groups[gpu] = 0; break;
      case node_topology::pairs: groups[gpu] = gpu / 2; break;
      case node_topology::pcie: groups[gpu] = gpu; break;
    }
  }
  return groups;
}

[[nodiscard]] model_config model_of(simulated_node_config const& config)
{
  check(config);
  model_config result;
  result.machine = config.machine;
  if (!config.kernel_time) {
    result.machine.launch_ns           = 0;
    result.machine.memory_bytes_per_ns = std::numeric_limits<double>::infinity();
  }
  result.driver       = config.driver;
  result.behind_host  = config.behind_host;
  result.device_bytes = config.capacity_bytes;
  result.host_bytes   = config.host_bytes;
  result.gpus         = config.gpus;
  result.links        = config.links;
  result.peer_groups  = groups_of(config);
  result.programs     = config.gpus;
  result.lanes        = config.beside ? simulated_node::lanes : 1;
  return result;
}

[[nodiscard]] traffic traffic_of(direction way, migration_cause cause) noexcept
{
  bool const asked = cause == migration_cause::user;
  if (way == direction::to_device) { return asked ? traffic::brought : traffic::faulted; }
  return asked || cause == migration_cause::eviction ? traffic::evicted : traffic::read_back;
}

}  // namespace

/** @brief Enters the model's migrations into the tallies of the program whose memory moves. */
class simulated_node::listener final : public migration_listener {
 public:
  explicit listener(std::vector<account> const& accounts) : accounts_{accounts} {}
  void moved(unsigned program,
             direction way,
             migration_cause cause,
             memory_range pages) noexcept override
  {
    for (auto* const tally : accounts_[program].tallies) {
      if (way == direction::to_device) {
        tally->to_device(cause, pages);
      } else {
        tally->to_host(cause, pages);
      }
    }
    for (auto* const window : accounts_[program].windows) {
      if (window->moves.size() < window->moves.capacity()) {
        window->moves.push_back({pages, pages.bytes, way == direction::to_device, cause});
      } else {
        ++window->lost;
      }
    }
    auto const* const slot = accounts_[program].traffic;
    if (auto* const observer = slot == nullptr ? nullptr : slot->get(); observer != nullptr) {
      auto const block = va_block_floor(pages.address);
      observer->moved({block, va_block_bytes}, pages.bytes, traffic_of(way, cause));
    }
  }

 private:
  std::vector<account> const& accounts_;
};

simulated_node::simulated_node(simulated_node_config const& config)
  : config_{config}, model_{model_of(config)}, accounts_(config.gpus), occupied_bytes_(config.gpus)
{
  listener_ = std::make_unique<listener>(accounts_);
  model_.listen(listener_.get());
}

simulated_node::~simulated_node() = default;

void simulated_node::publish() noexcept
{
  for (unsigned program = 0; program < config_.gpus; ++program) {
    auto& to           = accounts_[program];
    auto const& now    = model_.counters(program);
    auto const groups  = now.fault_services - to.published.fault_services;
    auto const cpu     = now.cpu_faults - to.published.cpu_faults;
    auto const relaxed = std::memory_order_relaxed;
    to.host_to_device_bytes.store(now.to_device_bytes, relaxed);
    to.device_to_host_bytes.store(now.to_host_bytes, relaxed);
    to.resident_bytes.store(model_.levels(program, program).resident_bytes, relaxed);
    if (to.fault_requests.load(relaxed) > 0) {
      to.gpu_faults.fetch_add(now.gpu_faults - to.published.gpu_faults, relaxed);
      to.cpu_faults.fetch_add(cpu, relaxed);
    }
    for (auto* const tally : to.tallies) {
      tally->count(&cause_totals::gpu_fault_groups, groups);
      tally->count(&cause_totals::cpu_faults, cpu);
    }
    to.published = now;
  }
}

availability simulated_node::peer_access(unsigned gpu, unsigned other) const
{
  if (reaches(gpu, other)) { return availability::yes(); }
  auto const names =
    "GPUs " + std::to_string(gpu) + " and " + std::to_string(other) + " have no peer access: ";
  if (config_.machine.peer_bytes_per_ns <= 0) {
    return availability::no(names + "the simulated machine has none");
  }
  return availability::no(names + (config_.topology == node_topology::pairs
                                     ? "NVLink joins pairs (0 and 1, 2 and 3, ...) here"
                                     : "they are joined by PCIe only"));
}

status simulated_node::occupy(unsigned gpu, std::size_t bytes) noexcept
try {
  if (gpu >= config_.gpus) { return failed(status_code::invalid_value, "occupy"); }
  turn const model{*this, gpu};
  model->wait_until(model->latest_ns());
  auto& taken = occupied_bytes_[gpu];
  status done;
  if (bytes <= taken) {
    model->free_device(gpu, taken - bytes);
  } else {
    done = model->allocate_device(gpu, bytes - taken);
  }
  if (done.ok()) { taken = bytes; }
  publish();
  return done;
} catch (...) {
  return failed(status_code::out_of_memory, "occupy");
}

double simulated_node::synchronize() noexcept
{
  std::lock_guard const lock{mutex_};
  auto const latest = model_.latest_ns();
  for (unsigned program = 0; program < config_.gpus; ++program) {
    model_.run_as(program);
    model_.wait_until(latest);  // its lanes begin no sooner
  }
  return latest;
}

link_traffic simulated_node::host_traffic(unsigned gpu, direction way) const noexcept
{
  std::lock_guard const lock{mutex_};
  return model_.links().host_traffic(config_.links.empty() ? gpu : config_.links[gpu], way);
}

link_traffic simulated_node::peer_traffic(unsigned from, unsigned to) const noexcept
{
  std::lock_guard const lock{mutex_};
  return model_.links().peer_traffic(from, to);
}

}  // namespace rmm_uvm::sim
