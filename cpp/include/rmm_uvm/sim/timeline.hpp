// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/link_engine.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Which way a copy goes over a GPU's link to the host. */
enum class direction : std::uint8_t { to_device, to_host };

/** @brief What went one way over a link. */
struct link_traffic {
  std::uint64_t bytes{0};  ///< copied
  double busy_ns{0};       ///< time that the copies took, one after the other
};

/**
 * @brief When things happen, in modelled nanoseconds: the driver's threads, and the copy engines.
 *
 * The kernel driver works on one migration of a program at a time, on the CPU; copies run beside it
 * on an engine for each direction of each link: of a GPU's to the host, and of a GPU's to all of
 * its peers. GPUs that share a link share its engines. Programs share all engines, see
 * `link_engine`. An operation is `begin`, any number of `spend` and `copy`, `finish`.
 */
class timeline {
 public:
  /**
   * @param links for each GPU the link that it uses, counted from 0
   * @param programs > 0
   */
  timeline(machine_profile const& machine, std::vector<unsigned> links, unsigned programs);

  /** @brief What follows is done by this program. */
  void run_as(unsigned program) noexcept { program_ = program; }
  /** @brief Begins an operation of the driver, at the earliest at `ns`. */
  void begin(double ns) noexcept;
  /** @brief The driver's thread works. */
  void spend(double ns) noexcept { own().driver_ns += ns; }
  /** @brief Hands a copy over a GPU's link to its engine. @param runs stretches of pages */
  void copy(direction way, unsigned gpu, std::size_t bytes, std::size_t runs);
  /**
   * @brief Hands a copy between two GPUs to the engines of the one that sends and the one that
   * receives.
   * @param without_host false: by way of the host
   */
  void copy_between(
    unsigned from, unsigned to, std::size_t bytes, std::size_t runs, bool without_host);
  /**
   * @brief Has the next copy to a device begin after the latest one to the host.
   *
   * It goes where that one came from: an evicted chunk is filled again.
   */
  void hold_next_copy() noexcept { own().held_ns = own().copied_ns; }
  /** @brief Has the driver's thread wait until all copies of this operation are done. */
  void wait_for_copies() noexcept;
  /** @brief The same, after a time. */
  void hold_next_copy(double ns) noexcept { own().held_ns = std::max(own().held_ns, ns); }
  /** @brief When the operation's copies so far are done. */
  [[nodiscard]] double copied_ns() const noexcept { return lanes_[program_].copied_ns; }
  /** @brief When the driver's thread is done with its part. */
  [[nodiscard]] double worked_ns() const noexcept { return lanes_[program_].driver_ns; }
  /** @brief When this operation's work and copies are done. */
  [[nodiscard]] double finish() const noexcept;

  /** @brief What went over a link to the host, of all GPUs that share it. @pre there is such one */
  [[nodiscard]] link_traffic host_traffic(unsigned link, direction way) const noexcept
  {
    return (way == direction::to_host ? to_host_ : to_device_)[link].traffic;
  }
  /** @brief What one GPU sent another without the host between. @pre there are such GPUs */
  [[nodiscard]] link_traffic peer_traffic(unsigned from, unsigned to) const noexcept
  {
    return pairs_[std::size_t{from} * links_.size() + to];
  }

 private:
  struct lane {  // of a program
    double driver_ns{0};
    double copied_ns{0};  // end of the operation's last copy
    double held_ns{0};    // no sooner does the next copy to a device begin
  };
  struct host_way {
    link_engine engine;
    link_traffic traffic;
  };

  [[nodiscard]] lane& own() noexcept { return lanes_[program_]; }

  machine_profile machine_;
  std::vector<unsigned> links_;
  std::vector<host_way> to_device_;  // by link
  std::vector<host_way> to_host_;
  std::vector<link_engine> to_peers_;  // by GPU
  std::vector<link_engine> from_peers_;
  std::vector<link_traffic> pairs_;  // by the GPU that sends, then by the one that receives
  std::vector<lane> lanes_;          // by program
  unsigned program_{0};
};

}  // namespace rmm_uvm::sim
