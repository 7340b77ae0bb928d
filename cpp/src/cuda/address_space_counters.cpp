// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/address_space_counters.hpp>

#include <utility>

namespace rmm_uvm::cuda {
namespace {

using uvm_tools::counter;
using uvm_tools::flag;

}  // namespace

address_space_counters::address_space_counters(std::unique_ptr<counter_tracker> tracker,
                                               std::shared_ptr<system_calls> system,
                                               bool all_processors) noexcept
  : system_{std::move(system)}, tracker_{std::move(tracker)}, all_processors_{all_processors}
{
  if (all_processors_) { cpu_.store(tracker_.get()); }
}

opened_address_space_counters address_space_counters::open(std::shared_ptr<system_calls> system,
                                                           int uvm_descriptor,
                                                           processor_id const& processor)
{
  auto opened = counter_tracker::open(system, uvm_descriptor, processor);
  if (!opened.tracker) { return {nullptr, std::move(opened.opened)}; }
  auto counted =
    opened.tracker->count(flag(counter::bytes_to_device) | flag(counter::bytes_to_host));
  if (!counted.available) { return {nullptr, std::move(counted)}; }
  std::unique_ptr<address_space_counters> counters{
    new address_space_counters{std::move(opened.tracker), std::move(system), !processor}};
  return {std::move(counters), availability::yes()};
}

migration_totals address_space_counters::read() const noexcept
{
  auto const* const cpu = cpu_.load(std::memory_order_acquire);
  return {tracker_->total(counter::bytes_to_device),
          tracker_->total(counter::bytes_to_host),
          cpu == nullptr ? 0 : cpu->total(counter::cpu_faults),
          tracker_->total(counter::gpu_faults)};
}

availability address_space_counters::count_faults(int uvm_descriptor)
{
  if (all_processors_) {
    return tracker_->count(flag(counter::cpu_faults) | flag(counter::gpu_faults));
  }
  if (!process_tracker_) {
    auto opened = counter_tracker::open(system_, uvm_descriptor, std::nullopt);
    if (!opened.tracker) { return std::move(opened.opened); }
    process_tracker_ = std::move(opened.tracker);
    cpu_.store(process_tracker_.get(), std::memory_order_release);
  }
  auto counted = process_tracker_->count(flag(counter::cpu_faults));
  if (!counted.available) { return counted; }
  counted = tracker_->count(flag(counter::gpu_faults));
  if (!counted.available) { process_tracker_->stop_counting(flag(counter::cpu_faults)); }
  return counted;
}

void address_space_counters::stop_faults() noexcept
{
  if (process_tracker_) { process_tracker_->stop_counting(flag(counter::cpu_faults)); }
  tracker_->stop_counting(flag(counter::gpu_faults) |
                          (all_processors_ ? flag(counter::cpu_faults) : 0));
}

}  // namespace rmm_uvm::cuda
