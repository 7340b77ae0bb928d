// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the links of a GPU carry, and how busy a neighbour is.
#include "cuda_devices.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>
#include <rmm_uvm/driver/link_measurement.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace rmm_uvm::cuda {

status cuda_driver::measure_links(int device_id, std::size_t bytes, link_rates& rates) noexcept
{
  if (!info_.concurrent_managed_access.available) {
    return {status_code::not_supported, 0, "measure_links"};
  }
  if (device_id != location::host_id && !has_neighbor(device_id)) {
    return {status_code::invalid_value, 0, "measure_links"};
  }
  auto const now_ns = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
  };
  link_measurement measurement{*this, now_ns};
  return measurement.measure(device_id, bytes, rates);
}

void cuda_driver::use_load_readers(load_reader_maker make)
{
  std::lock_guard const lock{neighbors_mutex_};
  make_load_reader_ = std::move(make);
}

status cuda_driver::read_neighbor_load(int device_id, neighbor_load& load) noexcept
try {
  constexpr char const* call = "read_neighbor_load";
  if (!use_.here()) { return failed(status_code::driver_error, call); }
  std::shared_ptr<neighbor_load_reader> reader;
  {
    std::lock_guard const lock{neighbors_mutex_};
    bool const own   = device_id == info_.device_id;
    auto const found = neighbors_.find(device_id);
    if (!own && found == neighbors_.end()) { return {status_code::invalid_value, 0, call}; }
    auto& of = own ? own_load_ : found->second.load;
    if (!of.asked) {  // once: a library that is not there does not come later
      of.reader = make_load_reader_(own ? uuid_of(api_, device_) : found->second.uuid);
      of.asked  = true;
    }
    reader = of.reader;
  }
  if (reader == nullptr || !reader->read(load)) { return {status_code::not_supported, 0, call}; }
  return {};
} catch (...) {
  return {status_code::out_of_memory, 0, "read_neighbor_load"};
}

void cuda_driver::use_unmanaged_reader(unmanaged_reader_maker make)
{
  std::lock_guard const lock{neighbors_mutex_};
  make_unmanaged_reader_ = std::move(make);
  unmanaged_             = nullptr;
}

status cuda_driver::unmanaged_bytes(std::size_t& bytes) noexcept
try {
  constexpr char const* call = "unmanaged_bytes";
  if (!use_.here()) { return failed(status_code::driver_error, call); }
  std::shared_ptr<unmanaged_reader const> reader;
  {
    std::lock_guard const lock{neighbors_mutex_};
    if (make_unmanaged_reader_) {  // once: a library that is not there does not come later
      auto made = make_unmanaged_reader_(uuid_text(uuid_of(api_, device_)));
      if (made) { unmanaged_ = std::make_shared<unmanaged_reader const>(std::move(made)); }
      make_unmanaged_reader_ = {};
    }
    reader = unmanaged_;
  }
  if (reader == nullptr) { return {status_code::not_supported, 0, call}; }
  return (*reader)(bytes) ? status{} : failed(status_code::driver_error, call);
} catch (...) {
  return {status_code::out_of_memory, 0, "unmanaged_bytes"};
}

bool cuda_driver::has_neighbor(int device_id) noexcept
{
  if (!use_.here()) { return false; }
  std::lock_guard const lock{neighbors_mutex_};
  return neighbors_.contains(device_id);
}

}  // namespace rmm_uvm::cuda
