// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief Which lane of a program migrates past libcuda: its own, a thread's beside it, or one of
 * those that do it together for either.
 *
 * Reads and sets times of the program's lanes; moves nothing. With the node's mutex.
 */
class migrating_threads {
 public:
  /**
   * @param gpu whose program it is
   * @param lanes whether programs of the node have any
   * @param places_at_once false: threads fetch from one place after the other
   */
  migrating_threads(unsigned gpu, bool lanes, bool places_at_once) noexcept
    : gpu_{gpu}, lanes_{lanes}, places_at_once_{places_at_once}
  {
  }

  /** @brief Whose thread migrates from now on: one beside the program, or the program's own. */
  void migrate_beside(bool beside) noexcept { beside_ = beside; }
  /** @brief Begins, once for all of them, a group of threads that migrate at the same time. */
  void begin_together(simulated_node::turn const& model, std::size_t threads) noexcept;
  /** @brief The last one that ends has whoever asked for the group wait for all of it. */
  void end_together(simulated_node::turn const& model) noexcept;
  /** @brief Who migrates a range next. @param fetches to the program's GPU, rather than away */
  [[nodiscard]] unsigned lane_for(simulated_node::turn const& model,
                                  memory_range range,
                                  bool fetches) noexcept;

 private:
  struct group {  // none while nobody asked for it
    std::size_t count{0};
    std::size_t begun{0};  // that did not end
    double begin_ns{0};
    bool fetch{false};                                                   // rather than send away
    std::array<std::uintptr_t, simulated_node::most_together> latest{};  // what each migrated last
  };

  [[nodiscard]] group& own() noexcept { return together_[beside_ ? 1 : 0]; }
  // The lane of who migrates, or has a group do so.
  [[nodiscard]] unsigned lane() const noexcept
  {
    return beside_ && lanes_ ? simulated_node::beside_lane : 0;
  }
  // Whether what they fetch comes from one place after the other; two fetch from a single place.
  [[nodiscard]] bool in_turn(group const& those) const noexcept
  {
    return !places_at_once_ && those.count > 2;
  }

  unsigned gpu_;
  bool lanes_;
  bool places_at_once_;
  bool beside_{false};               // who migrates now
  std::array<group, 2> together_{};  // for the program, for the thread beside it
};

}  // namespace rmm_uvm::sim
