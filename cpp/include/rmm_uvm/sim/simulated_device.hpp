// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_transfers.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/sim/address_space.hpp>
#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>
#include <rmm_uvm/sim/migrating_threads.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  bool direct_migration{false};          ///< `migrate`, past libcuda
  bool places_at_once{true};             ///< false: threads fetch from one place after the other
  int device_id{0};                      ///< ordinal it claims
  unsigned neighbors{0};      ///< idle devices like it, with peer access: ordinals 0 to `neighbors`
                              ///< without its own
  machine_profile machine{};  ///< rates and times
  driver_settings driver{};   ///< parameters of the UVM kernel driver
};

/** @brief What the simulated device counted, and where everything is now. */
struct simulated_statistics {
  std::uint64_t host_to_device_bytes{0};  ///< migrated to the device
  std::uint64_t device_to_host_bytes{0};  ///< migrated to the host, evictions included
  std::uint64_t evicted_bytes{0};         ///< of those, written back to make room
  std::uint64_t evicted_blocks{0};        ///< chunks taken away to make room, copied or not
  std::uint64_t dropped_bytes{0};         ///< discarded pages that left without a copy
  std::uint64_t gpu_fault_groups{0};      ///< blocks served, once for each batch of faults on them
                                          ///< (4 KiB pages once discarded)
  std::uint64_t gpu_faults{0};            ///< pages that faulted, duplicates included
  std::uint64_t cpu_faults{0};            ///< faults of the CPU that were served
  std::uint64_t modelled_ns{0};           ///< modelled time of everything that the driver did
  std::size_t managed_bytes{0};           ///< managed memory allocated now
  std::size_t device_bytes{0};            ///< cudaMalloc memory allocated now
  std::size_t resident_bytes{0};          ///< device memory behind managed pages now
  std::size_t peak_resident_bytes{0};     ///< the most of it
  std::size_t host_page_bytes{0};         ///< host memory behind managed pages now
  std::size_t neighbor_bytes{0};          ///< memory of neighbours behind managed pages now
  std::size_t lent_bytes{0};  ///< device memory behind managed pages of other programs now
};

/**
 * @brief A device without a GPU: follows the UVM kernel driver's rules, in modelled time.
 *
 * Serves as `uvm_driver` (commands) and as `migration_counters` (observations). Every operation
 * happens at once, in call order; streams are names. docs/simulator-model.md says what is modelled
 * and what is not. Thread-safe: one mutex.
 */
class simulated_device final : public uvm_driver, public migration_counters {
 public:
  /** @brief A device with idle neighbours, on a node of its own. */
  explicit simulated_device(simulated_device_config const& config);
  /**
   * @brief A GPU of a node, for one program; its ordinal is its number.
   *
   * Memory that is not given back leaves when the device does, as when a process ends.
   * @param node not null
   * @param gpu its number; no other device may be the same one
   * @param features `backing`, `concurrent_managed_access`, `discard` and `counters` count
   */
  simulated_device(std::shared_ptr<simulated_node> node,
                   unsigned gpu,
                   simulated_device_config const& features);
  simulated_device(simulated_device const&)            = delete;
  simulated_device& operator=(simulated_device const&) = delete;
  simulated_device(simulated_device&&)                 = delete;
  simulated_device& operator=(simulated_device&&)      = delete;
  ~simulated_device() override;

  // The seam: commands.
  [[nodiscard]] device_info const& info() const noexcept override { return info_; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return *this; }
  status memory(device_memory& memory) noexcept override;
  [[nodiscard]] int device_count() noexcept override;
  availability open_neighbor(int device_id) override;
  status neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept override;
  status neighbor_memory(int device_id, device_memory& memory) noexcept override;
  status read_neighbor_load(int device_id, neighbor_load& load) noexcept override;
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
  [[nodiscard]] capture_state capturing(stream_handle stream) noexcept override;
  [[nodiscard]] bool idle(stream_handle stream) noexcept override;
  status synchronize(stream_handle stream) noexcept override;

  // The seam: observations.
  [[nodiscard]] availability available() const override;
  [[nodiscard]] migration_totals read() const noexcept override;
  [[nodiscard]] std::optional<std::size_t> resident_managed_bytes() const noexcept override
  {
    return account().resident_bytes.load(std::memory_order_relaxed);
  }
  [[nodiscard]] availability request_faults() const override;
  void release_faults() const noexcept override;

  /**
   * @brief Enters what moves from now on, and why, into `tally`, until `detach`.
   *
   * `simulated_events` is the seam's way to it.
   * @return not available where a GPU could not tell either: without counters, or where nothing
   *         migrates
   */
  [[nodiscard]] availability attach(migration_tally& tally);
  /** @brief Lets go of a tally; of one that is not attached, too. */
  void detach(migration_tally& tally) noexcept;

