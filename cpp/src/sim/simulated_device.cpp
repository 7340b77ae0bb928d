// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Makes the simulated device, and has its commands that move no pages.
#include <rmm_uvm/sim/simulated_device.hpp>
#include <rmm_uvm/sim/simulated_moves.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {
namespace {

[[nodiscard]] std::shared_ptr<simulated_node> node_of(simulated_device_config const& config)
{
  simulated_node_config result;
  result.gpus           = config.neighbors + 1;
  result.capacity_bytes = config.capacity_bytes;
  result.host_bytes     = config.integrated ? 0 : config.host_bytes;  // no other memory
  result.kernel_time    = false;                                      // time is the driver's alone,
  result.beside         = false;  // one operation after the other
  result.machine        = config.machine;
  result.driver         = config.driver;
  result.behind_host    = config.behind_host;
  return std::make_shared<simulated_node>(result);
}

/** @brief Ordinals are numbers in the node; one that is too large has the last of them. */
[[nodiscard]] unsigned number_of(simulated_device_config const& config) noexcept
{
  return std::min(static_cast<unsigned>(std::max(config.device_id, 0)), config.neighbors);
}

[[nodiscard]] device_info info_of(node_gpu const& gpu, simulated_device_config const& features)
{
  device_info info;
  info.device_id      = gpu.ordinal();
  info.name           = "simulated device";
  info.uuid           = node_gpu::uuid_of(gpu.number());
  info.total_bytes    = gpu.node().config().capacity_bytes;
  info.driver_version = 13000;
  info.simulated      = true;
  info.integrated     = features.integrated;
  info.numa_node      = features.numa_node;
  if (!features.concurrent_managed_access) {
    info.concurrent_managed_access =
      availability::no("the simulated device was made without concurrent managed access");
  }
  if (!features.discard) {
    info.discard = availability::no("the simulated device was made without discard");
  }
  if (!features.direct_migration) {
    info.direct_migration =
      availability::no("the simulated device was made without direct migration");
  } else if (features.concurrent_managed_access) {
    info.direct_migration = availability::yes();
  } else {
    info.direct_migration = info.concurrent_managed_access;
  }
  info.host_pages = features.host_pages
                      ? info.concurrent_managed_access
                      : availability::no("the simulated device was made without host pages");
  if (features.integrated) {
    info.discard          = availability::no("device memory is host memory: it would free nothing");
    info.direct_migration = info.host_pages =
      availability::no("device memory is host memory: nothing migrates");
  }
  return info;
}

}  // namespace

simulated_device::simulated_device(simulated_device_config const& config)
  : simulated_device{config, node_gpu{node_of(config), number_of(config), config.device_id}}
{
}

simulated_device::simulated_device(std::shared_ptr<simulated_node> node,
                                   unsigned gpu,
                                   simulated_device_config const& features)
  : simulated_device{features, node_gpu{std::move(node), gpu, static_cast<int>(gpu)}}
{
}

simulated_device::simulated_device(simulated_device_config const& features, node_gpu gpu)
  : config_{features},
    gpu_{std::move(gpu)},
    info_{info_of(gpu_, features)},
    streams_{gpu_.node().config().beside},
    allocations_{gpu_, features.backing},
    threads_{gpu_.number(), gpu_.node().config().beside, features.places_at_once},
    counters_{gpu_, answers_, features.counters, info_.concurrent_managed_access},
    program_{gpu_, answers_, allocations_, threads_, config_.integrated},
    neighbors_{gpu_, answers_},
    view_{gpu_, allocations_}
{
  auto const model       = gpu_.enter();
  gpu_.account().traffic = features.tells_moves ? &traffic_observers() : nullptr;
}

simulated_device::~simulated_device()
{
  if (gpu_.has_the_node_alone()) { return; }  // the node goes, too
  auto const model = gpu_.enter();
  allocations_.leave(model);
  gpu_.account().tallies.clear();
  gpu_.account().traffic = nullptr;
  gpu_.node().publish();
}

opened_move_queue simulated_device::open_moves()
{
  if (auto const planned = answers_.refusal_met_by("open_moves")) { return {nullptr, *planned}; }
  if (auto counted = counters_.available(); !counted.available) {
    return {nullptr, std::move(counted)};
  }
  if (!info_.concurrent_managed_access.available) {
    return {nullptr, info_.concurrent_managed_access};
  }
  return {std::make_unique<simulated_moves>(gpu_, answers_), availability::yes()};
}

status simulated_device::order(stream_handle later, stream_handle earlier) noexcept
{
  auto const model = gpu_.enter(streams_.lane_of(later));
  if (auto const failure = answers_.met_by("order")) { return *failure; }
  // Everything happens in call order: what was issued is done. Only its time may be later.
  model->wait_for_lane(streams_.lane_of(earlier));
  return {};
}

status simulated_device::mark(std::size_t, stream_handle) noexcept
{
  return answers_.met_by("mark").value_or(status{});
}

bool simulated_device::passed(std::size_t) noexcept { return true; }

bool simulated_device::idle(stream_handle) noexcept { return true; }

status simulated_device::own_stream(own_stream_use which, stream_handle& stream) noexcept
{
  if (auto const failure = answers_.met_by("own_stream")) { return *failure; }
  stream = streams_.name(which);
  return {};
}

status simulated_device::memory(device_memory& memory) noexcept
{
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("memory")) { return *failure; }
  memory = {model->free_bytes(gpu_.number()), info_.total_bytes};
  return {};
}

status simulated_device::unmanaged_bytes(std::size_t& bytes) noexcept
{
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("unmanaged_bytes")) { return *failure; }
  bytes = model->levels(gpu_.number()).device_bytes;
  return {};
}

status simulated_device::allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("allocate_managed")) { return *failure; }
  return allocations_.allocate_managed(model, bytes, address);
} catch (...) {
  return failed(status_code::out_of_memory, "allocate_managed");
}

status simulated_device::free_managed(std::uintptr_t address) noexcept
{
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("free_managed")) { return *failure; }
  return allocations_.free_managed(model, address);
}

status simulated_device::graph_of(stream_handle stream,
                                  std::shared_ptr<captured_graph const>& graph) noexcept
{
  if (auto const failure = answers_.met_by("graph_of")) { return *failure; }
  auto const found = answers_.graph_of(stream);
  if (found == nullptr) { return {status_code::not_supported, 0, "graph_of"}; }
  graph = found;
  return {};
}

status simulated_device::synchronize(stream_handle stream) noexcept
{
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("synchronize")) { return *failure; }
  model->wait_for_lane(streams_.lane_of(stream));
  return {};
}

}  // namespace rmm_uvm::sim
