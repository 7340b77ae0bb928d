// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/driver/move_queue.hpp>
#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>
#include <rmm_uvm/sim/third_tier.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Which GPUs of a node copy from each other without the host between. */
enum class node_topology : std::uint8_t {
  nvswitch,  ///< all, at the peer rate
  pairs,     ///< 0 and 1, 2 and 3, ... by NVLink
  pcie       ///< none
};

/** @brief What moved while a window was open; with the node's mutex. */
struct simulated_window {
  std::vector<seen_move> moves;  ///< as many as there is room for
  std::uint64_t lost{0};
};

/** @brief How a node is made. */
struct simulated_node_config {
  unsigned gpus{2};                                 ///< 1..uvm_model::most_gpus
  node_topology topology{node_topology::nvswitch};  ///< links between GPUs
  std::vector<unsigned> links;  ///< for each GPU its link to the host, < gpus; empty: each its own
  std::size_t capacity_bytes{std::size_t{16} << 30U};  ///< of each GPU; a multiple of 2 MiB, > 0
  std::size_t host_bytes{std::numeric_limits<std::size_t>::max()};  ///< host memory for pages
  bool kernel_time{true};     ///< kernels are launched and read memory in time of their own
  bool beside{true};          ///< what goes on a device's own streams does so beside the program
  machine_profile machine{};  ///< rates and times
  driver_settings driver{};   ///< parameters of the UVM kernel driver
  third_tier behind_host{};   ///< takes what the host's memory has no room for
};

/**
 * @brief A machine with GPUs, of which each runs a program: one model, one mutex, one host memory.
 *
 * A program has a GPU as its `simulated_device`. Memory is that of the program which took it, and
 * no other program can name it; so are bytes and faults in the counters, wherever they happen. Each
 * program has a clock; links are shared. docs/understand/simulator.md says what is modelled.
 * Thread-safe.
 */
class simulated_node {
 public:
  /** @throws std::invalid_argument if a value is out of its bounds */
  explicit simulated_node(simulated_node_config const& config);
  simulated_node(simulated_node const&)            = delete;
  simulated_node& operator=(simulated_node const&) = delete;
  simulated_node(simulated_node&&)                 = delete;
  simulated_node& operator=(simulated_node&&)      = delete;
  ~simulated_node();

  /** @brief What a program's counters show, kept for reading without the mutex. */
  struct account {
    std::atomic<std::uint64_t> host_to_device_bytes{0};
    std::atomic<std::uint64_t> device_to_host_bytes{0};
    std::atomic<std::size_t> resident_bytes{0};
    std::atomic<std::uint64_t> cpu_faults{0};  // faults only while somebody asks for them
    std::atomic<std::uint64_t> gpu_faults{0};
    std::atomic<int> fault_requests{0};
    // With the mutex:
    model_counters published;  // what the others and the tallies have been told
    std::vector<migration_tally*> tallies;
    std::vector<simulated_window*> windows;  // those that are open
    observer_slot const* traffic{nullptr};   // of the program's device, while that lives
  };

  /** @brief The model, locked, and told whose operations follow. */
  class turn {
   public:
    turn(simulated_node& node, unsigned program, unsigned lane = 0) noexcept
      : lock_{node.mutex_}, model_{node.model_}
    {
      model_.run_as(program, lane);
    }
    [[nodiscard]] uvm_model* operator->() const noexcept { return &model_; }

   private:
    std::lock_guard<ranked_mutex<lock_rank::node>> lock_;
    uvm_model& model_;
  };

  /** @brief Threads that migrate at once for one that waits for them, at most. */
  static constexpr unsigned most_together = 4;
  /** @brief The lane of a thread beside the program; lanes of its device's streams come before. */
  static constexpr unsigned beside_lane = 1 + own_stream_count;
  /** @brief The first lane of those that migrate together for the program, or for that thread. */
  [[nodiscard]] static constexpr unsigned together_lane(bool beside) noexcept
  {
    return beside_lane + 1 + (beside ? most_together : 0);
  }
  /** @brief Lanes of a program: its own, one for each stream that its device has, and threads. */
  static constexpr unsigned lanes = beside_lane + 1 + 2 * most_together;

  [[nodiscard]] simulated_node_config const& config() const noexcept { return config_; }
  /** @brief What a program's counters show. @param program that of the GPU with this number */
  [[nodiscard]] account& of(unsigned program) noexcept { return accounts_[program]; }
  /** @brief Enters what happened into the accounts. @pre it is somebody's turn */
  void publish() noexcept;
  /** @brief Whether pages go from one GPU to the other and back. */
  [[nodiscard]] bool reaches(unsigned gpu, unsigned other) const noexcept
  {
    return model_.reaches(gpu, other);
  }
  /** @brief The same, and if not, why. */
  [[nodiscard]] availability peer_access(unsigned gpu, unsigned other) const;

  /**
   * @brief A GPU's program holds so much more cudaMalloc memory there from now on, beside its own.
   *
   * Happens no sooner than anything that any program did.
   */
  status occupy(unsigned gpu, std::size_t bytes) noexcept;
  /** @brief All programs wait for the one that is furthest. @return that time */
  double synchronize() noexcept;
  /** @brief What went over a GPU's link to the host, of all that share it. @pre it is there */
  [[nodiscard]] link_traffic host_traffic(unsigned gpu, direction way) const noexcept;
  /** @brief What a GPU sent another without the host between. @pre they are there */
  [[nodiscard]] link_traffic peer_traffic(unsigned from, unsigned to) const noexcept;

 private:
  class listener;  // of the model: keeps account by cause

  simulated_node_config config_;
  mutable ranked_mutex<lock_rank::node> mutex_;
  uvm_model model_;
  std::unique_ptr<listener> listener_;
  std::vector<account> accounts_;            // by program
  std::vector<std::size_t> occupied_bytes_;  // by GPU
};

}  // namespace rmm_uvm::sim