  // What a program on the device, or on a neighbour, would do.
  /** @brief A kernel reads, or reads and writes, every byte of a managed range. */
  status touch(memory_range range, bool write) noexcept;
  /** @brief The CPU reads, or reads and writes, every byte of a managed range. */
  status cpu_touch(memory_range range, bool write) noexcept;
  /** @brief Tells an observer of every touch from now on; null for none. @throws std::bad_alloc */
  void observe(std::shared_ptr<memory_observer> observer) { observer_.set(std::move(observer)); }
  /** @brief The observer of touches, to attach and detach one that must not replace another. */
  [[nodiscard]] observer_slot& observers() noexcept { return observer_; }
  /** @brief A kernel computes for so long, and accesses no memory to speak of. */
  status compute(double ns) noexcept;
  /**
   * @brief Whose thread migrates from now on: one beside the program, or the program's own again.
   *
   * What a budget's thread would do is asked for by the only thread that there is. On a node, a
   * kernel waits for what that moves where it uses it; without lanes it is the program's time.
   */
  void migrate_beside(bool beside) noexcept;
  /** @brief cudaMalloc: never evicted, evicts managed memory, refuses when that is not enough. */
  status allocate_device(std::size_t bytes, std::uintptr_t& address) noexcept;
  /** @brief cudaFree of `allocate_device` memory. */
  status free_device(std::uintptr_t address) noexcept;

  /** @brief Programs on a neighbour hold so much cudaMalloc memory there from now on. */
  status occupy_neighbor(int device_id, std::size_t bytes) noexcept;

  /**
   * @brief A neighbour is so busy from now on; before, nothing tells.
   * @return invalid value: no such neighbour
   */
  status set_neighbor_load(int device_id, neighbor_load const& load) noexcept;

  // What `simulated_transfers` needs.
  /** @brief Whether there are real bytes behind the addresses. */
  [[nodiscard]] bool backing() const noexcept { return config_.backing; }
  /** @brief What an address belongs to; none for memory that is not of this device. */
  [[nodiscard]] std::optional<memory_kind> find_memory(std::uintptr_t address) const noexcept;
  /**
   * @brief Descriptor of the shared memory behind an `allocate_device` allocation with backing.
   * @param base its first byte
   * @return -1 when there is none; else valid until the allocation is freed
   */
  [[nodiscard]] int shared_descriptor(std::uintptr_t base) const noexcept;
  /** @brief What `fail_call` planned for this call, once. @throws std::bad_alloc */
  [[nodiscard]] std::optional<status> planned_answer(std::string_view call) const;
  /** @brief The same of a call that answers with a reason. @throws std::bad_alloc */
  [[nodiscard]] std::optional<availability> planned_refusal(std::string_view call) const;

  /** @brief Counts and levels now. */
  [[nodiscard]] simulated_statistics statistics() const noexcept;
  /** @brief Bytes of a managed range that reside on the device. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range) const noexcept
  {
    return resident_bytes(range, location::device(info_.device_id));
  }
  /** @brief Bytes of a managed range that reside in a place; none where there is no such place. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range, location where) const noexcept;
  /** @brief What was advised about the block that an address is in; GPUs have the node's number. */
  [[nodiscard]] block_policy advised(std::uintptr_t address) const noexcept;
  /** @brief Its number in the node. */
  [[nodiscard]] unsigned gpu() const noexcept { return gpu_; }

  /**
   * @brief Lets the call after `skip` further ones of that name answer `failure`. For tests.
   *
   * Names are those of the seam's methods; of its counters `available` and `request_faults`, of
   * its events `start`.
   */
  void fail_call(std::string_view call, status failure, unsigned skip);
  /** @brief Takes back what `fail_call` planned and no call met; returns how many. For tests. */
  std::size_t cancel_failures();
  /** @brief Lets `capturing` answer `state` for a stream. For tests. */
  void set_capture_state(stream_handle stream, capture_state state);

 private:
  struct device_allocation {
    std::size_t bytes{0};
    address_range addresses;
  };
  // The model's name for a place; `nowhere` where there is none such.
  static constexpr int nowhere = -2;
  /** @brief What a GPU of the node is called: no GPU's that there is. */
  [[nodiscard]] static std::array<std::uint8_t, 16> uuid_of(unsigned gpu) noexcept
  {
    std::array<std::uint8_t, 16> uuid{'s', 'i', 'm'};
    uuid.back() = static_cast<std::uint8_t>(gpu);
    return uuid;
  }
  [[nodiscard]] int place(location where) const noexcept;
  [[nodiscard]] std::optional<status> injected(std::string_view call) const;
  [[nodiscard]] simulated_node::turn enter() const noexcept
  {
    return simulated_node::turn{*node_, gpu_};
  }
  [[nodiscard]] simulated_node::turn enter(stream_handle stream) const noexcept
  {
    return simulated_node::turn{*node_, gpu_, lane_of(stream)};
  }
  // Which of the program's lanes a stream is; all of the program's are the first.
  [[nodiscard]] unsigned lane_of(stream_handle stream) const noexcept;
  [[nodiscard]] simulated_node::account& account() const noexcept { return node_->of(gpu_); }
  status finish(simulated_node::turn const& model, status done) noexcept;
  void wipe(simulated_node::turn const& model, memory_range range) const;

  simulated_device_config config_;
  observer_slot observer_;
  device_info info_;
  std::shared_ptr<simulated_node> node_;
  unsigned gpu_;
  // All of the following with the node's mutex.
  std::map<std::uintptr_t, address_range> managed_;
  std::map<std::uintptr_t, device_allocation> device_;
  std::map<int, neighbor_load> neighbor_loads_;  // those that were set
  // Mutable since calls that only ask meet them, too.
  mutable planned_answers answers_;
  std::map<stream_handle, capture_state> capture_states_;
  migrating_threads migrating_;
  std::array<char, own_stream_count> own_streams_{};  // their addresses are names
};

}  // namespace rmm_uvm::sim
