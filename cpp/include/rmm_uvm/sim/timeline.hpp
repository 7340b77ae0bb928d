// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/machine_profile.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/** @brief Which way a copy goes over a GPU's link to the host. */
enum class direction : std::uint8_t { to_device, to_host };

/**
 * @brief When things happen, in modelled nanoseconds: the driver's thread, and the copy engines.
 *
 * The kernel driver works on one migration at a time, on the CPU; copies run beside it on an engine
 * for each direction of each link, in the order in which they were handed over. GPUs that share a
 * link share its engines. An operation is `begin`, any number of `spend` and `copy`, `finish`.
 */
class timeline {
 public:
  /** @param links for each GPU the link that it uses, counted from 0 */
  timeline(machine_profile const& machine, std::vector<unsigned> links);

  /** @brief Begins an operation of the driver, at the earliest at `ns`. */
  void begin(double ns) noexcept;
  /** @brief The driver's thread works. */
  void spend(double ns) noexcept { driver_ns_ += ns; }
  /** @brief Hands a copy over a GPU's link to its engine. @param runs stretches of pages */
  void copy(direction way, unsigned gpu, std::size_t bytes, std::size_t runs) noexcept;
  /**
   * @brief Hands a copy between two GPUs to the engine of the one that receives.
   * @param peers false, or a machine without peer access: by way of the host
   */
  void copy_between(
    unsigned from, unsigned to, std::size_t bytes, std::size_t runs, bool peers) noexcept;
  /**
   * @brief Has the next copy to a device begin after the latest one to the host.
   *
   * It goes where that one came from: an evicted chunk is filled again.
   */
  void hold_next_copy() noexcept { held_ns_ = copied_ns_; }
  /** @brief Has the driver's thread wait until all copies of this operation are done. */
  void wait_for_copies() noexcept;
  /** @brief When the driver's thread is done with its part. */
  [[nodiscard]] double worked_ns() const noexcept { return driver_ns_; }
  /** @brief When this operation's work and copies are done. */
  [[nodiscard]] double finish() const noexcept;

 private:
  struct engine {
    double begun_ns{0};  // of its latest stretch of work without a pause
    double free_ns{0};
  };

  [[nodiscard]] double run(engine& own,
                           engine const* other,
                           double begin_ns,
                           double ns) const noexcept;

  machine_profile machine_;
  std::vector<unsigned> links_;
  std::vector<engine> to_device_;  // by link
  std::vector<engine> to_host_;
  std::vector<engine> from_peer_;  // by GPU
  double driver_ns_{0};
  double copied_ns_{0};  // end of the operation's last copy
  double held_ns_{0};    // no sooner does the next copy to a device begin
};

}  // namespace rmm_uvm::sim
