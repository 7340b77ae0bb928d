// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace rmm_uvm::sim {

/**
 * @brief Names one GPU of a node for the parts of its simulated device.
 *
 * It translates the program's device ordinals into the model's numbers, takes turns of the node,
 * and keeps the node alive. Its values never change, so it needs no lock.
 */
class node_gpu {
 public:
  /** @brief `place` returns this if the node has no such place. */
  static constexpr int nowhere = -2;

  /**
   * @param node not null
   * @param number its number in the node
   * @param ordinal the program's device ordinal for it
   */
  node_gpu(std::shared_ptr<simulated_node> node, unsigned number, int ordinal) noexcept
    : node_{std::move(node)}, number_{number}, ordinal_{ordinal}
  {
  }

  [[nodiscard]] unsigned number() const noexcept { return number_; }
  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] simulated_node& node() const noexcept { return *node_; }
  /** @brief Whether nobody else keeps the node alive. */
  [[nodiscard]] bool has_the_node_alone() const noexcept { return node_.use_count() == 1; }
  /** @brief The node's account of the program. */
  [[nodiscard]] simulated_node::account& account() const noexcept { return node_->of(number_); }

  /** @brief Locks the node and lets the program's operations follow, in one of its lanes. */
  [[nodiscard]] simulated_node::turn enter(unsigned lane = 0) const noexcept
  {
    return simulated_node::turn{*node_, number_, lane};
  }
  /** @brief Ends an operation before the program's next one begins. @return `done` */
  status finish(simulated_node::turn const& model, status done) const noexcept
  {
    model->synchronize();
    node_->publish();
    return done;
  }

  /** @brief The model's number of a place, or `nowhere`. */
  [[nodiscard]] int place(location where) const noexcept
  {
    if (where.is_host()) { return uvm_model::host; }
    auto const id  = where.device_id;
    auto const own = static_cast<int>(number_);
    if (id == ordinal_) { return own; }
    return id < 0 || id == own || std::cmp_greater_equal(id, node_->config().gpus) ? nowhere : id;
  }
  /** @brief Whether pages can migrate between this GPU and a place. @param there from `place` */
  [[nodiscard]] bool reaches(int there) const noexcept
  {
    if (there < 0) { return there == uvm_model::host; }
    auto const other = static_cast<unsigned>(there);
    return other == number_ || node_->reaches(number_, other);
  }
  /** @brief The number of another GPU of the node, if the node has it. */
  [[nodiscard]] std::optional<unsigned> neighbor(int device_id) const noexcept
  {
    auto const there = place(location::device(device_id));
    if (there < 0 || std::cmp_equal(there, number_)) { return std::nullopt; }
    return static_cast<unsigned>(there);
  }
  /** @brief The UUID of a GPU of the node; no real GPU has it. */
  [[nodiscard]] static std::array<std::uint8_t, 16> uuid_of(unsigned number) noexcept
  {
    std::array<std::uint8_t, 16> uuid{'s', 'i', 'm'};
    uuid.back() = static_cast<std::uint8_t>(number);
    return uuid;
  }

 private:
  std::shared_ptr<simulated_node> node_;
  unsigned number_;
  int ordinal_;
};

}  // namespace rmm_uvm::sim
