// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>
#include <rmm_uvm/sim/migrating_threads.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/own_streams.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>
#include <rmm_uvm/sim/simulated_allocations.hpp>
#include <rmm_uvm/sim/simulated_counters.hpp>
#include <rmm_uvm/sim/simulated_neighbors.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>
#include <rmm_uvm/sim/simulated_program.hpp>
#include <rmm_uvm/sim/simulated_view.hpp>
#include <rmm_uvm/sim/third_tier.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm::sim {

/** @brief How a simulated device is made; of one of a node, the fields say whether they count. */
struct simulated_device_config {
  std::size_t capacity_bytes{std::size_t{16} << 30U};  ///< device memory; a multiple of 2 MiB, > 0
  std::size_t host_bytes{std::numeric_limits<std::size_t>::max()};  ///< host memory for pages
  bool backing{false};                   ///< real bytes behind the addresses; for checksum tests
  bool concurrent_managed_access{true};  ///< false models WSL2
  bool discard{true};                    ///< false models a driver before 580
  bool counters{true};                   ///< false models a kernel without UVM tools
  bool tells_moves{true};                ///< false: in windows only, as a GPU
  bool host_pages{true};                 ///< false models an operating system that does not tell
  bool direct_migration{false};          ///< `migrate`, past libcuda
  bool integrated{false};                ///< device memory is host memory: no pages move
  std::optional<int> numa_node{};        ///< node of the host that its memory is
  bool places_at_once{true};             ///< false: threads fetch from one place after the other
  int device_id{0};                      ///< ordinal it claims
  unsigned neighbors{0};      ///< idle devices like it, with peer access: ordinals 0 to `neighbors`
                              ///< without its own
  machine_profile machine{};  ///< rates and times
  driver_settings driver{};   ///< parameters of the UVM kernel driver
  third_tier behind_host{};   ///< takes what the host's memory has no room for
};

/**
 * @brief A device without a GPU: follows the UVM kernel driver's rules, in modelled time.
 *
 * This class has the seam's commands. Its parts have the rest: `counters` the seam's observations,
 * `program` the program on the device, `neighbors` the other devices, `view` the state that a GPU
 * does not tell, `answers` the failures that tests plan. Every operation happens at once, in call
 * order; streams are names. docs/understand/simulator.md says what is modelled and what is not.
 * Thread-safe: one mutex, the node's; `answers` has its own.
 */
class simulated_device final : public uvm_driver {
 public:
  /** @brief A device with idle neighbours, on a node of its own. */
  explicit simulated_device(simulated_device_config const& config);
  /**
   * @brief A GPU of a node, for one program; its ordinal is its number.
   *
   * Memory that is not given back leaves when the device does, as when a process ends.
   * @param node not null
   * @param gpu its number; no other device may be the same one
   * @param features `backing`, `concurrent_managed_access`, `discard`, `counters`,
   *        `tells_moves`, `direct_migration` and `places_at_once` count; none of a node is
   * `integrated`
   */
  simulated_device(std::shared_ptr<simulated_node> node,
                   unsigned gpu,
                   simulated_device_config const& features);
  simulated_device(simulated_device const&)            = delete;
  simulated_device& operator=(simulated_device const&) = delete;
  simulated_device(simulated_device&&)                 = delete;
  simulated_device& operator=(simulated_device&&)      = delete;
  ~simulated_device() override;

  /** @brief The program on the device: its kernels, its CPU code, its cudaMalloc. */
  [[nodiscard]] simulated_program& program() noexcept { return program_; }
  /** @brief The other devices, and the programs on them. */
  [[nodiscard]] simulated_neighbors& neighbors() noexcept { return neighbors_; }
  /** @brief Where pages are, and what is allocated. */
  [[nodiscard]] simulated_view const& view() const noexcept { return view_; }
  /** @brief How tests let later calls fail. */
  [[nodiscard]] planned_answers& answers() noexcept { return answers_; }

  // The seam.
  [[nodiscard]] device_info const& info() const noexcept override { return info_; }
  [[nodiscard]] simulated_counters const& counters() const noexcept override { return counters_; }
  [[nodiscard]] opened_move_queue open_moves() override;
  [[nodiscard]] bool tells_moves() const noexcept override { return config_.tells_moves; }
  [[nodiscard]] std::optional<std::size_t> resident_managed_bytes() const noexcept override
  {
    return gpu_.account().resident_bytes.load(std::memory_order_relaxed);
  }
  status memory(device_memory& memory) noexcept override;
  status unmanaged_bytes(std::size_t& bytes) noexcept override;
  [[nodiscard]] int device_count() noexcept override { return neighbors_.device_count(); }
  availability open_neighbor(int device_id) override { return neighbors_.open(device_id); }
  status neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept override
  {
    return neighbors_.uuid(device_id, uuid);
  }
  status neighbor_memory(int device_id, device_memory& memory) noexcept override
  {
    return neighbors_.memory(device_id, memory);
  }
  status read_neighbor_load(int device_id, neighbor_load& load) noexcept override
  {
    return neighbors_.read_load(device_id, load);
  }
  status measure_links(int device_id, std::size_t bytes, link_rates& rates) noexcept override;
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override;
  status free_managed(std::uintptr_t address) noexcept override;
  status prefetch(memory_range range, location where, stream_handle stream) noexcept override;
  status migrate(memory_range range, location where) noexcept override;
  [[nodiscard]] bool migrates_to(location where) noexcept override;
  [[nodiscard]] std::size_t begin_together(std::size_t threads) noexcept override;
  void end_together() noexcept override;
  status discard(std::span<memory_range const> ranges, stream_handle stream) noexcept override;
  status discard_and_prefetch(std::span<memory_range const> ranges,
                              location where,
                              stream_handle stream) noexcept override;
  status advise(memory_range range, memory_advice what, location where) noexcept override;
  status order(stream_handle later, stream_handle earlier) noexcept override;
  status own_stream(own_stream_use which, stream_handle& stream) noexcept override;
  status mark(std::size_t number, stream_handle stream) noexcept override;
  [[nodiscard]] bool passed(std::size_t number) noexcept override;
  [[nodiscard]] capture_state capturing(stream_handle stream) noexcept override
  {
    return answers_.capturing(stream);
  }
  status graph_of(stream_handle stream,
                  std::shared_ptr<captured_graph const>& graph) noexcept override;
  [[nodiscard]] bool idle(stream_handle stream) noexcept override;
  status synchronize(stream_handle stream) noexcept override;
  status not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept override;

 private:
  simulated_device(simulated_device_config const& features, node_gpu gpu);

  simulated_device_config config_;
  node_gpu gpu_;
  device_info info_;
  planned_answers answers_;
  own_streams streams_;
  // With the node's mutex:
  simulated_allocations allocations_;
  migrating_threads threads_;
  // They use those above:
  simulated_counters counters_;
  simulated_program program_;
  simulated_neighbors neighbors_;
  simulated_view view_;
};

}  // namespace rmm_uvm::sim
