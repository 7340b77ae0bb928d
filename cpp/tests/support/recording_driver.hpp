// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Counters whose totals the test sets. */
class fake_counters final : public migration_counters {
 public:
  std::atomic<std::uint64_t> host_to_device_bytes{0};  ///< what `read` answers
  std::atomic<std::uint64_t> device_to_host_bytes{0};  ///< what `read` answers
  std::atomic<std::uint64_t> cpu_faults{0};            ///< what `read` answers
  std::atomic<std::uint64_t> gpu_faults{0};            ///< what `read` answers
  mutable std::atomic<int> fault_requests{0};          ///< granted and not taken back
  availability state{};                                ///< what `available` answers
  availability faults{};                               ///< what `request_faults` answers

  [[nodiscard]] availability available() const override { return state; }
  [[nodiscard]] migration_totals read() const noexcept override
  {
    return {host_to_device_bytes.load(),
            device_to_host_bytes.load(),
            cpu_faults.load(),
            gpu_faults.load()};
  }
  [[nodiscard]] availability request_faults() const override
  {
    if (faults.available) { ++fault_requests; }
    return faults;
  }
  void release_faults() const noexcept override { --fault_requests; }
};

/** @brief One call that reached the driver. */
struct driver_call {
  std::string name;                       ///< the member function
  std::vector<memory_range> ranges;       ///< what it was asked for
  stream_handle stream{nullptr};          ///< in the order of which stream
  int device_id{location::host_id};       ///< where to
  std::optional<memory_advice> advice{};  ///< what was advised

  friend bool operator==(driver_call const&, driver_call const&) = default;
  /** @brief How GoogleTest shows a call. */
  friend std::ostream& operator<<(std::ostream& out, driver_call const& call)
  {
    out << call.name << " in " << call.stream << " to " << call.device_id;
    if (call.advice) { out << " advice " << static_cast<int>(*call.advice); }
    for (auto const& range : call.ranges) {
      out << " [" << std::hex << range.address << ", " << range.end() << std::dec << ')';
    }
    return out;
  }
};

/**
 * @brief A driver that moves nothing: it records calls and answers what the test told it to.
 *
 * Its facts are plain members, set before use. Calls are recorded under a lock.
 */
class recording_driver final : public uvm_driver {
 public:
  device_info facts{};                         ///< what `info` answers
  fake_counters counted;                       ///< what `counters` answers
  device_memory level{};                       ///< what `memory` answers
  device_memory neighbor_level{};              ///< what `neighbor_memory` answers
  std::map<int, neighbor_load> loads{};        ///< what `read_neighbor_load` answers; none: nothing
  capture_state capture{capture_state::none};  ///< what `capturing` answers
  std::shared_ptr<captured_graph> graph;       ///< what `graph_of` tells; null: it cannot be told
  std::optional<std::size_t> resident_bytes;   ///< what `resident_managed_bytes` answers
  bool direct_neighbors{false};                ///< whether `migrate` goes to neighbours
  std::optional<int> fails_to{};               ///< `migrate` to that device fails
  bool plays_threads_out{false};               ///< whether one thread shall do what is shared out
  std::vector<std::size_t> shared_out;         ///< among how many threads, each time
  int sharing_out{0};                          ///< begun, and not ended
  bool marks_passed{true};                     ///< what `passed` answers
  bool streams_idle{true};                     ///< what `idle` answers
  std::vector<std::pair<std::size_t, stream_handle>> marks;     ///< every `mark`: number, stream
  std::vector<std::pair<stream_handle, stream_handle>> orders;  ///< every `order`: later, earlier
  std::map<std::string, status> answers;  ///< by call; success where there is none
  std::function<void(driver_call const&)> on_call{[](driver_call const&) {}};  ///< a side effect

  recording_driver()
  {
    facts.name        = "recording driver";
    facts.total_bytes = std::size_t{1} << 30U;
    level             = {facts.total_bytes, facts.total_bytes};
    neighbor_level    = level;
  }

