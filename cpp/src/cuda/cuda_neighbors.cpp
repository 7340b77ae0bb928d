// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Other devices, whose memory the pages of this one may go to.
#include "context_guard.hpp"
#include "cuda_devices.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <string>

namespace rmm_uvm::cuda {
namespace {

/** @brief Lets work of one context use the memory of another. */
[[nodiscard]] CUresult let_access(cuda_api const& api,
                                  CUcontext of,
                                  CUcontext to,
                                  cuda_use const& use) noexcept
{
  context_guard const guard{api, of, use};
  if (guard.pushed() != CUDA_SUCCESS) { return guard.pushed(); }
  auto const result = api.ctx_enable_peer_access(to, 0);
  return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : result;
}

}  // namespace

int cuda_driver::device_count() noexcept
{
  int count = 0;
  if (use_.here()) { static_cast<void>(api_.device_get_count(&count)); }
  return count;
}

availability cuda_driver::open_neighbor(int device_id)
{
  auto const name = "device " + std::to_string(device_id);
  if (device_id == info_.device_id) { return availability::no(name + " is the device itself"); }
  // Before the lock, which another thread may have held at the moment of the fork.
  if (!use_.here()) {
    return availability::no("the driver belongs to the process that this one was forked from");
  }
  std::lock_guard const lock{neighbors_mutex_};
  if (neighbors_.contains(device_id)) { return availability::yes(); }
  auto const count = device_count();
  CUdevice device{};
  if (device_id < 0 || device_id >= count || api_.device_get(&device, device_id) != CUDA_SUCCESS) {
    return no_such_device(device_id, count);
  }
  if (attribute_of(api_, device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) {
    return availability::no(name + " has no concurrent managed access");
  }
  // Both ways: pages go there, and come back by this device's copy engines.
  int there = 0;
  int back  = 0;
  static_cast<void>(api_.device_can_access_peer(&there, device_, device));
  static_cast<void>(api_.device_can_access_peer(&back, device, device_));
  if (there == 0 || back == 0) {
    return availability::no("no peer access between device " + std::to_string(info_.device_id) +
                            " and " + name);
  }
  // As the device's own: the runtime's context, never released.
  CUcontext context{};
  if (auto const result = api_.device_primary_ctx_retain(&context, device);
      result != CUDA_SUCCESS) {
    return refused(api_, result, "no context on " + name);
  }
  for (auto const result :
       {let_access(api_, context_, context, use_), let_access(api_, context, context_, use_)}) {
    if (result == CUDA_ERROR_TOO_MANY_PEERS) {
      return availability::no("no peer access with " + name + ": device " +
                              std::to_string(info_.device_id) +
                              " or it has as many peers as it can have, 8 without NVSwitch");
    }
    if (result != CUDA_SUCCESS) { return refused(api_, result, "no peer access with " + name); }
  }
  auto const uuid = uuid_of(api_, device);
  neighbors_.emplace(device_id, neighbor{context, uuid, {}});
  // Where that does not work, libcuda moves pages there.
  if (direct_ != nullptr) { static_cast<void>(direct_->add(*this, device_id, uuid)); }
  return availability::yes();
}

status cuda_driver::neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept
{
  if (!use_.here()) { return failed(status_code::driver_error, "neighbor_uuid"); }
  std::lock_guard const lock{neighbors_mutex_};
  auto const found = neighbors_.find(device_id);
  if (found == neighbors_.end()) { return {status_code::invalid_value, 0, "neighbor_uuid"}; }
  uuid = found->second.uuid;
  return {};
}

status cuda_driver::neighbor_memory(int device_id, device_memory& memory) noexcept
{
  CUcontext context{};
  if (!use_.here()) { return failed(status_code::driver_error, "neighbor_memory"); }
  {
    std::lock_guard const lock{neighbors_mutex_};
    auto const found = neighbors_.find(device_id);
    if (found == neighbors_.end()) { return {status_code::invalid_value, 0, "neighbor_memory"}; }
    context = found->second.context;
  }
  return read_memory(api_, context, use_, memory);
}

}  // namespace rmm_uvm::cuda
