// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/**
 * @brief A simulated device whose streams can be busy: what is asked in such a stream comes later.
 *
 * As on a GPU behind a long kernel. A stream is busy from `keep_busy` until somebody waits for it;
 * a stream that is ordered behind a busy one is busy, too. What waits in busy streams happens in
 * the order in which it was asked for, whichever stream it is in. Thread-safe.
 */
class late_driver final : public uvm_driver {
 public:
  explicit late_driver(std::shared_ptr<sim::simulated_device> device) : device_{std::move(device)}
  {
  }

  /** @brief A long kernel begins in a stream. */
  void keep_busy(stream_handle stream)
  {
    std::lock_guard const lock{mutex_};
    busy_.insert(stream);
  }
  /** @brief A kernel is launched into a stream: `work` happens in its turn. */
  void launch(stream_handle stream, std::function<void()> work)
  {
    static_cast<void>(in_its_turn(stream, [work = std::move(work)] {
      work();
      return status{};
    }));
  }
  /** @brief All kernels end, and what waited for them happens. */
  void catch_up()
  {
    std::lock_guard const lock{mutex_};
    run_all();
  }

  [[nodiscard]] device_info const& info() const noexcept override { return device_->info(); }
  [[nodiscard]] migration_counters const& counters() const noexcept override
  {
    return device_->counters();
  }
  status memory(device_memory& memory) noexcept override { return device_->memory(memory); }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    return device_->allocate_managed(bytes, address);
  }
  status free_managed(std::uintptr_t address) noexcept override
  {
    catch_up();  // as cudaFree does
    return device_->free_managed(address);
  }
  status prefetch(memory_range range, location where, stream_handle stream) noexcept override
  {
    auto const result =
      in_its_turn(stream, [=, this] { return device_->prefetch(range, where, stream); });
    if (after_migration) { after_migration(range, where); }
    return result;
  }
  status migrate(memory_range range, location where) noexcept override
  {
    auto const result = device_->migrate(range, where);
    if (after_migration) { after_migration(range, where); }
    return result;
  }
  status discard(std::span<memory_range const> ranges, stream_handle stream) noexcept override
  {
    return in_its_turn(stream,
                       [=, this, kept = copied(ranges)] { return device_->discard(kept, stream); });
  }
  status discard_and_prefetch(std::span<memory_range const> ranges,
                              location where,
                              stream_handle stream) noexcept override
  {
    return in_its_turn(stream, [=, this, kept = copied(ranges)] {
      return device_->discard_and_prefetch(kept, where, stream);
    });
  }
  status advise(memory_range range, memory_advice what, location where) noexcept override
  {
    if (before_advice) { before_advice(what); }
    return device_->advise(range, what, where);
  }
  status order(stream_handle later, stream_handle earlier) noexcept override
  {
    std::lock_guard const lock{mutex_};
    if (busy_.contains(earlier)) { busy_.insert(later); }
    return {};
  }
  status own_stream(own_stream_use which, stream_handle& stream) noexcept override
  {
    return device_->own_stream(which, stream);
  }
  status mark(std::size_t number, stream_handle stream) noexcept override
  {
    std::lock_guard const lock{mutex_};
    not_passed_.erase(number);
    if (busy_.contains(stream)) { not_passed_.insert(number); }
    return {};
  }
  [[nodiscard]] bool passed(std::size_t number) noexcept override
  {
    std::lock_guard const lock{mutex_};
    return !not_passed_.contains(number);
  }
  [[nodiscard]] capture_state capturing(stream_handle stream) noexcept override
  {
    return device_->capturing(stream);
  }
  [[nodiscard]] bool idle(stream_handle stream) noexcept override
  {
    std::lock_guard const lock{mutex_};
    return !busy_.contains(stream);
  }
  status synchronize(stream_handle stream) noexcept override
  {
    std::lock_guard const lock{mutex_};
    if (busy_.contains(stream)) { run_all(); }
    return {};
  }
  status not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept override
  {
    return device_->not_on_host(range, parts);
  }

  /** @brief Called within each call of that kind, if set: what others do meanwhile. */
  std::function<void(memory_advice)> before_advice;
  std::function<void(memory_range, location)> after_migration;

 private:
  [[nodiscard]] static std::vector<memory_range> copied(std::span<memory_range const> ranges)
  {
    return {ranges.begin(), ranges.end()};
  }
  status in_its_turn(stream_handle stream, std::function<status()> const& work)
  {
    std::lock_guard const lock{mutex_};
    if (!busy_.contains(stream)) { return work(); }
    waiting_.push_back(work);
    return {};
  }
  void run_all()
  {
    for (auto const& work : std::exchange(waiting_, {})) {
      static_cast<void>(work());
    }
    busy_.clear();
    not_passed_.clear();
  }

  std::shared_ptr<sim::simulated_device> device_;
  std::mutex mutex_;
  std::set<stream_handle> busy_;
  std::set<std::size_t> not_passed_;
  std::vector<std::function<status()>> waiting_;
};

}  // namespace rmm_uvm::tests