  [[nodiscard]] device_info const& info() const noexcept override { return facts; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return counted; }
  [[nodiscard]] std::optional<std::size_t> resident_managed_bytes() const noexcept override
  {
    return resident_bytes;
  }
  status memory(device_memory& memory) noexcept override
  {
    memory = level;
    return record({"memory", {}});
  }
  status neighbor_memory(int device_id, device_memory& memory) noexcept override
  {
    memory = neighbor_level;
    return record({"neighbor_memory", {}, nullptr, device_id});
  }
  status read_neighbor_load(int device_id, neighbor_load& load) noexcept override
  {
    if (auto const answer = answers.find("read_neighbor_load"); answer != answers.end()) {
      return answer->second;
    }
    auto const found = loads.find(device_id);
    if (found == loads.end()) { return {status_code::not_supported, 0, "read_neighbor_load"}; }
    load = found->second;
    return {};
  }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    address = next_address_;
    next_address_ += va_block_ceil(bytes);
    return record({"allocate_managed", {{address, bytes}}});
  }
  status free_managed(std::uintptr_t address) noexcept override
  {
    return record({"free_managed", {{address, 0}}});
  }
  status prefetch(memory_range range, location where, stream_handle stream) noexcept override
  {
    return noted(record({"prefetch", {range}, stream, where.device_id}), range, where);
  }
  status migrate(memory_range range, location where) noexcept override
  {
    auto const answer = record({"migrate", {range}, nullptr, where.device_id});
    if (fails_to == where.device_id) { return {status_code::out_of_memory, 2, "migrate"}; }
    return noted(answer, range, where);
  }
  std::size_t begin_together(std::size_t threads) noexcept override
  {
    std::lock_guard const lock{mutex_};
    shared_out.push_back(threads);
    ++sharing_out;
    return plays_threads_out ? 1 : threads;
  }
  void end_together() noexcept override
  {
    std::lock_guard const lock{mutex_};
    --sharing_out;
  }
  [[nodiscard]] bool migrates_to(location where) noexcept override
  {
    return uvm_driver::migrates_to(where) || (facts.direct_migration.available && direct_neighbors);
  }
  status discard(std::span<memory_range const> ranges, stream_handle stream) noexcept override
  {
    return noted(record({"discard", {ranges.begin(), ranges.end()}, stream}), ranges);
  }
  status discard_and_prefetch(std::span<memory_range const> ranges,
                              location where,
                              stream_handle stream) noexcept override
  {
    return noted(
      record({"discard_and_prefetch", {ranges.begin(), ranges.end()}, stream, where.device_id}),
      ranges,
      where);
  }
  status advise(memory_range range, memory_advice what, location where) noexcept override
  {
    return record({"advise", {range}, nullptr, where.device_id, what});
  }
  status order(stream_handle later, stream_handle earlier) noexcept override
  {
    {
      std::lock_guard const lock{mutex_};
      orders.emplace_back(later, earlier);
    }
    return record({"order", {}, later});
  }
  status own_stream(own_stream_use which, stream_handle& stream) noexcept override
  {
    stream = own(which);
    return record({"own_stream", {}});
  }
  status mark(std::size_t number, stream_handle stream) noexcept override
  {
    {
      std::lock_guard const lock{mutex_};
      marks.emplace_back(number, stream);
    }
    return record({"mark", {}, stream});
  }
  [[nodiscard]] bool passed(std::size_t) noexcept override { return marks_passed; }
  /** @brief What `own_stream` answers. */
  [[nodiscard]] static stream_handle own(own_stream_use which) noexcept
  {
    return reinterpret_cast<stream_handle>(std::uintptr_t{0xA000} +
                                           static_cast<std::uintptr_t>(which));
  }
  [[nodiscard]] capture_state capturing(stream_handle stream) noexcept override
  {
    static_cast<void>(record({"capturing", {}, stream}));
    return capture;
  }
  status graph_of(stream_handle stream,
                  std::shared_ptr<captured_graph const>& told) noexcept override
  {
    auto const answer = record({"graph_of", {}, stream});
    if (!answer.ok()) { return answer; }
    if (graph == nullptr) { return {status_code::not_supported, 0, "graph_of"}; }
    told = graph;
    return {};
  }
  [[nodiscard]] bool idle(stream_handle) noexcept override { return streams_idle; }
  status synchronize(stream_handle stream) noexcept override
  {
    return record({"synchronize", {}, stream});
  }

  /** @brief The calls recorded since the last time, of `name` or, when empty, all. */
  [[nodiscard]] std::vector<driver_call> take_calls(std::string const& name = {})
  {
    std::lock_guard const lock{mutex_};
    auto taken = std::exchange(calls_, {});
    if (!name.empty()) {
      std::erase_if(taken, [&](driver_call const& call) { return call.name != name; });
    }
    return taken;
  }

 private:
  status record(driver_call call)
  {
    {
      std::lock_guard const lock{mutex_};
      calls_.push_back(call);
    }
    on_call(call);  // which may make calls of its own, in other threads as well
    std::lock_guard const lock{mutex_};
    auto const answer = answers.find(call.name);
    return answer == answers.end() ? status{} : answer->second;
  }

  std::mutex mutex_;
  std::vector<driver_call> calls_;
  std::uintptr_t next_address_{std::uintptr_t{1} << 40U};
};

}  // namespace rmm_uvm::tests
