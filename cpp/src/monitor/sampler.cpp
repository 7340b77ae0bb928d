// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "sampler_core.hpp"

#include <rmm_uvm/monitor/sampler.hpp>
#include <rmm_uvm/monitor/steady_clock.hpp>

#include <stdexcept>
#include <utility>

namespace rmm_uvm::monitor {

sampler::sampler(std::vector<slot_settings> slots,
                 sampler_settings settings,
                 std::shared_ptr<clock> time)
{
  if (settings.interval_ns == 0 || settings.capacity == 0) {
    throw std::invalid_argument{"a sampler needs an interval and a capacity above 0"};
  }
  if (!time) { time = std::make_shared<steady_clock>(); }
  core_ = std::make_shared<core>(std::move(slots), settings, std::move(time));
}

sampler::~sampler()
{
  if (core_->forked()) {
    // Its mutexes and condition variables may be in use by a thread that does not exist here:
    // destroying them could wait for it for ever. So this little memory is left alone.
    core_->abandon();
    return;
  }
  core_->stop();
}

void sampler::start()
{
  if (core_->forked()) {
    throw std::logic_error{
      "this sampler was made before a fork and samples in the parent only: make another one"};
  }
  core_->start();
}

void sampler::stop() noexcept
{
  if (!core_->forked()) { core_->stop(); }
}

bool sampler::running() const noexcept { return core_->running(); }

bool sampler::sample_now() noexcept { return !core_->forked() && core_->tick(); }

bool sampler::set_levels(int device_id, std::shared_ptr<memory_level_source> source) noexcept
{
  auto* const found = core_->find(device_id);
  if (found == nullptr) { return false; }
  if (!core_->forked()) { found->set_levels(std::move(source)); }
  return true;
}

bool sampler::set_external(int device_id,
                           std::optional<std::uint64_t> footprint_bytes,
                           std::optional<std::uint64_t> managed_bytes) noexcept
{
  auto* const found = core_->find(device_id);
  if (found == nullptr) { return false; }
  found->set_external(footprint_bytes, managed_bytes);
  return true;
}

availability sampler::faults(int device_id) const { return core_->faults(device_id); }

std::size_t sampler::count(std::uint64_t since) const noexcept { return core_->count(since); }

ring_read sampler::read(std::uint64_t since, std::span<sample> into) const noexcept
{
  return core_->read(since, into);
}

std::uint64_t sampler::next_sequence() const noexcept { return core_->next_sequence(); }

bool sampler::wait(std::uint64_t sequence, std::chrono::nanoseconds timeout) const noexcept
{
  return core_->wait(sequence, timeout);
}

std::uint64_t sampler::cost_ns() const noexcept { return core_->cost_ns(); }

}  // namespace rmm_uvm::monitor
